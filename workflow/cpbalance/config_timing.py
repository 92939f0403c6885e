"""The configuration of timing runs, and what it has to agree with."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from cpbalance.config_base import NO_REPEATS, Count, Model, Name, Positive
from cpbalance.names import CALIBRATED, PACKING_NAMES


class Timing(Model):
    """What one kernel is timed on, and how."""

    lengths: Annotated[list[Name], NO_REPEATS] = Field(
        min_length=1, description="Names of lengths to time."
    )
    attention: Annotated[list[Name], NO_REPEATS] = Field(
        min_length=1, description="Names of attention layers to time."
    )
    packing: Literal[PACKING_NAMES] = Field(  # type: ignore[valid-type]
        PACKING_NAMES[0], description="Packing policy."
    )
    cp_sizes: Annotated[list[Count], NO_REPEATS] | None = Field(
        None, min_length=1, description="CP degrees to time; null for all of the cluster."
    )
    steps: Count = Field(1, description="The packs of so many first steps are timed.")
    dtype: Literal["bfloat16", "float16", "float32"] = Field(
        "bfloat16", description="Data type of queries, keys and values."
    )
    timed_heads: Count | None = Field(
        None,
        description="Time at most so many query heads of those that a rank has; null for all. "
        "Times of a rank are then extrapolated, and say so.",
    )
    direction: Literal["forward", "backward", "both"] = Field(
        "forward", description="Pass to time."
    )
    width: Positive = Field(
        0.01,
        description="A pack is settled when the 95% interval of its median is narrower than this "
        "share of it.",
    )
    budget_s: Positive = Field(
        600.0, description="Seconds to spend at most, once every pack was called."
    )
    passes: Count = Field(100, description="Passes over all packs to make at most.")
    warm_cache: bool = Field(False, description="Do not flush the L2 cache before a call.")
    expected_device: str | None = Field(
        None, description="Part of the device's name; another device is warned of."
    )
    strict_device: bool = Field(False, description="Refuse a device other than the expected one.")
    calibrate: bool = Field(
        True, description="Fit the kernel's time to what was measured, for cost calibrated:KERNEL."
    )

    @model_validator(mode="after")
    def _strict_about_something(self) -> "Timing":
        if self.strict_device and self.expected_device is None:
            raise ValueError("strict_device is true: name the device with expected_device")
        return self


def check_timing(
    timing: Mapping[str, Timing],
    costs: Sequence[str],
    heads: Mapping[str, int],
    names: Mapping[str, Sequence[Any]],
    steps: int,
    shards: int,
) -> None:
    """Raise ValueError where timing runs or time costs name what is not there.

    ``heads`` are head dimensions by name of attention layer; ``names`` holds the valid lengths,
    attention, packing and cp_sizes.
    """
    for kernel, run in timing.items():
        for key in ("lengths", "attention", "cp_sizes"):
            for name in getattr(run, key) or []:
                if name not in names[key]:
                    raise ValueError(
                        f"timing.{kernel}.{key} names {name!r}; it must be one of "
                        f"{list(names[key])}"
                    )
        if run.packing not in names["packing"]:
            raise ValueError(
                f"timing.{kernel}.packing is {run.packing}; it must be one of {names['packing']}"
            )
        if run.steps > steps:
            raise ValueError(f"timing.{kernel}.steps ({run.steps}) must be at most steps ({steps})")
        if run.steps < shards:
            raise ValueError(
                f"shards.time ({shards}) must be at most timing.{kernel}.steps ({run.steps})"
            )
    for cost in costs:
        if cost.startswith(CALIBRATED):
            _check_calibrated(cost, timing, list(heads))
        if cost == "h100-fa3":
            for name, head_dim in heads.items():
                if head_dim != 128:
                    raise ValueError(
                        f"cost h100-fa3 is for head_dim 128; attention {name!r} has {head_dim}"
                    )


def _check_calibrated(cost: str, timing: Mapping[str, Timing], attention: Sequence[str]) -> None:
    kernel = cost.removeprefix(CALIBRATED)
    run = timing.get(kernel)
    if run is None or not run.calibrate:
        raise ValueError(f"cost {cost} needs timing.{kernel} with calibrate: true")
    if run.direction == "backward":
        raise ValueError(
            f"cost {cost} is forward time and timing.{kernel}.direction is backward: "
            f"use forward or both"
        )
    for name in attention:
        if name not in run.attention:
            raise ValueError(
                f"cost {cost} is simulated for attention {name!r}: add it to "
                f"timing.{kernel}.attention"
            )
