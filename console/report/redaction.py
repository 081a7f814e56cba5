"""Masks secrets in everything that leaves the console, and counts them."""

from dataclasses import dataclass
from math import isfinite
from typing import Any

from console.core.text import clean, is_secret_name, redact

MASK = "[redacted]"


@dataclass(slots=True)
class Redactor:
    """One per exported file, so that each file can say how many secrets were masked in it."""

    count: int = 0

    def __call__(self, text: str) -> str:
        """`text` without secrets and without anything a terminal could act on."""
        masked, count = redact(clean(text))
        self.count += count
        return masked

    def plain(self, value: Any, *, name: str = "") -> Any:
        """A JSON value with every string masked; numbers that JSON does not know become None."""
        match value:
            case str() if is_secret_name(name) and value:
                self.count += value != MASK
                return MASK
            case str():
                return self(value)
            case float() if not isfinite(value):
                return None
            case dict():
                return {self(str(key)): self.plain(part, name=str(key)) for key, part in value.items()}
            case list() | tuple():
                return [self.plain(part) for part in value]
            case None | bool() | int() | float():
                return value
            case _:
                return self(str(value))
