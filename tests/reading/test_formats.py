"""Every format that the framework has printed metrics in."""

import math

import pytest

from console.core.reading.facts import Progress, Timed
from tests.reading.samples import ALL, facts, log, raw

SHAPES = [
    ("swift-4x.log", "swift", "4.6.0", 30, 2),
    ("swift-4x-quoted.log", "swift", "4.6.0", 30, 2),
    ("swift-3x-iter.log", "swift", "3.10.3", 30, 2),
    ("swift-logging.jsonl", "swift", "4.x", 30, 2),
    ("swift-logging-nan.jsonl", "swift", "4.x", 5, 0),
    ("swift-resumed-quoted.log", "swift", "4.x", 20, 0),
    ("megatron-4x-last-rank.log", "megatron", "4.6.0", 9, 2),
    ("megatron-logging.jsonl", "megatron", "4.x", 9, 2),
    ("megatron-3x.log", "megatron", "3.x", 5, 1),
]


@pytest.mark.parametrize(("name", "framework", "version", "steps", "evals"), SHAPES)
def test_every_metric_line_is_read(name: str, framework: str, version: str, steps: int, evals: int) -> None:
    read = log(name)
    assert (read.framework, read.version) == (framework, version)
    assert (len(read.steps), len(read.evals)) == (steps, evals)


def test_a_plain_line_keeps_its_digits() -> None:
    step = log("swift-4x.log").steps[14]
    assert (step.step, step.total, step.epoch) == (15, 30, 0.5)
    assert step.loss == pytest.approx(2.05567358, abs=1e-8)
    assert step.learning_rate == 5.1613e-05
    assert step.memory_gib is None
    assert step.memory_bytes is None


def test_a_quoted_line_is_numbers_all_the_same() -> None:
    step = log("swift-4x-quoted.log").steps[14]
    assert step.loss == 2.056
    assert step.memory_gib == 101.2
    assert step.memory_bytes == round(101.2 * 2**30)


def test_the_old_unit_is_turned_round() -> None:
    """3.x prints steps a second; step 2 ends 9.5 s after the start."""
    step = log("swift-3x-iter.log").steps[1]
    assert step.printed_speed_seconds == pytest.approx(9.5 / 2, rel=1e-5)
    assert step.elapsed_seconds == pytest.approx(9.5, rel=1e-5)


def test_iteration_is_the_step_of_megatron() -> None:
    read = log("megatron-4x-last-rank.log")
    assert [step.step for step in read.steps] == [1, 5, 10, 15, 20, 25, 30, 35, 40]
    assert read.steps[-1].total == 40
    assert read.steps[-1].epoch is None


def test_evaluation_lines_behind_a_cursor_movement_are_read() -> None:
    assert b"\x1b[A{'eval_loss'" in raw("megatron-4x-last-rank.log")
    assert [seen.step for seen in log("megatron-4x-last-rank.log").evals] == [20, 40]


def test_text_lines_of_megatron_3() -> None:
    read = log("megatron-3x.log")
    first, last = read.steps[0], read.steps[-1]
    assert (first.iteration_seconds, first.tflops_per_gpu, first.samples_seen) == (20.0, 49.8, 16)
    assert last.loss is None
    assert last.grad_norm is not None
    assert math.isnan(last.grad_norm)
    assert (read.evals[0].step, read.evals[0].loss) == (20, 1.5)


def test_bare_nan_and_infinity_are_floats() -> None:
    steps = log("swift-logging-nan.jsonl").steps
    assert [math.isnan(step.loss or 0.0) for step in steps] == [False, False, True, True, True]
    assert steps[-1].grad_norm == math.inf


def test_a_filtered_nan_stays_what_was_printed() -> None:
    step = log("swift-nan-filtered.log").steps[10]
    assert step.loss == 0.0
    assert step.grad_norm is not None
    assert math.isnan(step.grad_norm)


@pytest.mark.parametrize(
    "line",
    [
        b"[INFO:swift] model_kwargs: {'device_map': 'cpu', 'loss': 3.0}",
        b"[INFO:swift] config: {'iteration': 3, 'lr': 1.0}",
        b"Using deepspeed: {'train_batch_size': 'auto', 'loss': 1}",
        b'{"train_dataset": "x", "global_step": 30, "last_model_checkpoint": null}',
        b"{'loss': 1.0, 'global_step/max_steps': '3/10', 'elapsed_ti",
        b"{'loss': 1.0, 'global_step/max_steps': 'three/ten'}",
    ],
)
def test_other_dicts_are_no_metrics(line: bytes) -> None:
    assert [fact for fact in facts([line + b"\n"]) if isinstance(fact, Timed)] == []


def test_key_order_does_not_matter() -> None:
    line = b"{'train_speed(s/it)': 2.0, 'memory(GiB)': 3.5, 'epoch': 1, 'iteration': '4/8', 'loss': 1.5}\n"
    (step,) = [fact for fact in facts([line]) if isinstance(fact, Timed)]
    assert (step.step, step.total, step.memory_gib, step.printed_speed_seconds) == (4, 8, 3.5, 2.0)


def test_two_records_on_one_line_are_two() -> None:
    one = b"{'loss': 1.0, 'iteration': '1/8'}"
    assert len([fact for fact in facts([one + one + b"\n"]) if isinstance(fact, Timed)]) == 2


def test_bars_between_carriage_returns_are_followed() -> None:
    done = [fact.done for fact in facts([raw("swift-4x.log")]) if _train(fact)]
    assert done == list(range(31))


def _train(fact: object) -> bool:
    return isinstance(fact, Progress) and fact.label == "Train"


@pytest.mark.parametrize("name", ALL)
def test_every_fact_names_its_place(name: str) -> None:
    """A fact's bytes hold its text, and its line is the one that an editor shows."""
    data = raw(name)
    for fact in facts([data]):
        assert 0 <= fact.start_byte < fact.end_byte <= len(data)
        assert fact.line == data.count(b"\n", 0, fact.start_byte) + 1
        if isinstance(fact, Timed):
            assert str(fact.step).encode() in data[fact.start_byte : fact.end_byte]
