"""Rows of the record sheet from what is kept of a run: its logs, its readings, its events."""

import hashlib
from pathlib import Path

from console.core.errors import InputError
from console.core.record import events as ev
from console.core.record.figures import Row
from console.core.record.folding import fold
from console.core.record.rows import LoggedRun, build_row
from console.core.record.views import RunView
from console.engine.memory import peak_memory
from console.engine.power import mean_power
from console.engine.recorder import Recorder
from console.engine.watching import mirror_path, mirrored_log, relative_mirror
from console.journal import Journal
from console.journal.lock import ExperimentLock


def logs_of(recorder: Recorder, run: RunView) -> dict[str, LoggedRun]:
    """The mirrored log of every node that took part."""
    config = recorder.experiment.profile.configuration(run.config)
    return {
        node: LoggedRun(
            log=mirrored_log(recorder.journal.folder, node, run.id, config.mode),
            file=relative_mirror(node, run.id),
            sha256=run.logs[node].sha256 if node in run.logs else None,
        )
        for node in run.nodes
    }


def count(recorder: Recorder, run: RunView, logs: dict[str, LoggedRun]) -> Row:
    """The row of an ended run."""
    peaks = peak_memory(recorder, run, {node: logged.log for node, logged in logs.items()})
    return build_row(
        recorder.experiment, run.id, logs=logs, peaks_memory=peaks, power=mean_power(recorder, run)
    )


def count_again(folder: Path) -> tuple[str, ...]:
    """Count every row of a closed experiment once more; returns the ids of those that came out different.

    The journal keeps the rows of before. Raises `InputError` while the experiment goes on and when a log is
    not the one that was recorded, `JournalError`.
    """
    with ExperimentLock(folder):
        with Journal(folder, read_only=True) as journal:
            kept = Recorder(journal, fold(event for _, event in journal.events()))
            changed = _counted_differently(kept)
        if changed:
            with Recorder(Journal(folder), kept.experiment) as recorder:
                for row in changed:
                    recorder.record(ev.RowRecorded(at=recorder.now(), run=row.run, row=row))
    return tuple(row.id for row in changed)


def _counted_differently(recorder: Recorder) -> tuple[Row, ...]:
    """The rows as they come out now, of those that came out otherwise before."""
    experiment, folder = recorder.experiment, recorder.journal.folder
    if experiment.outcome is None:
        raise InputError(
            f"{folder} holds an experiment that goes on",
            why="the console that works on it counts its rows",
            next_step="count again when it is closed",
        )
    runs = [experiment.runs[row.run] for row in experiment.rows.values()]
    for run in runs:
        _check_logs(folder, run)
    counted = (count(recorder, run, logs_of(recorder, run)) for run in runs)
    return tuple(row for row in counted if row != experiment.rows[row.id])


def _check_logs(folder: Path, run: RunView) -> None:
    """Raises `InputError` when a log is gone or differs from its recorded sha256."""
    for node, recorded in run.logs.items():
        path = mirror_path(folder, node, run.id)
        if recorded.sha256 is not None and _sha256(path) != recorded.sha256:
            raise InputError(
                f"{path} is not the log that was recorded",
                why=f"its sha256 should be {recorded.sha256}",
                next_step="put the recorded log back; the rows stay as they were counted",
            )


def _sha256(path: Path) -> str | None:
    """None for a file that can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
