"""Published kernels as cost models.

``h100-fa3`` is FlashAttention-3's forward pass on an H100 SXM5, head dimension 128, fitted to the
speeds in its paper (Shah et al. 2024, arXiv:2407.08608, Figures 5 and 6, read off the charts):
16,384 tokens in equal segments of 512 … 16,384, 16 heads, bf16. All points have the same tokens and
heads, so a cost a token cannot be told from a fixed one: it has none. Times follow from the speeds
by the paper's FLOP count, 4·D·H·ΣL², half of it under a causal mask.
"""

from cpbalance.errors import InputError
from cpbalance.kernel_time import KernelTime
from cpbalance.tiles import Tile

HEAD_DIM = 128
SEGMENT_TOKENS = (512, 1024, 2048, 4096, 8192, 16384)
POINT_TOKENS, POINT_HEADS = 16384, 16
# TFLOP/s at SEGMENT_TOKENS.
FULL_SPEEDS = (467, 565, 625, 638, 646, 648)
CAUSAL_SPEEDS = (292, 423, 521, 579, 602, 616)

# What the fit of :mod:`cpbalance.calibration` with these terms gives; a test makes it again.
H100_FA3 = {
    False: KernelTime(
        {"fixed": 1.041e-05, "segment": 5.875e-08, "flop": 1.511e-15}, Tile(128, 176)
    ),
    True: KernelTime({"fixed": 2.899e-05, "segment": 4.128e-08, "flop": 1.577e-15}, Tile(128, 128)),
}
PRESETS = {"h100-fa3": H100_FA3}


def preset(name: str, head_dim: int, causal: bool) -> KernelTime:
    """The model of a preset; raises :class:`~cpbalance.errors.InputError` for other head dims."""
    if head_dim != HEAD_DIM:
        raise InputError(
            f"cost {name} is for head_dim {HEAD_DIM}, not {head_dim}: time that head_dim and use "
            f"cost calibrated:KERNEL"
        )
    return PRESETS[name][causal]


def paper_seconds(causal: bool) -> tuple[float, ...]:
    """Time of each of the paper's points, from its speed."""
    speeds = CAUSAL_SPEEDS if causal else FULL_SPEEDS
    return tuple(
        4 * HEAD_DIM * POINT_HEADS * POINT_TOKENS * length * (0.5 if causal else 1) / speed / 1e12
        for length, speed in zip(SEGMENT_TOKENS, speeds, strict=True)
    )
