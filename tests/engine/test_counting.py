"""Rows of a closed experiment counted again: what changed is added, what was there before stays."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from support.planned_run import GIB, RUN, end, planned_run, read

from console.core.errors import InputError
from console.core.record import events as ev
from console.core.record.figures import Source
from console.core.record.folding import fold
from console.engine.counting import count, count_again, logs_of
from console.engine.recorder import Recorder
from console.engine.watching import mirror_path
from console.journal import read_journal
from console.journal.journal import FILE

LOG = b"as it was written\n"


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    with planned_run(tmp_path / "experiment", nodes=1) as recorder:
        read(recorder, 1, 0.1, jobs={7: 3 * GIB}, jobs_of_run={RUN: (7,)})
        log = mirror_path(recorder.journal.folder, "node-a", RUN)
        log.parent.mkdir(parents=True)
        log.write_bytes(LOG)
        source = Source(words="the whole log", sha256=hashlib.sha256(LOG).hexdigest())
        end(recorder, 1, {"node-a": source})
        yield recorder


def close(recorder: Recorder) -> None:
    recorder.record(ev.ExperimentClosed(at=recorder.now() + timedelta(minutes=2), outcome="fell short"))
    recorder.journal.close()


def test_a_row_that_comes_out_different_is_added_and_the_end_stays_where_it_was(recorder: Recorder) -> None:
    run = recorder.experiment.runs[RUN]
    right = count(recorder, run, logs_of(recorder, run))
    assert right.peak_memory_bytes == {"node-a": 3 * GIB}
    wrong = right.model_copy(update={"peak_memory_bytes": {"node-a": 50 * GIB}})
    recorder.record(ev.RowRecorded(at=recorder.now(), run=RUN, row=wrong))
    folder = recorder.journal.folder
    close(recorder)

    assert count_again(folder) == ("E0",)
    rows = [event.row for event in read_journal(folder) if isinstance(event, ev.RowRecorded)]
    assert rows == [wrong, right]
    before = (folder / FILE).read_bytes()
    assert count_again(folder) == ()
    assert (folder / FILE).read_bytes() == before
    events = read_journal(folder)
    closed = next(event for event in events if isinstance(event, ev.ExperimentClosed))
    assert fold(events).last_at == closed.at


def test_an_experiment_that_goes_on_is_left_to_its_console(recorder: Recorder) -> None:
    with pytest.raises(InputError, match="goes on"):
        count_again(recorder.journal.folder)


@pytest.mark.parametrize("damage", [Path.unlink, lambda log: log.write_bytes(LOG.upper())])
def test_a_log_that_is_not_the_recorded_one_is_not_counted(
    recorder: Recorder, damage: Callable[[Path], object]
) -> None:
    run, folder = recorder.experiment.runs[RUN], recorder.journal.folder
    row = count(recorder, run, logs_of(recorder, run))
    recorder.record(ev.RowRecorded(at=recorder.now(), run=RUN, row=row))
    close(recorder)
    damage(mirror_path(folder, "node-a", RUN))
    with pytest.raises(InputError, match="not the log that was recorded"):
        count_again(folder)
    assert [event.row for event in read_journal(folder) if isinstance(event, ev.RowRecorded)] == [row]
