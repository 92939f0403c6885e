"""A kernel's time as a function of its segments: the model that calibration fits.

One call on n segments of L tokens, with H query heads of dimension D, takes

    fixed + segment·H·n + token·H·ΣL + flop·4·D·H·Σ tile_pairs(L)

seconds; see :mod:`cpbalance.tiles` for the last sum. A kernel that is called segment by segment
(``segment_loop``) pays its segment once for all heads: H counts as 1 in the second term.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cpbalance.attention import FORWARD_FLOPS_PER_PAIR_AND_DIM
from cpbalance.errors import InputError
from cpbalance.tiles import Tile, tile_pairs

TERMS = ("fixed", "segment", "token", "flop")
SCHEMA = "calibration/1"


@dataclass(frozen=True)
class KernelTime:
    """Coefficients in seconds by term (absent means 0), and the tile that pairs round up to."""

    coefficients: Mapping[str, float]
    tile: Tile
    segment_loop: bool = False

    @property
    def fixed(self) -> float:
        """Seconds of a call, whatever it is given."""
        return self.coefficients.get("fixed", 0.0)

    def segment_seconds(
        self, num_tokens: ArrayLike, q_heads: int, head_dim: int, causal: bool
    ) -> NDArray[np.float64]:
        """Seconds that segments add to a call of ``q_heads`` heads, in their shape."""
        length = np.asarray(num_tokens, dtype=np.float64)
        at = self.coefficients.get
        flops = (
            FORWARD_FLOPS_PER_PAIR_AND_DIM * head_dim * tile_pairs(num_tokens, self.tile, causal)
        )
        a_head = at("token", 0.0) * length + at("flop", 0.0) * flops
        launch = at("segment", 0.0) * (1 if self.segment_loop else q_heads)
        return launch + q_heads * a_head


def fitted_model(found: Any, where: str, direction: str = "forward") -> KernelTime:
    """The model of a calibration document; ``where`` names it in errors.

    Raises :class:`~cpbalance.errors.InputError` for another schema or a direction not fitted.
    """
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise InputError(f"{where}: is no {SCHEMA} document; make it with cpbalance calibrate")
    if direction not in found["directions"]:
        raise InputError(
            f"{where}: has no {direction} model, only {', '.join(found['directions'])}; time that "
            f"direction and calibrate again"
        )
    fitted = found["directions"][direction]
    return KernelTime(fitted["coefficients"], Tile(*fitted["tile"]), fitted["segment_loop"])


def check_fits(found: Mapping[str, Any], where: str, head_dim: int, causal: bool) -> None:
    """Raise :class:`~cpbalance.errors.InputError` where a calibration is of another attention."""
    for key, wanted in (("head_dim", head_dim), ("causal", causal)):
        if found["attention"][key] != wanted:
            raise InputError(
                f"{where}: was fitted with {key} {found['attention'][key]}, the attention has "
                f"{wanted}; time this attention and calibrate again"
            )
