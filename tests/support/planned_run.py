"""A run that was planned and that readings came of, in a journal of its own; no node is behind it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from console.cli.files import read_lab
from console.core.plan.custody import MemoryReading, Sample
from console.core.record import events as ev
from console.core.record.figures import Source
from console.engine.opening import open_recorder
from console.engine.recorder import Recorder

GIB = 1 << 30
MEMORY = MemoryReading(total_bytes=100 * GIB, available_bytes=50 * GIB, free_bytes=40 * GIB)
RUN = "E0-1"


@contextmanager
def planned_run(folder: Path, *, lab: str = "embedded", nodes: int = 2) -> Iterator[Recorder]:
    """The recorder of an experiment in `folder` with `RUN` on the first so many nodes; the first one logs."""
    with open_recorder(folder, read_lab(lab)) as recorder:
        names = list(recorder.experiment.nodes)[:nodes]
        recorder.record(
            ev.RunPlanned(
                at=recorder.now(),
                run=RUN,
                config="E0",
                attempt=1,
                purpose="matrix",
                launches=tuple(
                    ev.NodeLaunch(node=node, rank=rank, argv=(), env={}) for rank, node in enumerate(names)
                ),
                log_node=names[0],
                settings={},
            )
        )
        yield recorder


def read(recorder: Recorder, n: int, minute: float, **fields: object) -> None:
    """A reading of the node that logs, which arrived so many minutes after the run was planned."""
    run = recorder.experiment.runs[RUN]
    sample = Sample(n=n, at=60 * minute, **{"memory": MEMORY, **fields})  # type: ignore[arg-type]
    arrived = run.planned_at + timedelta(minutes=minute)
    recorder.journal.add_samples(run.log_node, recorder.experiment.name, [sample], arrived)


def end(recorder: Recorder, minute: float, logs: Mapping[str, Source] = {}) -> None:
    """The run ended well so many minutes after it was planned; `logs` by node."""
    at = recorder.experiment.runs[RUN].planned_at + timedelta(minutes=minute)
    recorder.record(ev.RunEnded(at=at, run=RUN, outcome="done", logs=dict(logs)))
