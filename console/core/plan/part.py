"""The base of everything that is read from a file: frozen, and unknown keys are errors."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _no_boolean(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("expected a number, not true or false")
    return value


Number = Annotated[float, BeforeValidator(_no_boolean)]
"""As a person writes it. Not pydantic's strict one: PyYAML makes a text of `1e-4`, which has to be read."""
Integer = Annotated[int, BeforeValidator(_no_boolean)]

Variables = dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str]
"""Environment variables by name."""


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
