"""What all models of the configuration are made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

# Names become parts of file names and Snakemake wildcards.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=64)]
Count = Annotated[int, Field(ge=1, strict=True)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]


class Model(BaseModel):
    """Base of all models: unknown keys are errors, values do not change after parsing."""

    model_config = ConfigDict(extra="forbid", frozen=True)
