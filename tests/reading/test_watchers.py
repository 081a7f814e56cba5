"""Every rule that watches: a run that raises it, and a run much like it that must not."""

from collections.abc import Callable, Iterator
from math import nan

import pytest

from console.core.reading.diagnosis import Expectation, NodeSample
from tests.reading.judging import RULES, Case, bar, busy, evaluation, launch, metric, world
from tests.reading.test_symptoms import LINES

PAIR = Expectation(framework="megatron", nodes=("a", "b"), log_node="b")
RDMA = Expectation(nodes=("a", "b"), rdma=True, rails=2)
GIB = 2**30
IB = "n:1:1 [0] NCCL INFO NET/IB : Using [0]rocep1s0f1:1/RoCE{} [RO]; OOB enp1:10.0.0.1<0>"
SOCKET = (
    "n:1:1 [0] NCCL INFO Using network Socket",
    "n:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0",
)
FALLING = [3.0 - 0.02 * step for step in range(60)]


def memory(gib: float) -> dict[str, float]:
    return {"memory_used_bytes": int(gib * GIB), "memory_total_bytes": 121 * GIB}


def joined(case: Case) -> Case:
    return case.says(launch(0), world(0), node="a").says(launch(1), world(1), node="b")


def climbing(growth: float) -> Case:
    case = Case()
    for step in range(1, 31):
        case.at += 1
        case.says(metric(step, 3.0 - step / 100, memory=round(60.0 + growth * step, 2)))
    return case


def node_climbing(growth: float) -> Case:
    case = Case().steps(FALLING[:20])
    for second in range(400):
        case.at += 1
        used = int((60 + growth * second) * GIB)
        sample = NodeSample(node="a", at=case.at, memory_used_bytes=used, memory_total_bytes=121 * GIB)
        case.changes += case.diagnosis.sample(sample)
    return case


def validated(*losses: float) -> Case:
    case = Case()
    for number, loss in enumerate(losses, 1):
        case.says(metric(number * 10, 3.0 - number / 10), evaluation(number * 10, loss))
    return case


def alone(loss_a: float, loss_b: float) -> Case:
    return Case(PAIR).says(metric(5, loss_a), node="a").says(metric(5, loss_b), node="b")


def pair_at_work(**b: float) -> Case:
    """A step every five seconds while both nodes are read."""
    case = Case(Expectation(nodes=("a", "b"))).job("a", "running").job("b", "running")
    for step in range(1, 19):
        case.samples(5, a=busy(), b=busy(**b)).says(metric(step, 3.0 - step / 50, 5.0))
    return case


FIRING: dict[str, Callable[[], Case]] = {
    "memory-climbing": lambda: climbing(0.4),
    "nan-filtered": lambda: Case().steps([3.0, 2.9]).says(metric(3, 0.0, grad_norm=nan)),
    "nan-loss": lambda: Case().steps([3.0, 2.9]).says(metric(3, nan)),
    "loss-explodes": lambda: Case().steps([3.0, 5.0, 40.0]),
    "loss-spike": lambda: Case().steps([*FALLING[:20], *[9.0] * 8]),
    "loss-flat": lambda: Case().steps([3.0 + 0.001 * (step % 3) for step in range(60)]),
    "validation-rises": lambda: validated(2.0, 1.8, 1.9, 2.0),
    "rendezvous-silent": lambda: Case(PAIR).says(launch(1), node="b").waits(120),
    "same-rank": lambda: Case(PAIR).says(launch(0), node="a").says(launch(0), node="b"),
    "waiting-for-data": lambda: joined(Case(PAIR)).waits(90).says(bar("Map", 5, 9), node="a").waits(1),
    "startup-hang": lambda: joined(Case(PAIR)).waits(400),
    "log-node-unread": lambda: Case(PAIR).says(launch(0), world(0), node="a").waits(200),
    "stall": lambda: Case().steps(FALLING[:10]).waits(100),
    "node-gone": lambda: Case(PAIR).job("a", "running").job("b", "running").job("b", "failed").waits(15),
    "no-contact": lambda: Case().job("a", "running").link("a", "down").waits(30),
    "trains-alone": lambda: alone(2.5, 2.6),
    "slow-rank": lambda: pair_at_work(hertz=1.5e9),
    "slower-than-predicted": lambda: Case(Expectation(step_seconds=1.0)).steps(FALLING[:20], seconds=1.5),
    "gpu-spins": lambda: Case().job("a", "running").steps(FALLING[:3]).samples(130, a=busy(watts=20)),
    "low-clock": lambda: Case().job("a", "running").samples(60, a=busy(hertz=0.8e9)),
    "nccl-sockets": lambda: Case(RDMA).says(*SOCKET),
    "nccl-one-rail": lambda: Case(RDMA).says(IB.format("")),
}

QUIET: dict[str, Callable[[], Case]] = {
    "memory-climbing": lambda: climbing(0.01),
    "nan-filtered": lambda: Case().steps([3.0, 2.9]).says(metric(3, 0.0, grad_norm=0.5)),
    "nan-loss": lambda: Case().says(metric(1, nan)).steps([3.0, 2.9]),
    "loss-explodes": lambda: Case().steps([3.0, 3.6, 3.2, 3.1]),
    "loss-spike": lambda: Case().steps([*FALLING[:20], 9.0, *FALLING[21:40]]),
    "loss-flat": lambda: Case().steps(FALLING),
    "validation-rises": lambda: validated(2.0, 1.8, 1.81, 1.7),
    "rendezvous-silent": lambda: Case(PAIR).says(launch(1), world(1), node="b").waits(120),
    "same-rank": lambda: joined(Case(PAIR)),
    "waiting-for-data": lambda: joined(Case(PAIR)).waits(90),
    "startup-hang": lambda: joined(Case(PAIR)).waits(250).says(bar("Map", 5, 9), node="a").waits(60),
    "log-node-unread": lambda: joined(Case(PAIR)).waits(200),
    "stall": lambda: Case().steps(FALLING[:10]).waits(30),
    "node-gone": lambda: Case(PAIR).job("a", "running").job("b", "ended").waits(15),
    "no-contact": lambda: Case().job("a", "running").link("a", "down").waits(10),
    "trains-alone": lambda: alone(2.5, 2.5),
    "slow-rank": lambda: pair_at_work(),
    "slower-than-predicted": lambda: Case(Expectation(step_seconds=1.0)).steps(FALLING[:20], seconds=1.1),
    "gpu-spins": lambda: (
        Case().job("a", "running").steps(FALLING[:3]).samples(130, a=busy(watts=20, use=0.1))
    ),
    "low-clock": lambda: Case().job("a", "running").samples(60, a=busy(hertz=0.8e9, use=0.05)),
    "nccl-sockets": lambda: Case(Expectation(nodes=("a", "b"), rdma=False)).says(*SOCKET),
    "nccl-one-rail": lambda: Case(RDMA).says(IB.format(" [1]roceP2p1s0f1:1/RoCE")),
}


@pytest.mark.parametrize("rule", FIRING)
def test_it_is_raised(rule: str) -> None:
    case = FIRING[rule]()
    assert rule in case.ids
    finding = case.finding(rule)
    assert finding.seen
    assert finding.suspects
    assert finding.first_action
    assert finding.facts_link


@pytest.mark.parametrize("rule", QUIET)
def test_it_is_not_raised(rule: str) -> None:
    assert rule not in QUIET[rule]().ids


def test_every_rule_has_both_cases() -> None:
    rules = {rule.id for rule in RULES.findings}
    assert rules == {*LINES, *FIRING, "oom-later"}
    assert set(FIRING) == set(QUIET)


CLEARING: dict[str, Callable[[Case], object]] = {
    "nan-filtered": lambda case: case.says(metric(4, 2.8)),
    "nan-loss": lambda case: case.says(metric(4, 2.8)),
    "stall": lambda case: case.says(metric(11, 2.7)).waits(1),
    "no-contact": lambda case: case.link("a", "up"),
    "startup-hang": lambda case: case.says(metric(1, 3.0), node="b"),
    "rendezvous-silent": lambda case: case.says(world(1), node="b").waits(1),
    "low-clock": lambda case: case.samples(40, a=busy()),
    "gpu-spins": lambda case: case.samples(70, a=busy()),
    "log-node-unread": lambda case: case.says(launch(1), node="b").waits(1),
    "node-gone": lambda case: case.job("a", "ended"),
}


@pytest.mark.parametrize("rule", CLEARING)
def test_it_clears_itself(rule: str) -> None:
    case = FIRING[rule]()
    CLEARING[rule](case)
    assert rule not in case.ids
    assert [change.what for change in case.changes if change.finding.id == rule] == ["raised", "cleared"]


def test_a_finding_is_raised_once_while_it_holds() -> None:
    case = FIRING["stall"]()
    since = case.finding("stall").since
    for _ in range(5):
        case.waits(10)
    assert case.finding("stall").since == since
    assert [change.what for change in case.changes if change.finding.id == "stall"] == ["raised"]


def test_a_node_filling_up_is_seen_without_the_log() -> None:
    assert "memory-climbing" in node_climbing(0.05).ids
    assert "memory-climbing" not in node_climbing(0.0005).ids


@pytest.mark.parametrize("rule", ["stall", "rendezvous-silent", "startup-hang"])
def test_silence_over_a_broken_link_proves_nothing(rule: str) -> None:
    """What was not heard while the link was down says nothing about the node."""
    case = Case(PAIR)
    for node in "ab":
        case.job(node, "running").link(node, "up")
    if rule == "rendezvous-silent":
        case.says(launch(1), node="b")
    else:
        joined(case)
    if rule == "stall":
        for step in range(1, 10):
            case.at += 1
            case.says(metric(step, 3.0), node="b")
    for node in "ab":
        case.link(node, "down")
    assert rule not in case.waits(2000).ids
    for node in "ab":
        case.link(node, "up")
    assert rule not in case.waits(5).ids


def test_a_long_evaluation_is_no_stall() -> None:
    case = Case().steps(FALLING[:10]).says(evaluation(10, 2.5))
    assert "stall" not in case.waits(100).ids


def test_the_last_step_is_no_stall() -> None:
    case = Case().steps(FALLING[:10])
    case.says(metric(1000, 2.0))
    assert "stall" not in case.waits(1000).ids


def test_validation_tells_whether_the_best_was_saved() -> None:
    saved = "[INFO:swift] Saving model checkpoint to /out/checkpoint-20"
    case = validated(2.0, 1.8).says(saved).says(evaluation(30, 1.9), evaluation(40, 2.0))
    assert "step 20" in case.finding("validation-rises").seen
    assert "it was saved" in case.finding("validation-rises").seen
    assert "not saved" in validated(2.0, 1.8, 1.9, 2.0).finding("validation-rises").seen


def test_an_own_port_is_named_as_the_suspect() -> None:
    case = Case(PAIR).says(launch(0, port=29501), node="a").says(launch(1, port=29500), node="b").waits(120)
    finding = next(one for one in case.diagnosis.active if one.key == ("rendezvous-silent", "b"))
    assert "29501" in finding.suspects[0]


def test_readings_that_are_missing_prove_nothing() -> None:
    case = Case().job("a", "running").steps(FALLING[:3])
    case.samples(130, a={"gpu_utilization": 0.99})
    assert case.ids.isdisjoint({"gpu-spins", "low-clock"})


def test_a_gap_in_the_readings_proves_nothing() -> None:
    case = Case().job("a", "running").samples(20, a=busy(hertz=0.8e9))
    case.at += 100
    assert "low-clock" not in case.samples(10, a=busy(hertz=0.8e9)).ids


def test_worst_first() -> None:
    case = Case(Expectation(step_seconds=0.1)).steps(FALLING[:20]).says("KeyError: 'none'").waits(100)
    order = ["failure", "warning", "note"]
    severities = [order.index(finding.severity) for finding in case.diagnosis.active]
    assert len(severities) >= 2
    assert severities == sorted(severities)


def healthy() -> Iterator[tuple[str, Case]]:
    yield "falling", Case(Expectation(step_seconds=1.0)).steps(FALLING)
    yield "noisy", Case().steps([loss + 0.15 * (-1) ** step for step, loss in enumerate(FALLING)])
    yield "warm-up", Case().steps([3.0, 3.2, 3.3, 3.1, *FALLING])
    yield "wide logging", Case().steps(FALLING, every=10)
    yield "two nodes at work", pair_at_work()
    yield "sockets within one host", Case(Expectation(rdma=True)).says(SOCKET[0])


@pytest.mark.parametrize(
    ("name", "case"), list(healthy()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_healthy_run_raises_nothing(name: str, case: Case) -> None:
    assert case.ids == set()
    assert case.changes == []
