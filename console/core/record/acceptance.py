"""The five acceptance criteria, judged from what is in the journal."""

from dataclasses import dataclass
from typing import Literal

from console.core.record.experiment import Experiment

Lang = Literal["en", "zh"]


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion. `met` None: can't be judged yet. `proof` and `missing` are in the language asked for."""

    number: int
    text: str
    text_zh: str
    met: bool | None
    proof: str
    missing: str


def criteria(experiment: Experiment, lang: Lang = "en") -> tuple[Criterion, ...]:
    """All five, in order."""
    raise NotImplementedError


def accepted(experiment: Experiment) -> bool:
    """Every criterion is met."""
    raise NotImplementedError


def verdict(experiment: Experiment, lang: Lang = "en") -> str:
    """The conclusion in one sentence, naming what falls short."""
    raise NotImplementedError
