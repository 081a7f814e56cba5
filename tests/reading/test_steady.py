"""The steady step time against clocks that are known."""

from dataclasses import replace

import pytest

from console.core.reading.facts import StepMetrics
from console.core.reading.steady import steady_step_seconds
from console.core.reading.trainlog import read_whole
from tests.reading.samples import (
    MEGATRON_3X_STEP_SECONDS,
    MEGATRON_STEP_SECONDS,
    SWIFT_STEP_SECONDS,
    log,
    steady,
)

EXACT = [
    ("swift-4x.log", SWIFT_STEP_SECONDS),
    ("swift-3x-iter.log", SWIFT_STEP_SECONDS),
    ("swift-logging.jsonl", SWIFT_STEP_SECONDS),
    ("megatron-4x-last-rank.log", MEGATRON_STEP_SECONDS),
    ("megatron-logging.jsonl", MEGATRON_STEP_SECONDS),
    ("megatron-3x.log", MEGATRON_3X_STEP_SECONDS),
]


@pytest.mark.parametrize(("name", "seconds"), EXACT)
def test_the_true_step_time_comes_out(name: str, seconds: float) -> None:
    found = steady(log(name))
    assert found.seconds == pytest.approx(seconds, rel=1e-4)
    assert found.half_width is not None
    assert abs((found.seconds or 0) - seconds) <= found.half_width + 1e-9


@pytest.mark.parametrize("name", ["swift-4x-quoted.log", "swift-resumed-quoted.log"])
def test_few_digits_are_owned_up_to(name: str) -> None:
    found = steady(log(name))
    assert found.seconds is not None
    assert found.half_width is not None
    assert abs(found.seconds - SWIFT_STEP_SECONDS) <= found.half_width
    assert found.reason is not None
    assert "digits" in found.reason


def test_it_is_never_the_printed_mean() -> None:
    read = log("swift-4x.log")
    printed = read.steps[-1].printed_speed_seconds
    assert printed is not None
    assert printed > 2 * (steady(read).seconds or 0)


def test_a_resume_counts_from_the_checkpoint() -> None:
    read = log("swift-resumed-quoted.log")
    assert read.steps[-1].start_step == 10
    assert steady(read).used[0].from_step == 15


@pytest.mark.parametrize(
    ("count", "warmup", "expected", "first"),
    [(30, None, 5, 5), (9, None, 2, 2), (30, 8, 8, 8), (9, 0, 0, 1)],
)
def test_warm_up(count: int, warmup: int | None, expected: int, first: int) -> None:
    found = steady_step_seconds(log("swift-logging.jsonl").steps[:count], warmup=warmup)
    assert found.warmup == expected
    assert found.used[0].from_step == first


def test_the_source_is_the_line_that_closes_the_interval() -> None:
    read = log("swift-logging.jsonl")
    last = steady(read).used[-1]
    assert (last.to_step, last.line, last.end_byte) == (30, read.steps[-1].line, read.steps[-1].end_byte)


def test_evaluations_in_every_interval_do_not_poison_it() -> None:
    """Five steps of 1 s and an evaluation of 30 s between every two logged lines."""
    lines, clock = [], 0.0
    for step in range(1, 51):
        clock += 1.0
        if step == 1 or step % 5 == 0:
            lines.append(_line("loss", step, clock))
        if step % 5 == 0:
            clock += 30.0
            lines.append(_line("eval_loss", step, clock))
    found = steady(read_whole(b"".join(lines)))
    assert found.seconds == pytest.approx(1.0, rel=1e-3)


def _line(key: str, step: int, clock: float) -> bytes:
    return (
        f"{{'{key}': 1.0, 'iteration': '{step}/50', 'elapsed_time': '{round(clock)}s', "
        f"'train_speed(s/it)': {clock / step:.6f}}}\n"
    ).encode()


def test_checkpoints_in_most_intervals_are_left_out() -> None:
    lines, clock = [], 0.0
    for step in range(1, 41):
        clock += 1.0
        lines.append(_line("loss", step, clock))
        if step % 3:
            lines.append(f"[INFO:swift] Saving model checkpoint to /out/checkpoint-{step}\n".encode())
            clock += 6.0
    assert steady(read_whole(b"".join(lines))).seconds == pytest.approx(1.0, rel=1e-3)


def test_an_appended_second_run_is_the_one_that_counts() -> None:
    slow = log("megatron-logging.jsonl").steps
    fast = log("swift-logging.jsonl").steps
    moved = [replace(step, start_byte=step.start_byte + 99_999) for step in fast]
    found = steady_step_seconds([*slow, *moved])
    assert found.seconds == pytest.approx(SWIFT_STEP_SECONDS, rel=1e-3)
    assert found.reason is not None
    assert "earlier run" in found.reason


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_little_is_told(count: int) -> None:
    found = steady_step_seconds(log("swift-logging.jsonl").steps[:count])
    assert found.seconds is None
    assert found.half_width is None
    assert found.reason


def test_steps_without_a_clock_give_none() -> None:
    bare = [StepMetrics(start_byte=i, end_byte=i + 1, line=i, step=i, total=20) for i in range(1, 20)]
    found = steady_step_seconds(bare)
    assert found.seconds is None
    assert found.reason == "the log prints no speed"
