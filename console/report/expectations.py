"""Hypotheses beside what was measured. A text is judged only where its wording leaves no doubt."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from console.core.record.experiment import Experiment
from console.core.record.figures import Row
from console.core.record.gaps import ended_well
from console.report.margins import ALIKE, resolution

Outcome = Literal["agrees", "contradicted", "reader", "baseline", "no figure"]

HALF = (0.45, 0.6)
"""Of the other's step time: what passes for half of it, overheads of the exchange included."""

_HALF = re.compile(r"\bhalf the step time\b|减半", re.IGNORECASE)
_SHORTER = re.compile(r"\bfaster\b|\bshorter\b|更快|较快|缩短|快于", re.IGNORECASE)
_LONGER = re.compile(r"\bslower\b|\blonger step|拖住|更慢|较慢|慢于|变慢", re.IGNORECASE)
_DOUBT = re.compile(r"\b(not|no|never|neither|unless)\b|n't\b|不|未必|没有|并非", re.IGNORECASE)
_THAN = re.compile(
    r"(?P<word>faster|shorter|slower|longer|快|慢)(?: step)?(?: than|于)\s*(?P<other>[A-Za-z][\w-]*)",
    re.IGNORECASE,
)
_OF_ANOTHER = r"\b{}\s+(?:is|will|was|would|should|gets|runs|trains|takes)\b"
"""A sentence about another configuration than the one it was written for."""
_BETWEEN = re.compile(r"\bbetween (\S+?) and ([\w-]+)|介于\s*(\S+?)\s*[与和]\s*([\w-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Expectation:
    """One configuration's hypothesis: its text, what came of it, and the figures that say so.

    `reader` means that the wording can't be judged by rule: the measured ratio stands beside it.
    `step_ratio` is step time over that of `against`.
    """

    config: str
    text: str
    outcome: Outcome
    against: str = ""
    step_ratio: float | None = None
    tokens_ratio: float | None = None


def expectations(experiment: Experiment) -> tuple[Expectation, ...]:
    """In the order of the configurations; those that were not asked for at the end."""
    usable = {name: row for name, row in experiment.rows.items() if ended_well(experiment, row)}
    ids = [config for config in experiment.configurations if config in experiment.hypotheses]
    ids += [config for config in experiment.hypotheses if config not in ids]
    baseline = experiment.baseline
    return tuple(_judge(config, experiment.hypotheses[config], usable, baseline) for config in ids)


def _judge(config: str, text: str, rows: Mapping[str, Row], baseline: str) -> Expectation:
    own = rows.get(config)
    if own is None or own.steady_step_seconds is None:
        return Expectation(config, text, "no figure")
    if between := _between(text, own, rows):
        return Expectation(config, text, between)
    named = [other for other in rows if other != config and re.search(rf"\b{re.escape(other)}\b", text)]
    if len(named) > 1:
        return _judge_each(config, text, named, rows, baseline)
    against = named[0] if len(named) == 1 else baseline
    if config == baseline and not named:
        return Expectation(config, text, "baseline")
    other = rows.get(against)
    if other is None or not other.steady_step_seconds or against == config:
        return Expectation(config, text, "no figure", against)
    step = own.steady_step_seconds / other.steady_step_seconds
    tokens = _ratio(own.tokens_per_second, other.tokens_per_second)
    turned = any(re.search(_OF_ANOTHER.format(re.escape(name)), text) for name in named)
    outcome = "reader" if turned else _direction(text, own, other)
    return Expectation(config, text, outcome, against, step, tokens)


def _judge_each(
    config: str, text: str, named: list[str], rows: Mapping[str, Row], baseline: str
) -> Expectation:
    """Each comparison of "faster than E0, but slower than E1" has to hold, and the text makes no other."""
    own = rows[config]
    claims = {
        found["other"]: found["word"].lower() in ("faster", "shorter", "快") for found in _THAN.finditer(text)
    }
    outcome: Outcome = "reader"
    against = baseline if baseline in named else named[0]
    if claims.keys() == set(named) and not _DOUBT.search(text):
        found = {other: _compared(own, rows[other], shorter) for other, shorter in claims.items()}
        for worst in ("agrees", "reader", "contradicted"):
            if other := next((name for name in named if found[name] == worst), None):
                outcome, against = found[other], against if worst == "agrees" else other
    step = _ratio(own.steady_step_seconds, rows[against].steady_step_seconds)
    tokens = _ratio(own.tokens_per_second, rows[against].tokens_per_second)
    return Expectation(config, text, outcome, against, step, tokens)


def _between(text: str, own: Row, rows: Mapping[str, Row]) -> Outcome | None:
    found = _BETWEEN.search(text)
    if found is None:
        return None
    names = [name for name in found.groups() if name]
    times = [rows[name].steady_step_seconds for name in names if name in rows]
    known = [seconds for seconds in times if seconds is not None]
    if len(known) != 2 or own.steady_step_seconds is None:
        return "no figure"
    if _DOUBT.search(text):
        return "reader"
    return "agrees" if min(known) <= own.steady_step_seconds <= max(known) else "contradicted"


def _direction(text: str, own: Row, other: Row) -> Outcome:
    shorter, longer = bool(_SHORTER.search(text)), bool(_LONGER.search(text))
    if _DOUBT.search(text):
        return "reader"
    if _HALF.search(text) and not longer:
        ratio = _ratio(own.steady_step_seconds, other.steady_step_seconds) or 1
        if HALF[0] <= ratio <= HALF[1]:
            return "agrees"
        return "reader" if _compared(own, other, shorter=True) == "agrees" else "contradicted"
    return "reader" if shorter == longer else _compared(own, other, shorter)


def _compared(own: Row, other: Row, shorter: bool) -> Outcome:
    """Whether the step is shorter (longer) than the other's. Within the scatter of both it can't be told."""
    ratio = _ratio(own.steady_step_seconds, other.steady_step_seconds)
    if ratio is None:
        return "reader"
    if ALIKE <= abs(ratio - 1) < resolution(own, other):
        return "reader"
    return "agrees" if abs(ratio - 1) >= ALIKE and (ratio < 1) == shorter else "contradicted"


def _ratio(own: float | None, other: float | None) -> float | None:
    return own / other if own and other else None
