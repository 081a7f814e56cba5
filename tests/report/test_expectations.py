"""Hypotheses beside the figures: judged only where the wording leaves no doubt."""

import pytest
from support.lab_story import Story, train_log

from console.report.expectations import expectations


def outcome(text: str, seconds: float, config: str = "E1") -> str:
    story = Story(only=("E0", "E1", "R1"))
    story.hypotheses(**{config: text})
    story.run("E0", train_log([1.0] * 20))
    story.run("R1", train_log([0.5] * 20))
    story.run(config, train_log([seconds] * 20), attempt=2)
    return next(one.outcome for one in expectations(story.experiment) if one.config == config)


@pytest.mark.parametrize(
    ("text", "seconds", "expected"),
    [
        ("A shorter step than E0, by less than half.", 0.7, "agrees"),
        ("A shorter step than E0, by less than half.", 1.3, "contradicted"),
        ("A shorter step than E0.", 0.99, "contradicted"),
        ("Nearly half the step time of E0.", 0.55, "agrees"),
        ("Nearly half the step time of E0.", 0.7, "reader"),
        ("Nearly half the step time of E0.", 0.98, "contradicted"),
        ("Nearly half the step time of E0.", 1.4, "contradicted"),
        ("比 E0 减半", 0.52, "agrees"),
        ("Faster than E0, but slower than R1.", 0.7, "agrees"),
        ("Faster than E0, but slower than R1.", 0.4, "contradicted"),
        ("Faster than E0, but slower than R1.", 1.3, "contradicted"),
        ("快于 E0，慢于 R1", 0.7, "agrees"),
        ("Faster than E0; how it stands to R1 nobody knows.", 0.7, "reader"),
        ("Not faster than E0, nor slower than R1.", 0.7, "reader"),
        ("Slower than E0, every layer waits.", 1.6, "agrees"),
        ("Slower than E0, every layer waits.", 0.6, "contradicted"),
        ("Between R1 and E0.", 0.7, "agrees"),
        ("Between R1 and E0.", 1.7, "contradicted"),
        ("Not between R1 and E0.", 1.7, "reader"),
        ("E0 is slower.", 0.6, "reader"),
        ("E0 will be faster than this.", 0.6, "reader"),
        ("比 E0 更快", 0.6, "agrees"),
        ("大概率被通信拖住", 0.6, "contradicted"),
        ("It will not be faster.", 0.6, "reader"),
        ("Faster at first, slower later.", 0.6, "reader"),
        ("Hard to say.", 0.6, "reader"),
    ],
)
def test_outcome_follows_the_wording(text: str, seconds: float, expected: str) -> None:
    assert outcome(text, seconds) == expected


def test_the_baseline_has_nothing_to_be_held_against() -> None:
    assert outcome("The baseline.", 1.0, "E0") == "baseline"


def test_a_failed_run_judges_no_hypothesis() -> None:
    story = Story()
    story.hypotheses(E0="The baseline.", E1="Faster than E0.")
    story.run("E0", train_log([1.0] * 20))
    story.run("E1", train_log([0.5] * 20), outcome="failed", cause="x")
    assert [one.outcome for one in expectations(story.experiment)] == ["baseline", "no figure"]


def test_a_broken_comparison_shows_the_figure_that_breaks_it() -> None:
    story = Story(only=("E0", "E1", "R1"))
    story.hypotheses(E1="Faster than E0, but slower than R1.")
    story.run("E0", train_log([1.0] * 20))
    story.run("R1", train_log([0.5] * 20))
    story.run("E1", train_log([0.25] * 20), attempt=2)
    (found,) = expectations(story.experiment)
    assert (found.outcome, found.against, found.step_ratio) == ("contradicted", "R1", pytest.approx(0.5))


def test_a_difference_within_the_scatter_of_both_is_for_the_reader() -> None:
    story = Story()
    story.hypotheses(E1="Faster than E0.")
    story.run("E0", train_log([1.0, 0.7, 1.3, 0.8, 1.2] * 4))
    story.run("E1", train_log([0.9, 0.6, 1.2, 0.7, 1.1] * 4))
    found = next(one for one in expectations(story.experiment) if one.config == "E1")
    assert (found.outcome, found.step_ratio) == ("reader", pytest.approx(0.9, abs=0.02))
