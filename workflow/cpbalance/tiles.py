"""Query-key pairs that a tiled kernel computes, whole tiles counted.

A kernel computes a segment of L tokens in ceil(L/M) rows of M queries; a row meets its keys in
tiles of N. Without a mask each row has ceil(L/N) tiles; with a causal mask row i ends at key
min(i·M, L), so it has ceil(min(i·M, L)/N). Whole tiles are computed whatever part of them counts:
M·N pairs each. M = N = 1 gives the exact number of pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cpbalance.attention import attention_pairs


@dataclass(frozen=True, order=True)
class Tile:
    """Queries (M) and keys (N) of one tile."""

    queries: int
    keys: int

    def __str__(self) -> str:
        return f"{self.queries}×{self.keys}"


EXACT = Tile(1, 1)

# Tiles of the forward kernels by head dimension, (full, causal). FA3: Hopper's tile_size.h; FA4:
# _tile_size_fwd_sm90 in its interface.py, so on Hopper; FA2: flash_fwd_launch_template.h (its H100
# branch; a paged cache takes 64×128), which torch's varlen kernel shares. PyTorch's CPU kernel
# cuts keys by the segment's end, so only its query blocks round up, and only under a mask.
KNOWN_TILES: dict[str, dict[int, tuple[Tile, Tile]]] = {
    "fa3": {
        64: (Tile(192, 192), Tile(192, 128)),
        128: (Tile(128, 176), Tile(128, 128)),
        192: (Tile(128, 112), Tile(128, 112)),
        256: (Tile(128, 80), Tile(128, 80)),
    },
    "fa4": {
        64: (Tile(192, 128), Tile(192, 128)),
        128: (Tile(128, 128), Tile(128, 128)),
        192: (Tile(128, 112), Tile(128, 112)),
        256: (Tile(128, 80), Tile(128, 80)),
    },
    "fa2": {128: (Tile(128, 64), Tile(128, 64))},
    "torch_varlen": {128: (Tile(128, 64), Tile(128, 64))},
    "torch_cpu": {},
}

# What a fit may choose instead, if the data say so: tiles that FlashAttention's forward kernels use
# for some head dimension or device, and none at all.
ALTERNATIVES = (
    EXACT,
    Tile(64, 64),
    Tile(64, 128),
    Tile(128, 32),
    Tile(128, 64),
    Tile(128, 80),
    Tile(128, 112),
    Tile(128, 128),
    Tile(128, 176),
    Tile(192, 128),
    Tile(192, 192),
)
# Query blocks of PyTorch's CPU kernel, by segment length, and none.
CPU_ALTERNATIVES = (EXACT, Tile(32, 1), Tile(64, 1), Tile(256, 1))


def tiles_to_try(kernel: str) -> tuple[Tile, ...]:
    """Tiles that a fit for ``kernel`` chooses among."""
    return CPU_ALTERNATIVES if kernel == "torch_cpu" else ALTERNATIVES


def known_tile(kernel: str, head_dim: int, causal: bool) -> Tile | None:
    """The tile that a kernel's source names for a head dimension, None where none is known."""
    pair = KNOWN_TILES.get(kernel, {}).get(head_dim)
    return None if pair is None else pair[causal]


def tile_pairs(num_tokens: ArrayLike, tile: Tile, causal: bool) -> NDArray[np.float64]:
    """Pairs of one head that whole tiles cover, float64, in the shape of ``num_tokens``."""
    length = np.asarray(num_tokens, dtype=np.int64)
    if tile == EXACT:
        return attention_pairs(length, causal).astype(np.float64)
    rows = -(-length // tile.queries)
    last = -(-length // tile.keys)
    if not causal:
        return (rows * last).astype(np.float64) * (tile.queries * tile.keys)
    # Tiles of the rows before the last, whose ends do not depend on the length.
    ends = np.arange(int(rows.max(initial=0)), dtype=np.int64) * tile.queries
    before = np.cumsum(-(-ends // tile.keys))
    tiles = np.where(rows > 0, before[np.maximum(rows - 1, 0)] + last, 0)
    return tiles.astype(np.float64) * (tile.queries * tile.keys)
