"""What all models of the configuration are made of."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

# Names become parts of file names and Snakemake wildcards.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=64)]
Count = Annotated[int, Field(ge=1, strict=True)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]


def _no_repeats(values: list[Any]) -> list[Any]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value!r} stands there twice; name each once")
    return values


# Of a list: what stands there twice would be computed, and counted, twice.
NO_REPEATS = AfterValidator(_no_repeats)


class Model(BaseModel):
    """Base of all models: unknown keys are errors, values do not change after parsing."""

    model_config = ConfigDict(extra="forbid", frozen=True)
