"""Rules about the metric lines: each fires on its shape and keeps quiet on a healthy one."""

import math

import pytest

from console.core.reading.diagnosis import Expectation
from tests.reading.diagnosing import busy, diagnosis, ids, saved, step, steps, validation

FALLING = [3.0 - 0.03 * index for index in range(30)]


def told(facts, expectation=None):
    watched = diagnosis(expectation)
    watched.facts("node-a", facts, 0.0)
    return watched


def test_a_falling_loss_is_healthy():
    assert told(steps(FALLING)).active == ()


def test_zero_loss_with_nan_gradient_is_a_filtered_nan():
    watched = told([*steps(FALLING), step(31, 0.0, math.nan)])
    (finding,) = watched.active
    assert finding.id == "nan-filtered"
    assert finding.line == 31
    watched.facts("node-a", [step(32, 2.0)], 1.0)
    assert watched.active == ()


def test_zero_loss_with_a_finite_gradient_is_not_nan():
    assert "nan-filtered" not in ids(told([*steps(FALLING), step(31, 0.0, 0.2)]))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_and_infinity_are_reported(bad: float):
    assert ids(told([step(1, 3.0), step(2, bad)])) == {"nan-loss"}
    assert ids(told([step(1, 3.0), step(2, None, bad)])) == {"nan-loss"}


def test_nan_in_validation_is_reported():
    assert ids(told([step(1, 3.0), validation(1, math.nan)])) == {"nan-loss"}


def test_a_missing_loss_is_not_nan():
    assert told([step(1, 3.0), step(2, None)]).active == ()


def test_a_loss_that_grows_at_once_explodes():
    assert ids(told(steps([3.0, 3.4, 6.0]))) == {"loss-explodes"}


def test_a_small_rise_at_the_start_does_not_explode():
    assert "loss-explodes" not in ids(told(steps([3.0, 3.4, 3.3])))


def test_a_spike_without_recovery_names_its_step_and_clears_after_recovery():
    watched = told(steps([*FALLING, 6.0, 5.5, 5.4, 5.6, 5.5]))
    (finding,) = watched.active
    assert finding.id == "loss-spike"
    assert "step 31" in finding.seen
    watched.facts("node-a", steps([2.1, 2.0, 2.0, 2.0], first=36), 1.0)
    assert watched.active == ()


def test_a_spike_that_recovers_is_no_finding():
    assert told(steps([*FALLING, 6.0, 2.2, 2.1, 2.1, 2.0, 2.0])).active == ()


def test_a_loss_that_never_fell_is_flat():
    assert ids(told(steps([2.0, 2.001, 1.999, 2.0] * 4, every=5))) == {"loss-flat"}


def test_a_low_loss_after_a_fall_is_not_flat():
    assert told(steps([2.0, 1.2, 0.8, 0.5, *[0.4] * 12], every=5)).active == ()


def test_validation_turning_up_names_the_best_step_and_that_it_was_not_saved():
    evals = [validation(10, 1.5), validation(20, 1.2), validation(30, 1.0), validation(40, 1.1)]
    watched = told([step(40), saved(20), *evals])
    assert watched.active == ()
    watched.facts("node-a", [validation(50, 1.2)], 1.0)
    (finding,) = watched.active
    assert finding.id == "validation-rises"
    assert "at step 30, and it was not saved; the nearest checkpoint is step 20" in finding.seen


def test_validation_turning_up_says_so_when_the_best_step_was_saved():
    evals = [validation(10, 1.5), validation(20, 1.0), validation(30, 1.1), validation(40, 1.2)]
    assert "and it was saved" in told([step(40), saved(20), *evals]).active[0].seen


def test_a_best_step_that_the_plan_saves_should_have_been_saved():
    evals = [validation(10, 1.5), validation(20, 1.0), validation(30, 1.1), validation(40, 1.2)]
    assert "it should have been saved" in told([step(40), *evals], Expectation(save_steps=20)).active[0].seen
    assert "it was not saved" in told([step(40), *evals], Expectation(save_steps=15)).active[0].seen


def test_validation_that_wavers_is_no_finding():
    evals = [validation(25, 1.199), validation(50, 1.186), validation(75, 1.225), validation(93, 1.193)]
    assert told([step(93), *evals]).active == ()


def test_steps_slower_than_predicted():
    facts = [step(number, seconds=2.0, loss=3 - number / 10) for number in range(1, 13)]
    assert ids(told(facts, Expectation(step_seconds=1.2))) == {"slower-than-predicted"}
    assert told(facts, Expectation(step_seconds=1.9)).active == ()
    assert told(facts).active == ()


def test_memory_that_grows_all_the_time_is_climbing():
    facts = [step(number, FALLING[number - 1], memory_gib=20 + number * 0.2) for number in range(1, 26)]
    assert ids(told(facts)) == {"memory-climbing"}


def test_memory_that_settles_after_the_first_steps_is_not():
    facts = [
        step(number, FALLING[number - 1], memory_gib=min(31.4, 10 + number * 4)) for number in range(1, 26)
    ]
    assert told(facts).active == ()


@pytest.mark.parametrize(("growth_gib", "expected"), [(0.02, {"memory-climbing"}), (0.0, set())])
def test_used_memory_of_a_node_is_watched_too(growth_gib: float, expected: set[str]):
    watched = told(steps(FALLING[:12]))
    for second in range(400):
        watched.sample(busy("node-b", float(second), used_gib=60 + growth_gib * second))
        if second % 5 == 0:
            watched.facts("node-a", [step(13 + second, 2.5)], float(second))
    assert {finding.id for finding in watched.active if finding.node == "node-b"} == expected
