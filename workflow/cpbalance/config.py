"""Models of the configuration: every key, its type, its limits and its default.

The configuration is parsed once, before anything runs. Unknown keys are refused, and an error
names the key, the value and what would be valid. ``workflow/schemas/config.schema.json`` is
written from these models.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from cpbalance.config_base import NO_REPEATS, Count, Model, Name, Positive
from cpbalance.config_errors import parse_model
from cpbalance.config_lengths import Lengths
from cpbalance.config_timing import Timing, check_timing
from cpbalance.names import CALIBRATED, COST_NAMES, KERNEL_NAMES, PACKING_NAMES
from cpbalance.tables import STEPS_PER_ROW_GROUP

CostName = Literal[  # type: ignore[valid-type]
    (*COST_NAMES, *(f"{CALIBRATED}{kernel}" for kernel in KERNEL_NAMES))
]


class Cluster(Model):
    """Devices and how they are shared among the parallel dimensions."""

    world_size: Count = Field(128, description="Devices.")
    tp_size: Count = Field(1, description="Tensor-parallel degree.")
    cp_sizes: Annotated[list[Count], NO_REPEATS] = Field(
        [1, 2, 4, 8, 16, 32, 64], min_length=1, description="Context-parallel degrees to compare."
    )
    tokens_per_gpu: Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)] = Field(
        8192, description="Token budget of one device."
    )

    @model_validator(mode="after")
    def _degrees_divide(self) -> "Cluster":
        if self.world_size % self.tp_size:
            raise ValueError(f"tp_size ({self.tp_size}) must divide world_size ({self.world_size})")
        ranks = self.world_size // self.tp_size
        for cp_size in self.cp_sizes:
            if ranks % cp_size:
                raise ValueError(
                    f"cp_size {cp_size} must divide world_size / tp_size ({ranks}); valid: "
                    f"{[d for d in range(1, ranks + 1) if ranks % d == 0]}"
                )
            if cp_size * self.tokens_per_gpu >= 2**31:
                raise ValueError(
                    f"a pack at cp_size {cp_size} has {cp_size * self.tokens_per_gpu} tokens; "
                    f"it must have under 2^31"
                )
        return self

    def dp_size(self, cp_size: int) -> int:
        """Groups, and so packs a step, at a CP degree."""
        return self.world_size // (self.tp_size * cp_size)

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one global batch, the same at every CP degree."""
        return self.world_size // self.tp_size * self.tokens_per_gpu


class AttentionShape(Model):
    """One attention layer."""

    q_heads: Count = Field(64, description="Query heads.")
    kv_heads: Count = Field(64, description="Key-value heads.")
    head_dim: Count = Field(128, description="Dimension of a head.")
    causal: bool = Field(False, description="Causal mask, or full attention within a document.")

    @model_validator(mode="after")
    def _groups(self) -> "AttentionShape":
        if self.q_heads % self.kv_heads:
            raise ValueError(f"kv_heads ({self.kv_heads}) must divide q_heads ({self.q_heads})")
        return self


class Shards(Model):
    """Into how many jobs the work of one file is split by step. Results do not depend on it."""

    simulate: Count = Field(
        1,
        description="Packing and costing of one CP degree: at most one shard per 50 steps, or part "
        "of them.",
    )
    time: Count = Field(1, description="Timing of one kernel: at most one shard per step timed.")


class Theory(Model):
    """The comparison of exponential with normal lengths; predictions need no settings."""

    normal_cvs: Annotated[list[Positive], NO_REPEATS] = Field(
        [1.0, 0.5, 0.25, 0.1],
        min_length=1,
        description="Standard deviation over mean of the normal lengths to compare.",
    )
    monte_carlo_packs: Annotated[int, Field(ge=2, strict=True)] = Field(
        20000, description="Simulated packs of 400 documents that check each of them."
    )


class Statistics(Model):
    """How intervals are made."""

    confidence: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.95, description="Coverage of the bootstrap intervals."
    )
    bootstrap: Count = Field(2000, description="Bootstrap resamples of the steps.")


class Export(Model):
    """What goes into the artifact of a finished run."""

    stages: Annotated[list[Literal["lengths", "packs", "costs"]], NO_REPEATS] = Field(
        [], description="Large stages to add; all can be computed again from the rest."
    )
    license: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.+-]+$")] = Field(
        "CC-BY-4.0", description="SPDX identifier of the licence of its data."
    )


class Config(Model):
    """The whole configuration of one experiment."""

    experiment: Name = Field(description="Name; outputs go to results/{experiment}/.")
    seed: Annotated[int, Field(ge=0, strict=True)] = Field(0, description="Seed of all draws.")
    steps: Count = Field(100, description="Global batches to simulate.")
    cluster: Cluster = Cluster()
    attention: dict[Name, AttentionShape] = Field(
        min_length=1, description="Attention layers, by a name of your choice."
    )
    costs: Annotated[list[CostName], NO_REPEATS] = Field(
        ["quadratic"],
        min_length=1,
        description="Cost models to simulate; calibrated:KERNEL is what timing.KERNEL gives.",
    )
    packing: Annotated[list[Literal[PACKING_NAMES]], NO_REPEATS] = Field(  # type: ignore[valid-type]
        ["concat_split"], min_length=1, description="Packing policies."
    )
    lengths: dict[Name, Lengths] = Field(
        min_length=1, description="Document lengths, by a name of your choice."
    )
    references: dict[Name, Literal["exponential", "normal"]] = Field(
        {},
        description="Name of lengths -> the article's distribution that it repeats, to compare "
        "with published values.",
    )
    timing: dict[Literal[("auto", *KERNEL_NAMES)], Timing] = Field(  # type: ignore[valid-type]
        {}, description="Kernels to time on packs, by name; auto is the best one available."
    )
    shards: Shards = Shards()
    theory: Theory = Theory()
    statistics: Statistics = Statistics()
    export: Export = Export()
    artifact: str | None = Field(
        None,
        min_length=1,
        description="Path or URL of an artifact to draw from, instead of computing anything.",
    )
    timings_from: str | None = Field(
        None,
        min_length=1,
        description="Path or URL of an artifact to take the timings from, instead of measuring.",
    )
    compare: list[str] = Field(
        [], description="Paths or URLs of two artifacts, for the target compare."
    )

    @model_validator(mode="after")
    def _two_to_compare(self) -> "Config":
        if len(self.compare) not in (0, 2):
            raise ValueError(f"compare names {len(self.compare)} artifacts; name two")
        return self

    @model_validator(mode="after")
    def _references_repeat_the_article(self) -> "Config":
        for name in self.references:
            if name not in self.lengths:
                raise ValueError(
                    f"references names lengths {name!r}; it must be one of {sorted(self.lengths)}"
                )
        setting = (self.cluster.world_size, self.cluster.tp_size, self.cluster.tokens_per_gpu)
        if self.references and setting != (128, 1, 8192):
            raise ValueError(
                "references are values for world_size 128, tp_size 1 and tokens_per_gpu 8192; "
                f"with {setting} leave them out"
            )
        return self

    @model_validator(mode="after")
    def _shards_have_steps(self) -> "Config":
        blocks = -(-self.steps // STEPS_PER_ROW_GROUP)
        if self.shards.simulate > blocks:
            raise ValueError(
                f"shards.simulate ({self.shards.simulate}) must be at most {blocks}: {self.steps} "
                f"steps make {blocks} blocks of up to {STEPS_PER_ROW_GROUP}"
            )
        return self

    @model_validator(mode="after")
    def _timing_names_what_is_there(self) -> "Config":
        check_timing(
            self.timing,
            self.costs,
            {name: shape.head_dim for name, shape in self.attention.items()},
            {
                "lengths": list(self.lengths),
                "attention": list(self.attention),
                "packing": self.packing,
                "cp_sizes": self.cluster.cp_sizes,
            },
            self.steps,
            self.shards.time,
        )
        return self

    @model_validator(mode="after")
    def _heads_allow_degrees(self) -> "Config":
        for name, shape in self.attention.items():
            for cp_size in self.cluster.cp_sizes:
                if shape.q_heads % cp_size:
                    raise ValueError(
                        f"cp_size {cp_size} must divide q_heads ({shape.q_heads}) of attention "
                        f"{name!r}; valid: "
                        f"{[d for d in range(1, shape.q_heads + 1) if shape.q_heads % d == 0]}"
                    )
                if shape.kv_heads % cp_size and cp_size % shape.kv_heads:
                    raise ValueError(
                        f"cp_size {cp_size} must divide kv_heads ({shape.kv_heads}) of attention "
                        f"{name!r}, or be a multiple of it"
                    )
        return self


def parse_config(values: Any) -> Config:
    """Parse a configuration; raises :class:`InputError`, one line that names the key."""
    return parse_model(Config, values, "config")


def resolve_path(path: str) -> Path:
    """A path of the configuration, relative to the working directory."""
    return Path(path).expanduser()
