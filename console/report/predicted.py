"""Predictions beside measurements, as the templates need them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from console.core.record.acceptance import Lang
from console.core.record.experiment import Experiment
from console.core.record.network import network_of
from console.core.record.predictions import Compared, predictions


@dataclass(frozen=True, slots=True)
class Said:
    """Rows of which the same is said."""

    configs: str
    words: str


@dataclass(frozen=True, slots=True)
class Predicted:
    """One quantity: the rows that have a prediction and a measurement, and their gaps."""

    rows: tuple[Compared, ...]
    gaps: tuple[Said, ...]
    """Why rows lie outside their bands."""
    bases: tuple[Said, ...]
    """Where rows were not as the prediction assumes."""
    afterwards: bool
    """At least one prediction was not made before its run."""


def predicted(experiment: Experiment, lang: Lang) -> dict[str, Predicted]:
    """By quantity."""
    every = predictions(experiment)
    return {
        quantity: _one_quantity([one for one in every if one.quantity == quantity], lang)
        for quantity in ("memory_bytes", "step_seconds")
    }


def _one_quantity(every: list[Compared], lang: Lang) -> Predicted:
    rows, which = tuple(one for one in every if one.ratio is not None), 1 if lang == "zh" else 0
    return Predicted(
        rows=rows,
        gaps=_grouped((one.config, one.why[which]) for one in rows if one.inside is False),
        bases=_grouped((one.config, one.basis[which]) for one in every if one.basis[which]),
        afterwards=any(one.made == "computed afterwards" for one in rows),
    )


def _grouped(said: Iterable[tuple[str, str]]) -> tuple[Said, ...]:
    configs: dict[str, list[str]] = {}
    for config, words in said:
        configs.setdefault(words, []).append(config)
    return tuple(Said(", ".join(of), words) for words, of in configs.items())


def prediction_cells(experiment: Experiment) -> Mapping[str, dict[str, Any]]:
    """By configuration: every quantity's prediction, band, measurement, ratio and explanation."""
    cells: dict[str, dict[str, Any]] = {}
    for one in predictions(experiment):
        cells.setdefault(one.config, {})[one.quantity] = {
            "made": one.made if one.predicted is not None else None,
            "predicted": one.predicted,
            "low": one.low,
            "high": one.high,
            "expected": one.expected,
            "expected_low": one.expected_band[0],
            "expected_high": one.expected_band[1],
            "basis": one.basis[0],
            "basis_zh": one.basis[1],
            "measured": one.measured,
            "ratio": one.ratio,
            "inside_band": one.inside,
            "why": one.why[0],
            "why_zh": one.why[1],
            "missing": one.missing,
        }
    return cells


def network_facts(experiment: Experiment) -> dict[str, Any] | None:
    """The all-reduce between the nodes, for the environment; None where it was not done."""
    found = network_of(experiment)
    if found is None:
        return None
    return {
        "nodes": list(found.nodes),
        "backend": found.backend,
        "way": found.way,
        "largest_bytes": found.largest_bytes,
        "seconds": found.seconds,
        "busbw_bytes_per_second": found.busbw_bytes_per_second,
        "sums_right": found.sums_right,
        "problems": list(found.problems),
        "evidence": found.evidence,
    }
