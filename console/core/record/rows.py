"""A run's line of the record sheet, computed from its logs and the experiment's facts."""

from collections.abc import Mapping
from dataclasses import dataclass

from console.core.reading.trainlog import TrainLog
from console.core.record.experiment import Experiment
from console.core.record.figures import Row, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """The log of one node: what was read from it, and the mirror it was read from."""

    log: TrainLog
    file: str
    """The mirror, relative to the experiment's folder."""
    sha256: str | None = None
    """Of the whole mirror; None while the log still grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakMemory:
    """Peak memory of one node during one run: a size with its source, or the reason why there is none."""

    size_bytes: int | None = None
    source: Source | None = None
    reason: str | None = None


def build_row(
    experiment: Experiment,
    run_id: str,
    *,
    logs: Mapping[str, LoggedRun],
    peaks_memory: Mapping[str, PeakMemory],
) -> Row:
    """The row of a run. `logs` and `peaks_memory` are by node; nodes left out become blanks with a reason.

    `sources` and `blanks` are keyed by field name; peak memory by `peak_memory_bytes.<node>`.
    Raises `KeyError` when the experiment has no such run.
    """
    raise NotImplementedError
