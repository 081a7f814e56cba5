"""The base of everything that is read from a file: frozen, and unknown keys are errors."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Variables = dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str]
"""Environment variables by name."""


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
