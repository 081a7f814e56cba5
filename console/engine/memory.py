"""The peak memory of a run on each node, from the best witness there is."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import median

from console.core.errors import InputError
from console.core.ledger.of_lab import device_of
from console.core.plan.custody import Sample
from console.core.plan.profile import Profile
from console.core.reading.trainlog import TrainLog
from console.core.record.computers import TOGETHER, computer_of
from console.core.record.figures import Source
from console.core.record.rows import PeakMemory
from console.core.record.views import RunView
from console.engine.recorder import Recorder
from console.engine.watching import relative_mirror

SLACK = timedelta(seconds=3)
BEFORE = timedelta(seconds=15)
"""In readings that don't tell runs apart, what was there shortly before a run is not of it."""


def peak_memory(recorder: Recorder, run: RunView, logs: Mapping[str, TrainLog]) -> dict[str, PeakMemory]:
    """Per node: what the driver says of the run's processes, else what the framework reserved on the rank
    that logs, else the resident memory of the run's processes (nodes without a GPU), else how far the node's
    used memory rose (devices that share it)."""
    return {node: _of_node(recorder, run, node, logs.get(node)) for node in run.nodes}


@dataclass(slots=True)
class _Highest:
    """The most that was seen in the readings of a run; None: no reading told it."""

    readings: int = 0
    told_apart: bool = True
    """Whether the readings tell one node's processes from another's on the same computer."""
    driver_bytes: int | None = None
    resident_bytes: int | None = None
    used_before: list[int] = field(default_factory=list)
    """Used memory of the whole node in the readings shortly before the run."""
    used_bytes: int | None = None

    @property
    def rise_bytes(self) -> int | None:
        """Most used memory of the node less what was in use before the run, by the median."""
        if self.used_bytes is None or not self.used_before:
            return None
        return self.used_bytes - round(median(self.used_before))

    def take(self, sample: Sample, pids: Set[int]) -> None:
        """One reading, of which the run's processes are `pids`."""
        self.readings += 1
        self.told_apart &= sample.jobs_of_run is not None
        self.used_bytes = _larger(self.used_bytes, _used(sample))
        self.driver_bytes = _larger(self.driver_bytes, _driver_bytes(sample, pids))
        if pids and sample.gpu_sm_clock_mhz is None:
            self.resident_bytes = _larger(self.resident_bytes, sum(sample.jobs[pid] for pid in pids))


def _of_node(recorder: Recorder, run: RunView, node: str, log: TrainLog | None) -> PeakMemory:
    seen = _during(recorder, run, node)
    if seen.driver_bytes is not None:
        words = "driver's figure for the run's processes"
        if not seen.told_apart and _beside(recorder, run, node):
            words += f" {TOGETHER}"
        source = _sampled(node, words, seen.readings)
        return PeakMemory(size_bytes=seen.driver_bytes, source=source)
    framework = _framework(run, node, log)
    if framework is not None:
        return framework
    if seen.resident_bytes is not None:
        source = _sampled(node, "resident memory of the run's processes", seen.readings)
        return PeakMemory(size_bytes=seen.resident_bytes, source=source)
    if not seen.readings:
        return PeakMemory(reason="the node's sampler delivered nothing during the run")
    if seen.rise_bytes is not None and seen.rise_bytes > 0 and _shares_memory(recorder.experiment.profile):
        words = "rise of used memory (MemTotal − MemAvailable), page cache and other processes not told apart"
        return PeakMemory(size_bytes=seen.rise_bytes, source=_sampled(node, words, seen.readings))
    return PeakMemory(reason="neither the driver nor the framework gave a figure on this node")


def _shares_memory(profile: Profile) -> bool:
    """Whether the device's memory is the node's, as on GB10, where the driver may print `[N/A]`."""
    try:
        device = device_of(profile)
    except InputError:
        return False
    return device is not None and device.unified


def _used(sample: Sample) -> int:
    return sample.memory.total_bytes - sample.memory.available_bytes


def _driver_bytes(sample: Sample, pids: Set[int]) -> int | None:
    held = [sample.gpu_processes[pid] for pid in pids if pid in sample.gpu_processes]
    known = [size for size in held if size is not None]
    return sum(known) if known else None


def _larger(one: int | None, other: int | None) -> int | None:
    return max((size for size in (one, other) if size is not None), default=None)


def _framework(run: RunView, node: str, log: TrainLog | None) -> PeakMemory | None:
    """`memory(GiB)` of the log is torch's peak of reserved memory on the rank that logs."""
    if log is None or node != run.log_node:
        return None
    step = max(
        (s for s in log.steps if s.memory_bytes is not None), key=lambda s: s.memory_bytes or 0, default=None
    )
    if step is None:
        return None
    source = Source(
        words="memory(GiB) of the log: torch's peak of reserved memory",
        file=relative_mirror(node, run.id),
        node=node,
        start_byte=step.start_byte,
        end_byte=step.end_byte,
        line=step.line,
    )
    return PeakMemory(size_bytes=step.memory_bytes, source=source)


def _during(recorder: Recorder, run: RunView, node: str) -> _Highest:
    """Readings come late and in batches, so those of the run before are told apart by their processes."""
    ends, seen = (run.ended_at or recorder.now()) + SLACK, _Highest()
    before: set[int] = set()
    for at, sample in recorder.journal.samples(node, run.planned_at - BEFORE, ends):
        if at <= run.planned_at:
            before |= sample.jobs.keys()
            seen.used_before.append(_used(sample))
        else:
            seen.take(sample, _pids(sample, run.id, before))
    return seen


def _beside(recorder: Recorder, run: RunView, node: str) -> bool:
    """Whether another node of the run is the same computer."""
    computers = [computer_of(recorder.experiment, name) for name in run.nodes]
    return computers.count(computer_of(recorder.experiment, node)) > 1


def _pids(sample: Sample, run: str, before: Set[int]) -> Set[int]:
    if sample.jobs_of_run is None:
        return sample.jobs.keys() - before
    return sample.jobs.keys() & set(sample.jobs_of_run.get(run, ()))


def _sampled(node: str, words: str, readings: int) -> Source:
    return Source(
        words=f"{words}, highest of {readings} readings at 1 Hz",
        file="experiment.sqlite3#samples",
        node=node,
    )
