"""The base of everything that is read from a file: frozen, and unknown keys are errors."""

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
