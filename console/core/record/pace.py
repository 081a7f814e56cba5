"""How fast a run went: steady step time, tokens per step, tokens per second."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import quantiles

from console.core.plan.matrix import Settings
from console.core.reading.facts import StepMetrics
from console.core.reading.steady import Interval, Steady, steady_step_seconds
from console.core.record.cells import Cell, LoggedRun, computed
from console.core.record.figures import Spread
from console.core.record.views import RunView

ENOUGH_FOR_QUARTILES = 4


@dataclass(frozen=True, slots=True)
class Pace:
    """The three cells, and where the steps were read (None: no log holds a step)."""

    step_seconds: Cell
    tokens_per_step: Cell
    tokens_per_second: Cell
    node: str | None
    notes: tuple[str, ...] = ()
    spread: Spread | None = None


def pace(run: RunView, logs: Mapping[str, LoggedRun], settings: Settings, warmup: int | None) -> Pace:
    """Steps are those of the rank that logs; if its log holds none, those of any other node, with a note."""
    node = next((n for n in (run.log_node, *run.nodes) if n in logs and logs[n].log.steps), None)
    if node is None:
        blank = Cell.blank(no_steps(run, logs))
        return Pace(blank, _tokens_from_dataset(run, logs, settings), blank, None)
    logged = logs[node]
    steady = steady_step_seconds(
        logged.log.steps, warmup=warmup, evals=logged.log.evals, checkpoints=logged.log.checkpoints
    )
    spread = _spread(steady)
    seconds = _step_seconds(node, logged, steady, spread)
    tokens = _tokens_per_step(run, logs, node, settings, steady)
    notes = [] if node == run.log_node else [f"steps were read on {node}, not on {run.log_node} as expected"]
    if steady.seconds is not None and steady.reason:
        notes.append(f"steady step time: {steady.reason}")
    return Pace(seconds, tokens, _per_second(seconds, tokens), node, tuple(notes), spread)


def no_steps(run: RunView, logs: Mapping[str, LoggedRun]) -> str:
    """Why there are no steps to count."""
    if run.log_node not in logs:
        return f"the log of {run.log_node}, which carries the steps, was not kept{_ending(run)}"
    return f"no training step was logged{_ending(run)}"


def _ending(run: RunView) -> str:
    if run.outcome is None:
        return "; the run has not ended"
    if run.outcome == "done":
        return ""
    return f"; the run {ENDS[run.outcome]}" + (f": {run.cause}" if run.cause else "")


ENDS = {"failed": "failed", "stopped": "was stopped", "timed out": "ran out of time"}


def _spread(steady: Steady) -> Spread | None:
    if len(steady.used) < ENOUGH_FOR_QUARTILES:
        return None
    lower, _, upper = quantiles((one.seconds for one in steady.used), method="inclusive")
    return Spread(count=len(steady.used), lower_seconds=lower, upper_seconds=upper)


def _step_seconds(node: str, logged: LoggedRun, steady: Steady, spread: Spread | None) -> Cell:
    seconds = steady.seconds
    if seconds is None or not steady.used:
        return Cell.blank(f"no steady step time: {steady.reason or 'too few steps were logged'}")
    used = steady.used
    nearest = min(used, key=lambda interval: abs(interval.seconds - seconds))
    printed = f" ± {steady.half_width:.3g} s (printed resolution)" if steady.half_width else ""
    median = (
        f"median of {len(used)} step times, steps {used[0].from_step + 1} to {used[-1].to_step} "
        f"(first {steady.warmup} left out){printed}{_spread_words(spread)}; "
        f"nearest to it: {_step_words(nearest)}"
    )
    return Cell.of(
        seconds,
        logged.source(node, nearest, median),
        logged.source(node, used[0], "the steps that the median is taken over", used[-1]),
    )


def _spread_words(spread: Spread | None) -> str:
    if spread is None:
        return ""
    return (
        f", half of them within {spread.lower_seconds:.4g} to {spread.upper_seconds:.4g} s: "
        f"standard error of the median {spread.median_error_seconds:.2g} s"
    )


def _step_words(interval: Interval) -> str:
    steps = interval.to_step - interval.from_step
    which = (
        f"step {interval.to_step}" if steps == 1 else f"steps {interval.from_step + 1} to {interval.to_step}"
    )
    return f"{which}, {interval.seconds:.4g} s per step"


def _tokens_per_step(
    run: RunView, logs: Mapping[str, LoggedRun], node: str, settings: Settings, steady: Steady
) -> Cell:
    counted = _tokens_counted(node, logs[node], settings, steady)
    return counted or _tokens_from_dataset(run, logs, settings)


def _tokens_counted(node: str, logged: LoggedRun, settings: Settings, steady: Steady) -> Cell | None:
    """From the framework's own count of input tokens, over the same steps as the steady step time."""
    counted = [step for step in logged.log.steps if step.tokens_seen is not None]
    first_step = steady.used[0].from_step if steady.used else 0
    steps = [step for step in counted if step.step >= first_step] if steady.used else counted
    if len(steps) < 2 or any(_seen(a) >= _seen(b) for a, b in pairwise(steps)):
        return None
    first, last = steps[0], steps[-1]
    tokens = (_seen(last) - _seen(first)) / (last.step - first.step)
    padding = "" if settings.micro_batch == 1 else ", padding included"
    words = (
        f"input tokens counted by the framework over all ranks{padding}: "
        f"({_seen(last)} − {_seen(first)}) over steps {first.step + 1} to {last.step}"
    )
    return Cell.of(tokens, logged.source(node, last, words), logged.source(node, first, "count before that"))


def _seen(step: StepMetrics) -> int:
    return step.tokens_seen or 0


def _tokens_from_dataset(run: RunView, logs: Mapping[str, LoggedRun], settings: Settings) -> Cell:
    """Mean length of the training rows times the global batch; never max_length times samples."""
    unit = "packs" if settings.packing else "samples"
    for node in (run.log_node, *run.nodes):
        length = logs[node].log.dataset if node in logs else None
        if length is not None and isfinite(length.mean) and length.mean > 0:
            words = (
                f"Dataset Token Length mean {length.mean:g} × global batch {settings.global_batch} {unit} "
                "(the log carries no token count)"
            )
            return Cell.of(length.mean * settings.global_batch, logs[node].source(node, length, words))
    measured = run.dataset
    if measured is not None and isfinite(measured.mean_tokens) and measured.mean_tokens > 0:
        mean = f"Dataset Token Length mean {measured.mean_tokens:g}"
        words = f"{mean} × global batch {settings.global_batch} {unit}"
        source = measured.source.model_copy(update={"words": words})
        return Cell.of(measured.mean_tokens * settings.global_batch, source)
    return Cell.blank("the log holds neither a count of tokens nor the data set's mean token length")


def _per_second(seconds: Cell, tokens: Cell) -> Cell:
    if tokens.value is None:
        return Cell.blank(f"tokens per step are not known: {tokens.reason}")
    if seconds.value is None:
        return Cell.blank(seconds.reason)
    words = f"{tokens.value:.6g} tokens per step ÷ {seconds.value:.4g} s per step"
    return computed(words, tokens.value / seconds.value, tokens, seconds)
