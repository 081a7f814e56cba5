"""The denominator of MFU: what the run's devices could do at most, and who says so."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from console.core.plan.matrix import Settings
from console.core.record.cells import Cell
from console.core.record.experiment import Experiment
from console.core.record.figures import Source
from console.core.record.views import RunView


@dataclass(frozen=True, slots=True)
class Peak:
    """The sum over the run's devices, and what it is."""

    tflops: Cell
    words: str = ""


def peak(experiment: Experiment, run: RunView, settings: Settings) -> Peak:
    """Measured matrix products of all the run's nodes if each has one, else the profile's peak."""
    measured = {
        node: _measured(experiment.nodes[node].facts) for node in run.nodes if node in experiment.nodes
    }
    found = {node: one for node, one in measured.items() if one is not None}
    if run.nodes and len(found) == len(run.nodes):
        return _measured_peak(experiment, found, settings)
    for stated in experiment.profile.peaks:
        if stated.dtype == settings.dtype:
            total = stated.tflops * len(run.nodes)
            words = (
                f"{stated.origin} dense {stated.dtype}: {len(run.nodes)} × {stated.tflops:g} TFLOP/s "
                f"({stated.source})"
            )
            return Peak(Cell.of(total, Source(words=words, file=None)), words)
    lacking = ", ".join(node for node in run.nodes if node not in found)
    return Peak(
        Cell.blank(
            f"no matrix product was measured on {lacking}, and the profile states no {settings.dtype} peak"
        )
    )


def _measured(facts: Mapping[str, Any]) -> tuple[float, str] | None:
    value = facts.get("matmul_tflops")
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        return None
    return float(value), str(facts.get("matmul_dtype") or "unknown dtype")


def _measured_peak(
    experiment: Experiment, found: Mapping[str, tuple[float, str]], settings: Settings
) -> Peak:
    total = sum(value for value, _ in found.values())
    dtypes = " and ".join(sorted({dtype for _, dtype in found.values()}))
    parts = " + ".join(f"{node} {value:.4g}" for node, (value, _) in found.items())
    summed = f"{parts} = {total:.4g}" if len(found) > 1 else parts
    words = f"measured dense {dtypes} matrix product: {summed} TFLOP/s (checklist)"
    if dtypes != settings.dtype:
        words += f"; the run trains in {settings.dtype}"
    sources = [
        Source(
            words=f"{value:.4g} TFLOP/s, {dtype}, measured on {node}",
            node=node,
            file=_evidence(experiment, node),
        )
        for node, (value, dtype) in found.items()
    ]
    return Peak(Cell.of(total, *sources), words)


def _evidence(experiment: Experiment, node: str) -> str | None:
    """The file that keeps the micro-benchmark's answer."""
    for item in experiment.items.values():
        for step in item.evidence:
            if step.node == node and "matmul_tflops" in step.answer:
                return step.evidence
    return None
