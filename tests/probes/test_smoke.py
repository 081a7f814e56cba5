"""The checklist as shipped: seven items that refer to probes and answers that exist."""

from pathlib import Path

import pytest

from console.core.plan.checklist import (
    Checklist,
    ItemState,
    Rule,
    Step,
    Verdict,
    judge,
    parse_checklist,
    verdict_of,
)
from console.nodes.probes import PROBES, probe_source

from .conftest import Ask

TRAINED = {
    "exit_code": 0,
    "ended": True,
    "steps": 10,
    "max_step": 10,
    "nonfinite_steps": 0,
    "filtered_nan_steps": 0,
    "first_loss": 6.3,
    "last_loss": 6.2,
    "peak_memory_bytes": 1 << 30,
    "checkpoint": "/x/checkpoint-10",
    "log_lines": 30,
    "log_on_expected_rank": True,
    "steady_step_seconds": 0.3,
}


@pytest.fixture(scope="module")
def smoke() -> Checklist:
    place = Path(__file__).parents[2] / "checklists" / "smoke.yaml"
    return parse_checklist(place.read_text(encoding="utf-8"), file=place.name)


def step_of(smoke: Checklist, item: str, step: str) -> Step:
    return next(found for found in smoke.item(item).steps if found.id == step)


def fails(rules: list[Rule], answer: dict[str, object], baselines: dict[str, float]) -> list[str]:
    return [rule.value for rule in rules if judge(rule, answer, baselines).passed is False]


def test_seven_items_with_their_boxes(smoke: Checklist) -> None:
    assert [item.id for item in smoke.items] == [
        "baseline",
        "environment",
        "swift",
        "components",
        "ordinary",
        "megatron",
        "pair",
    ]
    assert smoke.box_seconds == 2400
    assert {item.box_seconds for item in smoke.items} == {900}
    assert all(item.title_zh and item.why for item in smoke.items)
    assert all(rule.why for item in smoke.items for step in item.steps for rule in step.rules)


def test_every_probe_it_names_exists(smoke: Checklist) -> None:
    named = {step.probe for item in smoke.items for step in item.steps if step.probe}
    assert named <= PROBES.keys()
    assert all(probe_source(name) for name in named)


def test_no_step_outlasts_the_box_of_its_item(smoke: Checklist) -> None:
    for item in smoke.items:
        for step in item.steps:
            assert step.timeout_seconds <= item.box_seconds


def test_a_failing_te_closes_a_line_and_blocks_nothing(smoke: Checklist) -> None:
    assert step_of(smoke, "components", "transformer_engine").closes == "TE/FP8"
    states = {item.id: ItemState.PASSED for item in smoke.items}
    assert verdict_of(states | {"components": ItemState.NOTED}, smoke) is Verdict.MAIN_LINE
    assert verdict_of(states | {"components": ItemState.FAILED}, smoke) is Verdict.MAIN_LINE
    assert verdict_of(states | {"megatron": ItemState.FAILED}, smoke) is Verdict.DOWN
    assert verdict_of(states, smoke) is Verdict.ALL_THROUGH


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, []),
        ({"steps": 9}, ["steps"]),
        ({"filtered_nan_steps": 1}, ["filtered_nan_steps"]),
        ({"nonfinite_steps": 2}, ["nonfinite_steps"]),
        ({"checkpoint": None}, ["checkpoint"]),
        ({"peak_memory_bytes": None}, ["peak_memory_bytes"]),
        ({"exit_code": 1}, ["exit_code"]),
        ({"exit_code": None}, ["exit_code"]),
    ],
)
def test_what_ten_steps_must_show(smoke: Checklist, change: dict[str, object], failing: list[str]) -> None:
    assert fails(step_of(smoke, "ordinary", "train").rules, TRAINED | change, {}) == failing


def test_an_order_of_magnitude_fails_the_baseline(smoke: Checklist) -> None:
    rules = step_of(smoke, "baseline", "bench").rules
    spark = {"copy_gbps": 180.0, "matmul_tflops": 92.0, "min_sm_clock_mhz": 1400.0}
    good = {"copy_gbps": 124.0, "matmul_tflops": 11.9, "sm_clock_mhz": 2400.0}
    assert fails(rules, good, spark) == []
    assert fails(rules, good | {"matmul_tflops": 9.0}, spark) == ["matmul_tflops"]
    assert fails(rules, good | {"sm_clock_mhz": 850.0}, spark) == ["sm_clock_mhz"]
    assert fails(rules, good | {"sm_clock_mhz": None}, spark) == ["sm_clock_mhz"]
    on_cpu = {"copy_gbps": 25.0, "matmul_tflops": 0.4, "sm_clock_mhz": None}
    assert fails(rules, on_cpu, {"copy_gbps": 25.0, "matmul_tflops": 0.4}) == []


def test_its_rules_are_answered_by_the_probes(smoke: Checklist, ask: Ask) -> None:
    """Every value that a rule of these steps looks at is a key of the real answer."""
    for item, step_id in (("baseline", "describe"), ("environment", "verify")):
        step = step_of(smoke, item, step_id)
        assert step.probe
        answer = ask(step.probe, step.args)
        for rule in step.rules:
            judged = judge(rule, answer, {"gpu_count": float(answer.get("gpu_count") or 0)})
            assert judged.seen is not None, rule.value
            if rule.value != "isolated":
                assert judged.passed is True, judged
    for step in smoke.item("components").steps:
        assert step.probe
        answer = ask(step.probe, step.args | {"seconds": 60})
        assert [judge(rule, answer, {}).seen in (True, False) for rule in step.rules] == [True]
