"""Predictions beside measurements, as the templates need them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.core.record.acceptance import Lang
from console.core.record.experiment import Experiment
from console.core.record.network import network_of
from console.core.record.predictions import Compared, predictions


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows that lie outside their bands for the same reason."""

    configs: str
    why: str


@dataclass(frozen=True, slots=True)
class Predicted:
    """One quantity: the rows that have a prediction and a measurement, and their gaps."""

    rows: tuple[Compared, ...]
    gaps: tuple[Gap, ...]
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
    rows = tuple(one for one in every if one.ratio is not None)
    outside: dict[str, list[str]] = {}
    for one in rows:
        if one.inside is False:
            outside.setdefault(one.why[1 if lang == "zh" else 0], []).append(one.config)
    return Predicted(
        rows=rows,
        gaps=tuple(Gap(", ".join(configs), why) for why, configs in outside.items()),
        afterwards=any(one.made == "computed afterwards" for one in rows),
    )


def prediction_cells(experiment: Experiment) -> Mapping[str, dict[str, Any]]:
    """By configuration: every quantity's prediction, band, measurement, ratio and explanation."""
    cells: dict[str, dict[str, Any]] = {}
    for one in predictions(experiment):
        cells.setdefault(one.config, {})[one.quantity] = {
            "made": one.made if one.predicted is not None else None,
            "predicted": one.predicted,
            "low": one.low,
            "high": one.high,
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
