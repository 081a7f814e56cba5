"""The rule file: what is refused, and how findings behave over time."""

import pytest

from console.core.errors import InputError
from console.core.reading.rules import Rules, load_rules
from tests.reading.diagnosing import PAIR, ROOT, RULES, diagnosis, step

SHIPPED = (ROOT / "checklists" / "diagnosis.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("version: 1", "version: 2", "version"),
        ("severity: failure", "severity: bad", "severity"),
        ("function: nan_filtered", "function: nan_invented", "no function nan_invented"),
        ("- id: cuda-oom", "- id: cuda-oom-2", "cuda-oom"),
        ("kind: symptom, signatures: [ready-twice]", "kind: symptom, signatures: [nothing]", "nothing"),
        ("- id: host-oom\n    contains", "- id: cuda-oom\n    contains", "cuda-oom"),
        ("pattern: 'Expected to mark", "pattern: '(Expected to mark", "regular expression"),
        ('contains: ["EADDRINUSE"]', "contains: []", "contains"),
        ("first_action:", "first_step:", "first_"),
        ("version: 1", "version: [1", "not YAML"),
    ],
)
def test_a_broken_rule_file_is_refused_with_its_place(old: str, new: str, said: str):
    assert old in SHIPPED
    with pytest.raises(InputError, match=r"rules\.yaml") as caught:
        load_rules(SHIPPED.replace(old, new, 1), "rules.yaml")
    assert said in caught.value.render()


def test_every_text_can_be_shown_and_every_link_is_one():
    for rule in RULES.findings:
        assert rule.facts.startswith("https://")
        assert rule.title
        assert rule.first_action.endswith(".")


def test_the_searched_literals_are_those_of_the_patterns():
    assert isinstance(RULES, Rules)
    assert {signature.id for signature in RULES.signatures} == {rule.id for rule in RULES.signature_rules}


def test_a_finding_keeps_the_time_it_was_raised_and_is_raised_once():
    watched = diagnosis(PAIR)
    nan = float("nan")
    raised = watched.facts("node-a", [step(3, 0.0, nan)], 5.0)
    assert [(change.what, change.at) for change in raised] == [("raised", 5.0)]
    assert watched.facts("node-a", [step(4, 0.0, nan)], 6.0) == ()
    assert watched.active[0].since == 5.0
    assert [change.what for change in watched.facts("node-a", [step(5)], 7.0)] == ["cleared"]


def test_the_worst_comes_first():
    watched = diagnosis(PAIR)
    watched.job("node-a", "running", 0.0)
    watched.link("node-a", "down", 0.0)
    watched.tick(30.0)
    watched.facts("node-b", [step(1), step(2, 0.0, float("nan"))], 31.0)
    assert [finding.severity for finding in watched.active] == ["failure", "warning"]
