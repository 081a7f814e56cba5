"""What the rows say about the one page's first two questions, without words: speed, and where memory goes."""

from dataclasses import dataclass

from console.core.errors import InputError
from console.core.ledger.classic import classic_account
from console.core.ledger.flops import lora_parameters
from console.core.ledger.of_lab import architecture_of
from console.core.record.computers import TOGETHER
from console.core.record.experiment import Experiment
from console.core.record.figures import Row
from console.core.record.gaps import ended_well, rows_in_order
from console.report.margins import ALIKE, resolution, scatter


@dataclass(frozen=True, slots=True)
class Compared:
    """A row against the baseline; None where one of the two has no figure."""

    row: Row
    tokens_ratio: float | None
    step_ratio: float | None
    per_node: float | None
    """Tokens/s per node against the baseline's, for runs over more nodes than the baseline's."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Rows of runs that ended well and have tokens/s, fastest first."""

    ranked: tuple[Row, ...]
    baseline: Row | None
    compared: tuple[Compared, ...]
    shortest_step: Row
    tokens_differ: bool

    @property
    def fastest(self) -> Row:
        return self.ranked[0]

    @property
    def margin(self) -> float | None:
        """Tokens/s of the fastest over the second; None with one row."""
        if len(self.ranked) < 2:
            return None
        return (self.fastest.tokens_per_second or 0) / (self.ranked[1].tokens_per_second or 1)

    @property
    def scatter(self) -> float | None:
        """Twice the standard error of `margin`; None where it is not known of both rows."""
        return scatter(*self.ranked[:2]) if len(self.ranked) > 1 else None

    @property
    def resolution(self) -> float:
        """The smallest margin that is claimed."""
        return resolution(*self.ranked[:2]) if len(self.ranked) > 1 else ALIKE

    @property
    def too_close(self) -> bool:
        return self.margin is not None and self.margin - 1 < self.resolution

    @property
    def orders_differ(self) -> bool:
        """The shortest step is not the highest rate."""
        return self.shortest_step.id != self.fastest.id


def speed(experiment: Experiment) -> Speed | None:
    """None when no run that ended well has tokens/s."""
    usable = [
        row
        for row in rows_in_order(experiment)
        if ended_well(experiment, row) and row.tokens_per_second and row.steady_step_seconds
    ]
    if not usable:
        return None
    ranked = sorted(usable, key=lambda row: -(row.tokens_per_second or 0))
    base = next((row for row in usable if row.id == experiment.baseline), None)
    per_step = [row.tokens_per_step for row in usable if row.tokens_per_step]
    return Speed(
        ranked=tuple(ranked),
        baseline=base,
        compared=tuple(_against(row, base) for row in usable if base is not None and row is not base),
        shortest_step=min(usable, key=lambda row: row.steady_step_seconds or 0),
        tokens_differ=max(per_step) / min(per_step) > 1.01,
    )


def _against(row: Row, base: Row) -> Compared:
    tokens = _ratio(row.tokens_per_second, base.tokens_per_second)
    more = len(row.peak_memory_bytes) / max(1, len(base.peak_memory_bytes))
    return Compared(
        row,
        tokens,
        _ratio(row.steady_step_seconds, base.steady_step_seconds),
        tokens / more if tokens and more > 1 else None,
    )


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """Measured peak of one row against the static account of what it holds."""

    row: Row
    peaks: dict[str, int | None]
    static_bytes: int | None
    """Of one device; of all devices of the run where the peak is theirs together."""
    kind: str
    """What was measured, in the source's words."""

    @property
    def highest(self) -> int | None:
        return max((size for size in self.peaks.values() if size is not None), default=None)

    @property
    def rest_bytes(self) -> int | None:
        """Measured less static: activations, buffers, runtime. None when it is not positive."""
        if self.highest is None or self.static_bytes is None or self.highest <= self.static_bytes:
            return None
        return self.highest - self.static_bytes

    @property
    def static_share(self) -> float | None:
        if not self.highest or self.static_bytes is None:
            return None
        return self.static_bytes / self.highest


@dataclass(frozen=True, slots=True)
class Memory:
    """The course's account of this model, and every row beside it."""

    parameters: int | None
    trained: int | None
    """Adapter parameters; None when everything is trained."""
    full_bytes: int | None
    own_bytes: int | None
    """Static bytes of this lab's method, undivided."""
    lines: tuple[MemoryLine, ...]
    wider_dtype: bool
    """Weights are kept in FP32, twice what the account says."""

    @property
    def kinds(self) -> dict[str, list[str]]:
        """What was measured, and the rows that it was measured for."""
        found: dict[str, list[str]] = {}
        for line in self.lines:
            if line.kind:
                found.setdefault(line.kind, []).append(line.row.id)
        return found


def memory(experiment: Experiment) -> Memory:
    """16 bytes per trained parameter, 2 per frozen one; divided where tensor or pipeline parallelism cuts."""
    settings = experiment.profile.settings
    count = _parameters(experiment)
    trained = _trained(experiment) if settings.tuner == "lora" else None
    known = count is not None and (settings.tuner == "full" or trained is not None)
    own = classic_account(count, trained=trained).static_bytes if known and count else None
    lines = []
    for row in rows_in_order(experiment):
        config = experiment.profile.configuration(row.id)
        cut, kind = config.tensor_parallel * config.pipeline_parallel, _kind(row)
        devices = len(row.peak_memory_bytes) if TOGETHER in kind else 1
        static = None if own is None else devices * own // cut
        lines.append(MemoryLine(row, row.peak_memory_bytes, static, kind))
    return Memory(
        parameters=count,
        trained=trained,
        full_bytes=classic_account(count).static_bytes if count else None,
        own_bytes=own,
        lines=tuple(lines),
        wider_dtype=settings.dtype == "float32",
    )


def _parameters(experiment: Experiment) -> int | None:
    shapes = architecture_of(experiment.profile.model)
    if shapes is not None:
        return shapes.parameters.total
    counted = [
        run.parameters.total for run in experiment.runs.values() if run.parameters and run.purpose == "matrix"
    ]
    return round(counted[0]) if counted else None


def _trained(experiment: Experiment) -> int | None:
    settings, shapes = experiment.profile.settings, architecture_of(experiment.profile.model)
    if shapes is None:
        return None
    try:
        return lora_parameters(shapes, settings.lora_rank, tuple(settings.target_modules)).total
    except InputError:
        return None


def _kind(row: Row) -> str:
    for field, sources in row.sources.items():
        if field.startswith("peak_memory_bytes.") and sources:
            return sources[0].words.split(",")[0]
    return ""


def _ratio(own: float | None, other: float | None) -> float | None:
    return own / other if own and other else None
