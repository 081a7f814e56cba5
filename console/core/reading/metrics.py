"""Metric records -> facts."""

from collections.abc import Callable, Mapping

from console.core.reading import formats
from console.core.reading.elapsed import Elapsed, Observation, elapsed, start_step
from console.core.reading.facts import EvalMetrics, StepMetrics, Timed, TrainSummary
from console.core.reading.formats import Record
from console.core.reading.lines import excerpt
from console.core.reading.numbers import number, whole

_NAMED = {
    "loss", "grad_norm", "learning_rate", "token_acc", "acc", "epoch", "memory(GiB)", "elapsed_time",
    "remaining_time", "percentage", "train_speed(s/it)", "train_speed(iter/s)", "num_input_tokens_seen",
    "MFU", "consumed_samples", "elapsed_time_per_iteration", "throughput", "global_step/max_steps",
    "iteration", "global_step",
}  # fmt: skip


class MetricReader:
    """Turns records into facts and keeps the one thing that needs memory: where step counting began."""

    def __init__(self) -> None:
        self.resume_step: int | None = None
        self._seen: list[Observation] = []
        self._last_step = 0

    def fact(self, record: Record, *, start_byte: int, end_byte: int, line: int) -> Timed:
        place = {"start_byte": start_byte, "end_byte": end_byte, "line": line}
        mean, mean_half = formats.speed(record)
        printed = formats.printed_elapsed(record)
        start = self._start(record.step, mean, printed)
        clock = elapsed(record.step, start, mean, mean_half, printed)
        common = {
            "step": record.step,
            "total": record.total,
            "start_step": start,
            "epoch": record.number("epoch"),
            "memory_gib": record.number("memory(GiB)"),
            "printed_speed_seconds": mean,
            "printed_speed_half_width": mean_half,
            "printed_elapsed_seconds": printed,
            **_clock(clock),
        }
        if "train_runtime" in record.values:
            return _summary(record, place, common)
        if any(key.startswith("eval_") for key in record.values):
            return _evaluation(record, place, common)
        return _step(record, place, common)

    def _start(self, step: int, mean: float | None, printed: float | None) -> int:
        if step < self._last_step:
            self._seen.clear()
        self._last_step = step
        if len(self._seen) < 20 or step % 50 == 0:
            self._seen = [*self._seen[-40:], (step, mean, printed)]
        return start_step(self._seen, self.resume_step).best


def _clock(clock: Elapsed | None) -> dict[str, float | None]:
    if clock is None:
        return {"elapsed_seconds": None, "elapsed_half_width": None}
    return {"elapsed_seconds": clock.seconds, "elapsed_half_width": clock.half_width}


def _step(record: Record, place: dict[str, int], common: Mapping[str, object]) -> StepMetrics:
    values = record.values
    accuracy = number(values.get("token_acc", values.get("acc")))
    return StepMetrics(
        **place,
        **common,  # type: ignore[arg-type]
        loss=record.number("loss"),
        grad_norm=record.number("grad_norm"),
        learning_rate=record.number("learning_rate"),
        token_acc=accuracy,
        tokens_seen=formats.tokens_seen(record),
        mfu=record.number("MFU"),
        samples_seen=whole(values.get("consumed_samples")),
        iteration_seconds=record.number("elapsed_time_per_iteration"),
        tflops_per_gpu=record.number("throughput"),
        extras=_others(values, lambda key: key not in _NAMED),
    )


def _evaluation(record: Record, place: dict[str, int], common: Mapping[str, object]) -> EvalMetrics:
    values = record.values
    named = {"eval_loss", "eval_token_acc", "eval_acc", "eval_runtime"}
    return EvalMetrics(
        **place,
        **common,  # type: ignore[arg-type]
        loss=record.number("eval_loss"),
        token_acc=number(values.get("eval_token_acc", values.get("eval_acc"))),
        runtime_seconds=record.number("eval_runtime"),
        values=_others(values, lambda key: key.startswith("eval_") and key not in named),
        extras=_others(values, lambda key: not key.startswith("eval_") and key not in _NAMED),
    )


def _summary(record: Record, place: dict[str, int], common: Mapping[str, object]) -> TrainSummary:
    named = {
        "train_loss", "train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos",
    }  # fmt: skip
    return TrainSummary(
        **place,
        **common,  # type: ignore[arg-type]
        train_loss=record.number("train_loss"),
        runtime_seconds=record.number("train_runtime"),
        samples_per_second=record.number("train_samples_per_second"),
        steps_per_second=record.number("train_steps_per_second"),
        total_flos=record.number("total_flos"),
        extras=_others(record.values, lambda key: key not in _NAMED and key not in named),
    )


def _others(values: Mapping[str, str], keep: Callable[[str], bool]) -> dict[str, float | str | None]:
    rest: dict[str, float | str | None] = {}
    for key, text in values.items():
        if keep(key):
            value = number(text)
            rest[excerpt(key, 80)] = value if value is not None else excerpt(text, 80)
    return rest
