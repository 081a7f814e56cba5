"""Steady step time: the median of per-step differences after warm-up.

The framework prints a cumulative mean, which never forgets a slow first step, an evaluation or a checkpoint.
Its own clock is recovered from that mean (see `elapsed.py`) and differenced between logged steps. Evaluation
time is taken out. Intervals with a checkpoint in them are left out where they are so many that they would
move the median, and enough others remain.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from console.core.reading.elapsed import Elapsed, elapsed, start_step
from console.core.reading.facts import CheckpointSaved, EvalMetrics, StepMetrics, Timed

WARMUP_STEPS, SHORT_WARMUP_STEPS, SHORT_RUN_LINES = 5, 2, 10
COARSE = 0.02
ENOUGH_CLEAN = 3
FEW = 0.25
"""A median shrugs off fewer disturbed intervals than this."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Seconds per step over (from_step, to_step]; the byte range is that of the line that closes it."""

    from_step: int
    to_step: int
    seconds: float
    half_width: float
    start_byte: int
    end_byte: int
    line: int


@dataclass(frozen=True, slots=True)
class Steady:
    """`seconds` is None when the log doesn't carry enough; `reason` then says why.

    `half_width` bounds the error that the printed resolution leaves in `seconds`; `reason` is also set when
    that is coarse (over 2 %), because `logging.jsonl` of the same run would do better.
    """

    seconds: float | None
    half_width: float | None
    used: tuple[Interval, ...]
    skipped: int
    warmup: int
    reason: str | None


def steady_step_seconds(
    steps: Sequence[StepMetrics],
    *,
    warmup: int | None = None,
    evals: Sequence[EvalMetrics] = (),
    checkpoints: Sequence[CheckpointSaved] = (),
) -> Steady:
    """Median seconds per step. `warmup`: steps left out (default 5, or 2 if fewer than 10 are logged)."""
    lines, earlier = _last_run(steps)
    short = len(lines) < SHORT_RUN_LINES
    left_out = warmup if warmup is not None else SHORT_WARMUP_STEPS if short else WARMUP_STEPS
    if len(lines) < 2 and not any(line.iteration_seconds is not None for line in lines):
        return _nothing(left_out, 0, f"{_count(len(lines), 'logged step')}: no difference to take")
    first = lines[0].start_byte
    run_evals = [one for one in evals if one.start_byte > first]
    saves = [one for one in checkpoints if one.start_byte > first]
    start = start_step(
        ((line.step, line.printed_speed_seconds, line.printed_elapsed_seconds) for line in lines),
        hint=lines[-1].start_step or None,
    ).best
    intervals = _intervals(lines, run_evals, start)
    warm = [one for one in intervals if one.from_step - start >= left_out and one.seconds > 0]
    clean = [one for one in warm if not _holds_checkpoint(one, saves)]
    many = len(warm) - len(clean) > FEW * len(warm)
    used = clean if many and len(clean) >= ENOUGH_CLEAN else warm
    skipped = len(intervals) - len(used)
    if not used:
        return _nothing(left_out, skipped, _why_nothing(lines, intervals, left_out))
    seconds = statistics.median(one.seconds for one in used)
    low = statistics.median(one.seconds - one.half_width for one in used)
    high = statistics.median(one.seconds + one.half_width for one in used)
    half = (high - low) / 2
    return Steady(seconds, half, tuple(used), skipped, left_out, _remark(seconds, half, earlier))


def _last_run(steps: Sequence[StepMetrics]) -> tuple[list[StepMetrics], int]:
    """The steps of the last run in the log (a jsonl may be appended to), and how many runs came before.

    A step that is logged twice comes from a second process; the first is kept.
    """
    run: list[StepMetrics] = []
    earlier = 0
    for step in steps:
        if run and step.step < run[-1].step:
            run, earlier = [], earlier + 1
        if not run or step.step > run[-1].step:
            run.append(step)
    return run, earlier


def _intervals(lines: Sequence[StepMetrics], evals: Sequence[EvalMetrics], start: int) -> list[Interval]:
    result = []
    previous: StepMetrics | None = None
    for line in lines:
        if line.iteration_seconds is not None:
            since = previous.step if previous is not None else max(0, line.step - 1)
            result.append(_interval(since, line, Elapsed(line.iteration_seconds, 0.5e-4)))
        elif previous is not None:
            between = [one for one in evals if previous.step <= one.step < line.step]
            span = _span(previous, line, between, start)
            if span is not None:
                result.append(_interval(previous.step, line, span))
        previous = line
    return result


def _span(
    before: StepMetrics, after: StepMetrics, evals: Sequence[EvalMetrics], start: int
) -> Elapsed | None:
    """Seconds per step between two logged steps, evaluations taken out; None if they can't be."""
    base, end = _clock(before, start), _clock(after, start)
    taken = 0.0
    for one in evals:
        at_eval = _clock(one, start)
        if one.step == before.step and at_eval is not None:
            base = at_eval
        elif one.runtime_seconds is not None:
            taken += one.runtime_seconds
        else:
            return None
    if base is None or end is None:
        return None
    count = after.step - before.step
    return Elapsed((end.seconds - base.seconds - taken) / count, (end.half_width + base.half_width) / count)


def _clock(fact: Timed, start: int) -> Elapsed | None:
    if fact.printed_speed_seconds is None:
        return None
    return elapsed(
        fact.step,
        start,
        fact.printed_speed_seconds,
        fact.printed_speed_half_width,
        fact.printed_elapsed_seconds,
    )


def _interval(since: int, line: StepMetrics, span: Elapsed) -> Interval:
    return Interval(
        since, line.step, span.seconds, span.half_width, line.start_byte, line.end_byte, line.line
    )


def _holds_checkpoint(interval: Interval, saves: Sequence[CheckpointSaved]) -> bool:
    return any(one.step is not None and interval.from_step <= one.step < interval.to_step for one in saves)


def _nothing(warmup: int, skipped: int, reason: str) -> Steady:
    return Steady(None, None, (), skipped, warmup, reason)


def _why_nothing(lines: Sequence[StepMetrics], intervals: Sequence[Interval], warmup: int) -> str:
    if not intervals:
        return "the log prints no speed"
    logged = _count(len(lines), "logged step")
    return f"only {logged} up to step {lines[-1].step}; the first {warmup} are warm-up"


def _remark(seconds: float, half_width: float, earlier: int) -> str | None:
    remarks = []
    if half_width > COARSE * seconds:
        remarks.append(
            f"printed with few digits: exact to ±{half_width:.2g} s only; logging.jsonl of this run is exact"
        )
    if earlier:
        remarks.append(f"{_count(earlier, 'earlier run')} in this file left out")
    return "; ".join(remarks) or None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
