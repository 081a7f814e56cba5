"""Rows of the record sheet from what is kept of a run: its logs, its readings, its events."""

from pathlib import Path

from console.core.errors import InputError
from console.core.record import events as ev
from console.core.record.experiment import fold
from console.core.record.figures import Row
from console.core.record.rows import LoggedRun, build_row
from console.core.record.views import RunView
from console.engine.memory import peak_memory
from console.engine.power import mean_power
from console.engine.recorder import Recorder
from console.engine.watching import mirrored_log, relative_mirror
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

    The journal keeps the rows of before. Raises `InputError` while the experiment goes on, `JournalError`.
    """
    with ExperimentLock(folder):
        journal = Journal(folder)
        recorder = Recorder(journal, fold(event for _, event in journal.events()))
        experiment = recorder.experiment
        if experiment.outcome is None:
            raise InputError(
                f"{folder} holds an experiment that goes on",
                why="the console that works on it counts its rows",
                next_step="count again when it is closed",
            )
        changed = []
        for config, row in experiment.rows.items():
            run = experiment.runs[row.run]
            counted = count(recorder, run, logs_of(recorder, run))
            if counted != row:
                recorder.record(ev.RowRecorded(at=recorder.now(), run=run.id, row=counted))
                changed.append(config)
        journal.close()
    return tuple(changed)
