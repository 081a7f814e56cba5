"""Which witness tells the peak memory of a run, and that no reading outside the run counts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.planned_run import GIB, MEMORY, RUN, end, planned_run, read

from console.core.plan.custody import MemoryReading
from console.engine.memory import peak_memory
from console.engine.recorder import Recorder

OURS, FOREIGN = 4711, 99


@pytest.fixture
def lab() -> str:
    return "embedded"


@pytest.fixture
def recorder(tmp_path: Path, lab: str) -> Iterator[Recorder]:
    with planned_run(tmp_path / "experiment", lab=lab) as recorder:
        end(recorder, 5)
        yield recorder


def peak_of(recorder: Recorder) -> tuple[int | None, str]:
    run = recorder.experiment.runs[RUN]
    peak = peak_memory(recorder, run, {})[run.log_node]
    return peak.size_bytes, peak.source.words if peak.source else peak.reason


def test_the_driver_is_believed_first_and_only_about_our_processes(recorder: Recorder) -> None:
    for n, size in enumerate((20, 31, 25), start=1):
        held = {OURS: size * GIB, FOREIGN: 60 * GIB}
        read(recorder, n, n, jobs={OURS: 40 * GIB}, gpu_processes=held, gpu_sm_clock_mhz=2300.0)
    read(recorder, 9, 8, jobs={OURS: GIB}, gpu_processes={OURS: 80 * GIB}, gpu_sm_clock_mhz=2300.0)
    size, words = peak_of(recorder)
    assert size == 31 * GIB, "what came after the run does not count"
    assert words.startswith("driver's figure")
    assert "highest of 3 readings" in words


def test_without_a_gpu_resident_memory_counts(recorder: Recorder) -> None:
    read(recorder, 1, 1, jobs={OURS: 2 * GIB, OURS + 1: GIB})
    read(recorder, 2, 2, jobs={OURS: 2 * GIB})
    size, words = peak_of(recorder)
    assert size == 3 * GIB
    assert words.startswith("resident memory")


def test_processes_of_another_run_do_not_count(recorder: Recorder) -> None:
    """The driver's list may be some seconds old, and a batch of readings may begin before the run."""
    held = {OURS: 9 * GIB, OURS - 1: 70 * GIB}
    jobs = {OURS: GIB, OURS - 1: GIB}
    of_run = {RUN: (OURS,), "X-1": (OURS - 1,)}
    read(recorder, 1, 1, jobs=jobs, jobs_of_run=of_run, gpu_processes=held, gpu_sm_clock_mhz=2300.0)
    assert peak_of(recorder)[0] == 9 * GIB


def test_where_runs_are_not_told_apart_what_was_there_before_does_not_count(recorder: Recorder) -> None:
    held = {OURS: 9 * GIB, OURS - 1: 70 * GIB}
    read(recorder, 1, -0.1, jobs={OURS - 1: GIB}, gpu_processes=held, gpu_sm_clock_mhz=2300.0)
    jobs = {OURS: GIB, OURS - 1: GIB}
    read(recorder, 2, 0.1, jobs=jobs, gpu_processes=held, gpu_sm_clock_mhz=2300.0)
    size, words = peak_of(recorder)
    assert size == 9 * GIB
    assert words.endswith("highest of 1 readings at 1 Hz")


@pytest.mark.parametrize(
    ("lab", "whose"),
    [
        ("embedded", "the run's processes of all nodes together (one computer)"),
        ("spark-pair", "the run's processes"),
    ],
)
def test_one_computer_as_several_nodes_is_told_where_their_processes_are_not_told_apart(
    recorder: Recorder, whose: str
) -> None:
    held = {OURS: 9 * GIB, OURS + 1: 9 * GIB}
    jobs = {OURS: GIB, OURS + 1: GIB}
    read(recorder, 1, 1, jobs=jobs, gpu_processes=held, gpu_sm_clock_mhz=2300.0)
    assert peak_of(recorder) == (18 * GIB, f"driver's figure for {whose}, highest of 1 readings at 1 Hz")


def test_no_figure_has_its_reason(recorder: Recorder) -> None:
    assert peak_of(recorder) == (None, "the node's sampler delivered nothing during the run")
    read(recorder, 1, 1, gpu_sm_clock_mhz=2300.0, jobs={OURS: GIB}, gpu_processes={OURS: None})
    assert peak_of(recorder) == (None, "neither the driver nor the framework gave a figure on this node")


def in_use(gib: int) -> MemoryReading:
    return MEMORY.model_copy(update={"available_bytes": MEMORY.total_bytes - gib * GIB})


def read_without_a_figure(recorder: Recorder) -> None:
    """The driver lists the run's process and has no size for it."""
    for n, (minute, gib) in enumerate(((-0.2, 9), (-0.1, 10), (-0.05, 60), (1, 45), (2, 52), (4, 30))):
        read(recorder, n, minute, memory=in_use(gib), gpu_sm_clock_mhz=2300.0, gpu_processes={OURS: None})


@pytest.mark.parametrize("lab", ["spark-pair"])
def test_where_the_device_shares_the_node_s_memory_its_rise_is_the_last_witness(recorder: Recorder) -> None:
    read_without_a_figure(recorder)
    size, words = peak_of(recorder)
    assert size == 42 * GIB, "the highest of the run less the median before it"
    assert words == (
        "rise of used memory (MemTotal − MemAvailable), page cache and other processes not told apart, "
        "highest of 3 readings at 1 Hz"
    )


@pytest.mark.parametrize("lab", ["h200-pair"])
def test_a_device_with_memory_of_its_own_is_not_told_by_the_node_s(recorder: Recorder) -> None:
    read_without_a_figure(recorder)
    assert peak_of(recorder) == (None, "neither the driver nor the framework gave a figure on this node")


@pytest.mark.parametrize("lab", ["spark-pair"])
@pytest.mark.parametrize("before", [None, 50], ids=["not read", "no less"])
def test_without_a_rise_there_is_no_figure(recorder: Recorder, before: int | None) -> None:
    if before is not None:
        read(recorder, 1, -0.1, memory=in_use(before))
    read(recorder, 2, 1, memory=in_use(50), gpu_sm_clock_mhz=2300.0)
    assert peak_of(recorder) == (None, "neither the driver nor the framework gave a figure on this node")
