"""The rule file: what ships is valid, and what is wrong is told by field."""

import pytest

from console.core.errors import InputError
from console.core.reading.diagnosis import load_rules
from tests.reading.judging import RULES, RULES_FILE

SMALLEST = """
version: 1
signatures:
  - {id: boom, contains: ["it went boom"], pattern: "it went boom"}
findings:
  - id: boom
    severity: failure
    title: It went boom
    seen: "{text}"
    suspects: [the fuse]
    first_action: Look at the fuse.
    facts: seed 5.3
    when: {kind: symptom, signatures: [boom]}
"""


def test_the_smallest_file_is_valid() -> None:
    assert [signature.contains for signature in load_rules(SMALLEST).signatures] == [(b"it went boom",)]


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("severity: failure", "severity: bad", "severity"),
        ("title: It went boom", "name: It went boom", "title"),
        ("suspects: [the fuse]", "suspects: []", "suspects"),
        ("signatures: [boom]", "signatures: [bang]", "signatures"),
        ('["it went boom"]', '["boom"]', "contains"),
        ('pattern: "it went boom"', 'pattern: "(boom"', "pattern"),
        ("{kind: symptom, signatures: [boom]}", "{kind: guess}", "when"),
        ("version: 1", "version: 2", "version"),
        ("version: 1", "version: [", "YAML"),
        (
            "    when: {kind: symptom, signatures: [boom]}",
            "    when: {kind: watch, function: crystal_ball}",
            "boom",
        ),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, word: str) -> None:
    assert old in SMALLEST
    with pytest.raises(InputError) as caught:
        load_rules(SMALLEST.replace(old, new), "my-rules.yaml")
    assert "my-rules.yaml" in caught.value.render()
    assert word in caught.value.render()


@pytest.mark.parametrize("text", ["", "[]", "just words", "version: 1"])
def test_what_is_no_rule_file_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        load_rules(text)


def test_what_ships_speaks_to_a_person() -> None:
    for rule in RULES.findings:
        assert len(rule.title) > 8
        assert len(rule.first_action) > 15
        assert rule.facts


def test_what_ships_names_no_machine() -> None:
    text = RULES_FILE.read_text(encoding="utf-8")
    assert not any(word in text for word in ("/root", "/work", "/home/"))
