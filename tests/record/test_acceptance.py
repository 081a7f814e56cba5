"""The five criteria, judged from what the journal holds."""

import pytest
from support.lab_story import GIB, Story, demo, seven_b_log, spark, train_log

from console.core.plan.checklist import ItemState
from console.core.record import events as ev
from console.core.record.acceptance import Criterion, accepted, criteria, verdict


def criterion(story: Story, number: int, lang: str = "en") -> Criterion:
    return criteria(story.experiment, "zh" if lang == "zh" else "en")[number - 1]


def whole() -> Story:
    """A lab on machines of its own that met everything."""
    story = spark()
    story.add(ev.ServiceChanged, state="serving")
    story.add(ev.ServiceChanged, state="stopped")
    story.walk()
    story.run("E0", seven_b_log(4.0))
    story.run("E1", seven_b_log(2.2))
    story.run("R1", seven_b_log(3.1))
    story.add(ev.ServiceChanged, state="healthy", words="answers 204")
    return story


def test_everything_met_is_accepted_before_and_after_the_end() -> None:
    story = whole()
    assert accepted(story.experiment)
    story.close()
    assert [one.met for one in criteria(story.experiment)] == [True] * 5
    assert verdict(story.experiment) == "Accepted: all five criteria are met."
    assert verdict(story.experiment, "zh") == "验收通过：五条全部满足。"


def test_the_degraded_path_needs_two_rows_and_says_so() -> None:
    story = demo()
    assert accepted(story.experiment)
    assert "on the degraded path" in verdict(story.experiment)
    assert "compared three ways" in criterion(story, 2).proof


def test_two_rows_are_not_enough_on_the_full_path() -> None:
    story = spark(only=("E0", "E1"))
    story.walk()
    story.run("E0", seven_b_log(4.0))
    story.run("E1", seven_b_log(2.2))
    story.close("fell short")
    second = criterion(story, 2)
    assert second.met is False
    assert "2 of at least 3 configurations are complete" in second.missing


def test_the_three_way_comparison_needs_an_own_measured_peak() -> None:
    story = Story(facts={}, peaks="[{dtype: float32, tflops: 1, origin: published, source: maker}]")
    story.run("E0", train_log([0.5] * 12))
    story.run("E1", train_log([0.5] * 12))
    assert "lacks an own measured peak" in criterion(story, 2).missing


@pytest.mark.parametrize(
    ("state", "error", "met", "words"),
    [
        (ItemState.PASSED, "", True, ""),
        (ItemState.NOTED, "", True, ""),
        (ItemState.FAILED, "ImportError: no module", True, ""),
        (ItemState.TIMED_OUT, "box over", True, ""),
        (ItemState.FAILED, "", False, "2 failed without its raw error"),
        (ItemState.SKIPPED, "", False, "2 was skipped, so not tested"),
    ],
)
def test_checklist_items_need_a_conclusion(state: ItemState, error: str, met: bool, words: str) -> None:
    story = Story()
    story.walk(state, error)
    first = criterion(story, 1)
    assert first.met is met
    assert words in first.missing


def test_items_still_to_come_leave_it_open_until_the_end() -> None:
    story = Story()
    assert criterion(story, 1).met is None
    assert verdict(story.experiment).startswith("No conclusion yet")
    story.close("stopped")
    assert criterion(story, 1).met is False
    assert verdict(story.experiment).startswith("Fell short")


def test_a_blank_cell_a_bad_end_and_a_missing_row_are_each_named() -> None:
    story = spark(only=("E0", "E1", "R1", "G1"))
    story.run("E0", seven_b_log(4.0), peaks={"node-a": None})
    story.run("E1", seven_b_log(2.2), outcome="failed", cause="link down")
    story.run("R1", b"", outcome="failed", cause="no log", record=False)
    story.close("fell short")
    missing = criterion(story, 2).missing
    assert "E0 lacks peak memory of node-a" in missing
    assert "the run of E1 did not end well" in missing
    assert "R1 has no row (failed: no log)" in missing
    assert "not run: G1" in criterion(story, 2).proof


def test_mfu_needs_a_figure_and_a_named_peak_in_every_row() -> None:
    story = Story()
    story.run("E0", train_log([0.5] * 12))
    story.run("E1", train_log([0.5] * 12, mean_tokens=None))
    third = criterion(story, 3)
    assert third.met is False
    assert third.missing == "no MFU or no named peak: E1"
    assert "matrix product" in third.proof


def test_figures_of_another_lab_are_not_told_as_those_of_two_sparks() -> None:
    own, foreign = criterion(demo(), 4), criterion(demo(), 4, "zh")
    assert own.met
    assert own.proof.endswith("on paper: degraded, on a CPU, no 7B model, all nodes are one computer")
    assert "纸面账" in foreign.proof


@pytest.mark.parametrize(
    ("device", "told"), [("NVIDIA GB10", ""), ("NVIDIA H200", "; measured on NVIDIA H200, not on Sparks")]
)
def test_the_device_of_the_figures_is_named_unless_it_is_a_spark(device: str, told: str) -> None:
    story = spark(only=("E0", "E1"))
    for node in ("node-a", "node-b"):
        story.add(ev.NodeDescribed, node=node, facts={"gpu_name": device, "boot_id": node})
    story.run("E0", seven_b_log(4.0))
    story.run("E1", seven_b_log(2.2), peaks={"node-a": 21 * GIB, "node-b": 21 * GIB})
    proof = criterion(story, 4).proof
    assert proof.startswith("section 3 cites E0 800 tokens/s, E1 1455 tokens/s")
    assert proof.partition("E1 1455 tokens/s")[2] == told


def test_the_answer_needs_a_comparison_over_both_machines() -> None:
    story = spark(only=("E0", "R1"))
    story.run("E0", seven_b_log(4.0))
    story.run("R1", seven_b_log(3.1))
    assert criterion(story, 4).met is False
    assert "over both nodes" in criterion(story, 4).missing
    story = whole()
    assert "E1 1455 tokens/s" in criterion(story, 4).proof


@pytest.mark.parametrize(
    ("states", "closed", "met"),
    [
        ((), False, None),
        ((), True, False),
        (("serving",), True, True),
        (("serving", "stopped"), True, False),
        (("stopped", "restoring"), False, None),
        (("stopped", "restoring", "not healthy"), True, False),
        (("stopped", "serving"), True, False),
        (("stopped", "restoring", "healthy"), True, True),
    ],
)
def test_a_borrowed_service_has_to_be_proven_healthy(
    states: tuple[str, ...], closed: bool, met: bool | None
) -> None:
    story = spark()
    for state in states:
        story.add(ev.ServiceChanged, state=state)
    if closed:
        story.close("stopped")
    assert criterion(story, 5).met is met


def test_no_borrowed_service_is_met_only_as_such() -> None:
    fifth = criterion(Story(), 5)
    assert fifth.met is True
    assert fifth.proof.startswith("no service was borrowed")
    assert "proves nothing about a restore" in fifth.proof


def test_texts_and_proofs_exist_in_both_languages() -> None:
    for story in (Story(), demo(), whole()):
        for one, zh in zip(criteria(story.experiment), criteria(story.experiment, "zh"), strict=True):
            assert one.text_zh == zh.text_zh
            assert one.met is zh.met
            assert zh.proof
            assert bool(one.missing) == bool(zh.missing)
            assert any("\u4e00" <= letter <= "\u9fff" for letter in zh.text_zh + zh.proof)
