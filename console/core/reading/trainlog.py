"""Training log text -> facts. Reads every format of ms-swift 2.x to 4.x and of Megatron-SWIFT."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    StepMetrics,
    TopologyLine,
    Traceback,
    TrainSummary,
    World,
)
from console.core.reading.signatures import Signature


class TrainLogReader:
    """Reads a log as it grows: `feed` takes any chunk of bytes, however it is cut.

    `framework_hint` settles what the text leaves open. `signatures` are the line patterns of the diagnosis
    rules; each match becomes a `Symptom`. `start_byte` and `start_line` say where the first chunk stands in
    the file when reading does not begin at its head.
    """

    def __init__(
        self,
        framework_hint: str | None = None,
        *,
        signatures: Sequence[Signature] = (),
        start_byte: int = 0,
        start_line: int = 1,
    ) -> None: ...

    def feed(self, data: bytes) -> tuple[LogFact, ...]:
        """Facts completed by this chunk, in log order."""
        raise NotImplementedError

    def finish(self) -> tuple[LogFact, ...]:
        """Facts of a last line that has no newline. The reader can't be fed any more."""
        raise NotImplementedError

    @property
    def framework(self) -> Framework:
        """What the text has shown so far."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainLog:
    """A whole log, read."""

    framework: Framework
    version: str | None
    facts: tuple[LogFact, ...]
    steps: tuple[StepMetrics, ...]
    evals: tuple[EvalMetrics, ...]
    summary: TrainSummary | None
    final: FinalRecord | None
    launch: Launch | None
    world: World | None
    topology: TopologyLine | None
    dataset: DatasetLength | None
    validation_dataset: DatasetLength | None
    parameters: ModelParameters | None
    checkpoints: tuple[CheckpointSaved, ...]
    tracebacks: tuple[Traceback, ...]
    end: Ended | None
    ended: bool
    """The log shows its regular end. Success also needs exit status 0."""

    def first_cause(self) -> Traceback | None:
        """The exception that ended the run: the earliest one that is neither wrapper nor aftermath."""
        raise NotImplementedError


def read_whole(
    data: bytes, framework_hint: str | None = None, *, signatures: Sequence[Signature] = ()
) -> TrainLog:
    """Read a complete log held in memory."""
    raise NotImplementedError
