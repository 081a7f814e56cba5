"""Rules, verdicts, and a checklist whose steps hang together."""

import pytest
from pydantic import ValidationError

from console.cli.files import shipped
from console.core.errors import InputError
from console.core.plan.checklist import ItemState, Rule, Verdict, judge, parse_checklist, verdict_of

SMOKE = parse_checklist((shipped("checklists") / "smoke.yaml").read_text(encoding="utf-8"), file="smoke.yaml")
ANSWER = {"n": 5, "name": "GB10", "memory": {"total": 100}, "zero": 0, "flag": True, "none": None}


@pytest.mark.parametrize(
    ("rule", "passed"),
    [
        ({"value": "n", "at_least": 5}, True),
        ({"value": "n", "at_least": 6}, False),
        ({"value": "n", "at_most": 5}, True),
        ({"value": "n", "equals": 5}, True),
        ({"value": "name", "equals": "GB10"}, True),
        ({"value": "memory.total", "at_least": "$least"}, True),
        ({"value": "memory.total", "within_factor": 10, "of": "least"}, True),
        ({"value": "n", "within_factor": 10, "of": "least"}, False),
        ({"value": "n", "at_least": "$unstated"}, None),
        ({"value": "absent", "at_least": 1}, False),
        ({"value": "flag", "at_least": 1}, False),
        ({"value": "absent", "present": True}, False),
        ({"value": "none", "present": False}, True),
        ({"value": "zero", "present": True}, True),
    ],
)
def test_rules(rule: dict[str, object], passed: bool | None) -> None:
    found = judge(Rule.model_validate(rule | {"why": "because"}), ANSWER, {"least": 90.0})
    assert found.passed is passed


def test_rule_needs_exactly_one_comparison() -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Rule.model_validate({"value": "n", "at_least": 1, "at_most": 2, "why": "x"})


def states(**changed: ItemState) -> dict[str, ItemState]:
    return {item.id: changed.get(item.id, ItemState.PASSED) for item in SMOKE.items}


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, Verdict.ALL_THROUGH),
        ({"components": ItemState.NOTED}, Verdict.MAIN_LINE),
        ({"components": ItemState.FAILED}, Verdict.MAIN_LINE),
        ({"megatron": ItemState.FAILED}, Verdict.DOWN),
        ({"pair": ItemState.TIMED_OUT}, Verdict.DOWN),
        ({"ordinary": ItemState.SKIPPED}, Verdict.DOWN),
    ],
)
def test_three_verdicts(changed: dict[str, ItemState], verdict: Verdict) -> None:
    assert verdict_of(states(**changed), SMOKE) is verdict


def test_step_that_needs_a_later_one_is_refused() -> None:
    text = """
name: x
title: x
items:
  - {number: 1, id: a, title: a, title_zh: a, why: w, steps: [{id: s, title: s, probe: p, needs: [t]}]}
"""
    with pytest.raises(InputError, match="needs t"):
        parse_checklist(text, file="x.yaml")


@pytest.mark.parametrize("field", ["box_seconds: true", "number: true"])
def test_true_is_no_number(field: str) -> None:
    text = f"""
name: small
title: Small
items:
  - {{id: one, title: One, title_zh: 一, why: w, {field}, steps: [{{id: do, title: Do, command: ["true"]}}]}}
"""
    with pytest.raises(InputError, match="expected a number, not true or false"):
        parse_checklist(text, file="small.yaml")


def test_a_rule_may_want_true_but_not_at_least_true() -> None:
    assert Rule.model_validate({"value": "flag", "equals": True, "why": "w"}).equals is True
    with pytest.raises(ValidationError, match="expected a number, not true or false"):
        Rule.model_validate({"value": "n", "at_least": True, "why": "w"})
