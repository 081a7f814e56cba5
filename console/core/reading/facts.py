"""What one place in a training log says, as frozen values.

Every fact knows its source: `start_byte` and `end_byte` of the text it was read from (end exclusive,
counted from the start of the log file) and `line`, the 1-based number that an editor would show for it.
A key that the log does not have is None. NaN and infinity are ordinary floats.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

Framework = Literal["swift", "megatron", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFact:
    """Base of all facts: where in the log it stands."""

    start_byte: int
    end_byte: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed(LogFact):
    """A metric record with the framework's own clock.

    `printed_speed_seconds` is the framework's cumulative mean since the start of training (warm-up,
    evaluation and checkpoints included): never a step time. `elapsed_seconds` is that mean times the steps
    since the start, so it has the resolution of the mean; `elapsed_half_width` says how exact it is.
    `printed_elapsed_seconds` is the printed text, whole seconds.
    """

    step: int
    total: int | None
    start_step: int = 0
    epoch: float | None = None
    memory_gib: float | None = None
    printed_speed_seconds: float | None = None
    printed_speed_half_width: float | None = None
    printed_elapsed_seconds: float | None = None
    elapsed_seconds: float | None = None
    elapsed_half_width: float | None = None
    extras: Mapping[str, float | str | None] = field(default_factory=dict)

    @property
    def memory_bytes(self) -> int | None:
        """`memory_gib` in bytes (1 GiB = 2**30)."""
        if self.memory_gib is None or not isfinite(self.memory_gib):
            return None
        return round(self.memory_gib * 2**30)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMetrics(Timed):
    """One logged training step. The loss is the mean over the logging window that ends here."""

    loss: float | None = None
    grad_norm: float | None = None
    learning_rate: float | None = None
    token_acc: float | None = None
    tokens_seen: int | None = None
    mfu: float | None = None
    samples_seen: int | None = None
    iteration_seconds: float | None = None
    """Megatron 3.x prints the mean step time of the logging window itself."""
    tflops_per_gpu: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalMetrics(Timed):
    """One validation. `values` holds every other `eval_...` number under its printed name."""

    loss: float | None = None
    token_acc: float | None = None
    runtime_seconds: float | None = None
    values: Mapping[str, float | str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSummary(Timed):
    """The record that `swift sft` writes once, after the last step."""

    train_loss: float | None = None
    runtime_seconds: float | None = None
    samples_per_second: float | None = None
    steps_per_second: float | None = None
    total_flos: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalRecord(LogFact):
    """The last record of `logging.jsonl`. It is written after a crash too, so it proves nothing."""

    last_checkpoint: str | None
    best_checkpoint: str | None
    best_metric: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(LogFact):
    """A progress bar: `label` is its text (Train, Val, Evaluate, Map, Loading ...)."""

    label: str
    done: int
    total: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch(LogFact):
    """The `run sh:` line: the command as the launcher split it, and the torchrun layout found in it."""

    argv: tuple[str, ...]
    nproc_per_node: int | None
    nnodes: int | None
    node_rank: int | None
    master_addr: str | None
    master_port: int | None
    resume_step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class World(LogFact):
    """`rank` is -1 when the process runs without torchrun."""

    rank: int
    local_rank: int
    world_size: int
    local_world_size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwiftVersion(LogFact):
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MegatronVersion(LogFact):
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyLine(LogFact):
    """Parallel sizes as Megatron prints them; printed by global rank 0 only."""

    tp: int
    pp: int
    vpp: int | None
    cp: int | None
    ep: int | None
    etp: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDir(LogFact):
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggingFile(LogFact):
    """Where the framework says it writes `logging.jsonl`."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetLength(LogFact):
    """Tokens per sample. The first line of a run is the training split, the second the validation split."""

    mean: float
    std: float
    min: float
    max: float
    size: int
    split: Literal["train", "val"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParameters(LogFact):
    """Parameter counts, from a text that prints them in millions with four digits after the point."""

    kind: str
    total: int
    trainable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(LogFact):
    """`Start time of running main`; `at` is the node's local time, as printed."""

    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(LogFact):
    """`End time of running main`: the framework's own last line."""

    ok: bool
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSaved(LogFact):
    path: str
    step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCheckpoint(LogFact):
    """`last_model_checkpoint:` or `best_model_checkpoint:`; None after a crash, no sign of success."""

    which: Literal["last", "best"]
    path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traceback(LogFact):
    """A Python exception. `kind` is its class as printed, `rank` that of a `[rankN]:` prefix.

    `text` is an excerpt (first and last lines). `framed` is False for an exception line without frames.
    `wrapper` marks torchrun's ChildFailedError and the like, which only report that a worker died;
    `secondary` marks what a rank says when its peer has died or when it was told to stop.
    """

    kind: str
    message: str
    rank: int | None
    text: str
    framed: bool
    wrapper: bool
    secondary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFailure(LogFact):
    """One entry of torchrun's failure table.

    `exit_status` is minus the signal where one ended it; `at` the node's local time, `YYYY-MM-DD_HH:MM:SS`.
    """

    rank: int
    local_rank: int | None
    exit_status: int
    pid: int | None
    at: str | None
    root_cause: bool

    @property
    def asked_to_stop(self) -> bool:
        """Ended by SIGINT or SIGTERM."""
        return self.exit_status in (-2, -15)


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclLine(LogFact):
    """A line of NCCL's own log that says which way the bytes travel. See `nccl.py`."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadMetric(LogFact):
    """A line that looks like metrics, which no format took. See `unread.py`."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom(LogFact):
    """A line that matched a signature of `checklists/diagnosis.yaml`."""

    signature: str
    text: str
    groups: tuple[str, ...]
    rank: int | None
