"""A whole training log, read: the facts sorted by what they are about."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from console.core.reading.facts import (
    CheckpointSaved,
    DatasetLength,
    Ended,
    EvalMetrics,
    FinalRecord,
    Framework,
    Launch,
    LogFact,
    ModelParameters,
    NcclLine,
    OutputDir,
    StepMetrics,
    Symptom,
    TopologyLine,
    Traceback,
    TrainSummary,
    UnreadMetric,
    WorkerFailure,
    World,
)
from console.core.reading.nccl import Transport, transport
from console.core.reading.reader import TrainLogReader
from console.core.reading.signatures import Signature

__all__ = ["TrainLog", "TrainLogBuilder", "TrainLogReader", "read_whole"]

CHUNK_BYTES = 1 << 20

T = TypeVar("T", bound=LogFact)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainLog:
    """A whole log. What the log does not say is None or empty."""

    framework: Framework
    version: str | None
    steps: tuple[StepMetrics, ...]
    evals: tuple[EvalMetrics, ...]
    summary: TrainSummary | None
    final: FinalRecord | None
    launch: Launch | None
    world: World | None
    topology: TopologyLine | None
    output_dir: OutputDir | None
    dataset: DatasetLength | None
    validation_dataset: DatasetLength | None
    parameters: ModelParameters | None
    checkpoints: tuple[CheckpointSaved, ...]
    tracebacks: tuple[Traceback, ...]
    worker_failures: tuple[WorkerFailure, ...]
    symptoms: tuple[Symptom, ...]
    transport: Transport | None
    unread: tuple[UnreadMetric, ...]
    """The first lines that look like metrics and were not read."""
    unread_lines: int
    """How many there are of them; 0 is expected."""
    end: Ended | None
    ended_by: str | None
    """Which line shows the regular end; None if there is no such line."""

    @property
    def ended(self) -> bool:
        """The log shows its regular end. Success also needs exit status 0."""
        return self.ended_by is not None

    def first_cause(self) -> Traceback | None:
        """The exception that ended the run: the earliest one that is neither wrapper nor aftermath.

        An exception that training went on after was survived, so those after the last step come first.
        """
        last_step = self.steps[-1].start_byte if self.steps else -1
        real = [one for one in self.tracebacks if not one.wrapper and not one.secondary]
        aftermath = [one for one in self.tracebacks if not one.wrapper and one.secondary]
        for group in (
            [one for one in real if one.start_byte > last_step and one.framed],
            [one for one in real if one.start_byte > last_step],
            real,
            aftermath,
        ):
            if group:
                return group[0]
        return None

    def first_killed(self) -> WorkerFailure | None:
        """The worker that torchrun saw fail first, if a signal ended it that is no request to stop."""
        first = next((one for one in self.worker_failures if one.root_cause), None)
        return first if first is not None and first.exit_status < 0 and not first.asked_to_stop else None


class TrainLogBuilder:
    """Sorts facts as they come, so that a log of any size can be read without holding its bytes."""

    def __init__(self) -> None:
        self._one: dict[type[LogFact], LogFact] = {}
        self._many: dict[type[LogFact], list[LogFact]] = {}
        self._lengths: dict[str, DatasetLength] = {}

    def add(self, facts: Iterable[LogFact]) -> None:
        for fact in facts:
            kind = type(fact)
            if kind in _MANY:
                self._many.setdefault(kind, []).append(fact)
            elif isinstance(fact, DatasetLength):
                self._lengths[fact.split] = fact
            elif kind is ModelParameters:
                self._one.setdefault(kind, fact)
            else:
                self._one[kind] = fact

    def build(self, reader: TrainLogReader) -> TrainLog:
        """The log as far as `reader` has read it."""
        end = self._last(Ended)
        summary = self._last(TrainSummary)
        steps = self._all(StepMetrics)
        final = self._last(FinalRecord)
        return TrainLog(
            framework=reader.framework,
            version=reader.version,
            steps=steps,
            evals=self._all(EvalMetrics),
            summary=summary,
            final=final,
            launch=self._last(Launch),
            world=self._last(World),
            topology=self._last(TopologyLine),
            output_dir=self._last(OutputDir),
            dataset=self._lengths.get("train"),
            validation_dataset=self._lengths.get("val"),
            parameters=self._last(ModelParameters),
            checkpoints=self._all(CheckpointSaved),
            tracebacks=self._all(Traceback),
            worker_failures=self._all(WorkerFailure),
            symptoms=self._all(Symptom),
            transport=transport(self._all(NcclLine)),
            unread=self._all(UnreadMetric),
            unread_lines=reader.unread,
            end=end,
            ended_by=_ended_by(reader, end, summary, steps, final),
        )

    def _last(self, kind: type[T]) -> T | None:
        fact = self._one.get(kind)
        return fact if isinstance(fact, kind) else None

    def _all(self, kind: type[T]) -> tuple[T, ...]:
        return tuple(fact for fact in self._many.get(kind, ()) if isinstance(fact, kind))


_MANY: frozenset[type[LogFact]] = frozenset(
    {StepMetrics, EvalMetrics, CheckpointSaved, Traceback, WorkerFailure, Symptom, NcclLine, UnreadMetric}
)


def read_whole(
    data: bytes, framework_hint: str | None = None, *, signatures: Sequence[Signature] = ()
) -> TrainLog:
    """Read a complete log held in memory."""
    reader = TrainLogReader(framework_hint, signatures=signatures)
    builder = TrainLogBuilder()
    for start in range(0, len(data), CHUNK_BYTES):
        builder.add(reader.feed(data[start : start + CHUNK_BYTES]))
    builder.add(reader.finish())
    return builder.build(reader)


def _ended_by(
    reader: TrainLogReader,
    end: Ended | None,
    summary: TrainSummary | None,
    steps: Sequence[StepMetrics],
    final: FinalRecord | None,
) -> str | None:
    """The framework's last line; in files that can't hold it (jsonl, stdout alone), the closing record."""
    if end is not None:
        return "End time of running main"
    if reader.info_seen:
        return None
    if summary is not None:
        return "train_runtime record"
    complete = bool(steps) and steps[-1].total is not None and steps[-1].step >= steps[-1].total
    if complete and final is not None and final.last_checkpoint is not None:
        return "last record of logging.jsonl"
    return None
