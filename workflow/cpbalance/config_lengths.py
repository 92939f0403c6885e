"""The configuration of document lengths: families, mixtures, files, and what caps do."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from cpbalance.config_base import Count, Model, Positive


class Capped(Model):
    """What happens to a document longer than the cap."""

    max_seq_len: Count | None = Field(
        None, description="Cap on a document, in tokens; null for none."
    )
    overlong: Literal["truncate", "split"] = Field(
        "truncate",
        description="A document over the cap is cut off (truncate) or becomes consecutive "
        "documents (split).",
    )


class Family(Capped):
    """A named family of document lengths, rounded down to whole tokens."""

    mean: Positive | None = Field(None, description="Mean before caps and rounding, in tokens.")
    mean_fraction: Positive | None = Field(
        None, description="The same mean as a fraction of tokens_per_gpu."
    )
    min_tokens: Count = Field(1, description="Shorter draws are raised to this many tokens.")

    @model_validator(mode="after")
    def _one_mean(self) -> "Family":
        if (self.mean is None) == (self.mean_fraction is None):
            raise ValueError("give exactly one of mean and mean_fraction")
        if self.max_seq_len is not None and self.max_seq_len < self.min_tokens:
            raise ValueError(
                f"max_seq_len ({self.max_seq_len}) is under min_tokens ({self.min_tokens})"
            )
        return self

    def with_mean(self, tokens_per_gpu: int) -> "Family":
        """The same family with its mean in tokens."""
        if self.mean_fraction is None:
            return self
        mean = self.mean_fraction * tokens_per_gpu
        return self.model_copy(update={"mean": mean, "mean_fraction": None})


class Exponential(Family):
    """Exponential lengths."""

    family: Literal["exponential"]


class Normal(Family):
    """Normal lengths, draws under min_tokens raised to it."""

    family: Literal["normal"]
    cv: Positive = Field(description="Standard deviation over mean.")


class Lognormal(Family):
    """Lognormal lengths."""

    family: Literal["lognormal"]
    cv: Positive = Field(description="Standard deviation over mean.")


class Pareto(Family):
    """Pareto lengths: P(L > l) = (scale/l)^alpha."""

    family: Literal["pareto"]
    alpha: Annotated[float, Field(gt=1, allow_inf_nan=False)] = Field(
        description="Tail index; over 1, or there is no mean."
    )


class Uniform(Family):
    """Uniform lengths between mean·(1 − spread) and mean·(1 + spread)."""

    family: Literal["uniform"]
    spread: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="Half width over mean.")


class Constant(Family):
    """All documents of one length."""

    family: Literal["constant"]


Simple = Annotated[
    Exponential | Normal | Lognormal | Pareto | Uniform | Constant,
    Field(discriminator="family"),
]


class Component(Model):
    """One part of a mixture."""

    weight: Positive = Field(description="Share of the documents, relative to the other weights.")
    lengths: Simple

    @model_validator(mode="after")
    def _no_cap(self) -> "Component":
        if self.lengths.max_seq_len is not None:
            raise ValueError("max_seq_len belongs to the mixture, not to one of its components")
        return self


class Mixture(Capped):
    """A weighted mixture of families; one cap for all."""

    family: Literal["mixture"]
    components: list[Component] = Field(min_length=1)

    def with_mean(self, tokens_per_gpu: int) -> "Mixture":
        """The same mixture with every mean in tokens."""
        parts = [
            part.model_copy(update={"lengths": part.lengths.with_mean(tokens_per_gpu)})
            for part in self.components
        ]
        return self.model_copy(update={"components": parts})


class LengthsFile(Capped):
    """Document lengths read from a file."""

    family: Literal["file"] = "file"
    file: str = Field(
        min_length=1,
        description="Path: .parquet, .feather, .arrow, .csv, .npy or .txt; .csv and .txt may end "
        "in .gz or .zst.",
    )
    column: str | None = Field(
        None, description="Column of lengths; may be left out where the file has one."
    )
    order: Literal["iid", "shuffled", "as_is"] = Field(
        "iid",
        description="iid: drawn with replacement; shuffled: each step a fresh permutation; as_is: "
        "the file's own order, every step going on where the last one ended.",
    )

    def with_mean(self, tokens_per_gpu: int) -> "LengthsFile":
        """Nothing to resolve."""
        return self


def _file_needs_no_family(value: Any) -> Any:
    if isinstance(value, dict) and "file" in value and "family" not in value:
        return {**value, "family": "file"}
    return value


Lengths = Annotated[
    Exponential | Normal | Lognormal | Pareto | Uniform | Constant | Mixture | LengthsFile,
    Field(discriminator="family"),
    BeforeValidator(_file_needs_no_family),
]
