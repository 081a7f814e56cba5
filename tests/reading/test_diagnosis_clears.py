"""Every finding goes when what it says is no longer so. Patterns of lines: see test_diagnosis_signatures."""

import math
from collections.abc import Callable

import pytest

from console.core.reading.diagnosis import Diagnosis, Expectation
from console.core.reading.rules import SymptomCondition
from tests.reading import test_diagnosis_losses as losses
from tests.reading import test_diagnosis_machines as machines
from tests.reading import test_diagnosis_silence as silence
from tests.reading.diagnosing import (
    PAIR,
    RULES,
    after_reading,
    diagnosis,
    ids,
    launched,
    met,
    moving,
    nccl,
    step,
    steps,
    validation,
)

Made = Callable[[], Diagnosis]
Unmade = Callable[[Diagnosis], object]


def stepped(*further: object) -> Unmade:
    return lambda watched: watched.facts("node-a", further, 1000.0)  # type: ignore[arg-type]


def rendezvous(rank_of_second: int = 1) -> Diagnosis:
    watched = silence.two_nodes()
    watched.facts("node-a", [launched(0)], 1.0)
    watched.facts("node-b", [launched(rank_of_second)], 1.0)
    watched.tick(100.0)
    return watched


def both_meet(watched: Diagnosis) -> None:
    watched.facts("node-a", [met(0)], 101.0)
    watched.facts("node-b", [met(1)], 101.0)


def preparing() -> Diagnosis:
    watched = silence.two_nodes()
    watched.facts("node-b", [met(1)], 1.0)
    watched.facts("node-a", [met(0), moving("Map", 5)], 70.0)
    watched.tick(71.0)
    return watched


def hanging() -> Diagnosis:
    watched = silence.two_nodes()
    watched.facts("node-a", [met(0)], 1.0)
    watched.facts("node-b", [met(1)], 1.0)
    watched.tick(302.0)
    return watched


def unread() -> Diagnosis:
    watched = silence.two_nodes(silence.MEGATRON)
    watched.facts("node-a", [met(0)], 1.0)
    watched.tick(130.0)
    return watched


def stalled() -> Diagnosis:
    watched = silence.two_nodes()
    watched.facts("node-a", steps([3.0, 2.9, 2.8]), 1.0)
    watched.tick(100.0)
    return watched


def one_gone() -> Diagnosis:
    watched = silence.two_nodes()
    watched.job("node-b", "failed", 1.0)
    watched.tick(20.0)
    return watched


def cut_off() -> Diagnosis:
    watched = silence.two_nodes()
    watched.link("node-b", "down", 1.0)
    watched.tick(40.0)
    return watched


def evenly(watched: Diagnosis) -> None:
    """A minute of readings as they should be, while it steps."""
    machines.sampled_from(watched, 100, 80, node_a={}, node_b={})


def told_nccl(*lines: str) -> Made:
    def make() -> Diagnosis:
        watched = diagnosis(machines.RAILS)
        watched.facts("node-a", [launched(0), *nccl(*lines)], 0.0)
        return watched

    return make


def apart() -> Diagnosis:
    watched = diagnosis(PAIR)
    watched.facts("node-a", steps([3.0, 2.9]), 0.0)
    watched.facts("node-b", steps([3.1, 2.95]), 0.0)
    return watched


def together(watched: Diagnosis) -> None:
    for node in ("node-a", "node-b"):
        watched.facts(node, [step(3, 2.8)], 1.0)


RISING = [validation(10, 1.5), validation(20, 1.0), validation(30, 1.1), validation(40, 1.2)]
CLIMBING = [step(number, 3 - number / 100, memory_gib=20 + number * 0.2) for number in range(1, 26)]
SLOW = [step(number, 3 - number / 10, seconds=2.0) for number in range(1, 13)]
TRACEBACK = b'Traceback (most recent call last):\n  File "a.py", line 1, in x\nsome.OddError: never seen\n'

CASES: dict[str, tuple[Made, Unmade]] = {
    "memory-climbing": (
        lambda: losses.told(CLIMBING),
        stepped(*(step(number, 2.7, memory_gib=25.0) for number in range(26, 40))),
    ),
    "nan-filtered": (lambda: losses.told([step(1, 3.0), step(2, 0.0, math.nan)]), stepped(step(3, 2.9))),
    "nan-loss": (lambda: losses.told([step(1, 3.0), step(2, math.nan)]), stepped(step(3, 2.9))),
    "loss-explodes": (lambda: losses.told(steps([3.0, 3.4, 6.0])), stepped(step(4, 3.1))),
    "loss-spike": (
        lambda: losses.told(steps([*losses.FALLING, 6.0, 5.5, 5.4, 5.6, 5.5])),
        stepped(*steps([2.1, 2.0, 2.0, 2.0], first=36)),
    ),
    "loss-flat": (
        lambda: losses.told(steps([2.0] * 16, every=5)),
        stepped(*steps([1.5, 1.4, 1.3, 1.2, 1.1, 1.0], first=81, every=5)),
    ),
    "validation-rises": (lambda: losses.told([step(40), *RISING]), stepped(validation(50, 0.9))),
    "slower-than-predicted": (
        lambda: losses.told(SLOW, Expectation(step_seconds=1.2)),
        stepped(*(step(number, 1.5, seconds=0.5) for number in range(80, 140))),
    ),
    "rendezvous-silent": (rendezvous, both_meet),
    "same-rank": (
        lambda: rendezvous(0),
        lambda watched: watched.facts("node-b", [launched(1), met(1)], 101.0),
    ),
    "waiting-for-data": (preparing, lambda watched: watched.facts("node-b", (), 72.0)),
    "startup-hang": (hanging, lambda watched: watched.facts("node-b", (), 303.0)),
    "log-node-unread": (unread, lambda watched: watched.facts("node-b", [met(1)], 131.0)),
    "stall": (stalled, stepped(step(4, 2.7))),
    "node-gone": (one_gone, lambda watched: watched.job("node-a", "failed", 21.0)),
    "no-contact": (cut_off, lambda watched: watched.link("node-b", "up", 41.0)),
    "trains-alone": (apart, together),
    "slow-rank": (
        lambda: machines.sampled(machines.training(), 90, node_a={"watts": 38.0}, node_b={"watts": 88.0}),
        evenly,
    ),
    "gpu-spins": (
        lambda: machines.sampled(machines.training(), 90, stepping=False, node_a={"watts": 22.0}),
        evenly,
    ),
    "low-clock": (
        lambda: machines.sampled(machines.training(), 60, node_a={"clock_hertz": 0.8e9}),
        evenly,
    ),
    "nccl-sockets": (
        told_nccl(machines.TWO_NODES, machines.SOCKET),
        stepped(launched(0), *nccl(machines.TWO_NODES, machines.TWO_HCAS, machines.IB)),
    ),
    "nccl-one-rail": (
        told_nccl(machines.ONE_HCA, machines.IB),
        stepped(launched(0), *nccl(machines.TWO_HCAS, machines.IB)),
    ),
    "exception": (lambda: after_reading(TRACEBACK), stepped(*steps([2.0, 1.9, 1.8]))),
}


def test_every_rule_that_is_no_pattern_is_here():
    assert set(CASES) == {rule.id for rule in RULES.findings if not isinstance(rule.when, SymptomCondition)}


@pytest.mark.parametrize("rule", CASES)
def test_a_finding_goes_when_it_no_longer_holds(rule: str):
    made, unmade = CASES[rule]
    watched = made()
    assert rule in ids(watched)
    unmade(watched)
    assert rule not in ids(watched)
