"""The one page: right for any outcome, one page long, in both languages."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab_story import GIB, GPU_FACTS, Story, demo, seven_b_log, spark, train_log

sys.path.insert(0, str(Path(__file__).parent))

from cases import CASES

from console.core.plan.checklist import ItemState
from console.core.record import events as ev
from console.report.onepage import one_page

LINE_WIDTH, LINES_PER_PAGE = {"en": 135, "zh": 80}, 78
"""What one sheet of A4 holds at the page's print size; wide letters count double in Chinese."""

HEADINGS = {
    "en": ("fastest", "memory go", "7B LoRA tomorrow", "published A800", "Acceptance"),
    "zh": ("哪种配置最快", "显存", "7B LoRA", "官方 A800", "验收"),
}


def section(page: str, number: int) -> str:
    return re.split(r"^## ", page, flags=re.MULTILINE)[number]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("case", CASES)
def test_every_page_answers_in_order_and_fits_one_sheet(case: str, lang: str) -> None:
    page = one_page(CASES[case]().experiment, "zh" if lang == "zh" else "en")
    headings = re.findall(r"^## (.*)$", page, flags=re.MULTILINE)
    assert len(headings) == 5
    for heading, words in zip(headings, HEADINGS[lang], strict=True):
        assert words in heading
    lines = sum(1 + len(line) // LINE_WIDTH[lang] for line in page.splitlines() if line.strip())
    assert lines <= LINES_PER_PAGE


@pytest.mark.parametrize("case", CASES)
def test_nothing_missing_is_written_as_zero_nan_or_none(case: str) -> None:
    for lang in ("en", "zh"):
        page = one_page(CASES[case]().experiment, lang)
        prose = page.replace("NaN that the framework", "")
        assert not re.search(r"\bNone\b|\bnan\b|\bundefined\b", prose)
        assert not re.search(r"\| 0 \|| 0 tokens/s| 0 s/it", prose)


def test_the_head_names_environment_and_reason_of_degradation() -> None:
    head = section(one_page(demo().experiment), 0)
    assert "**Degraded:** CPU nodes without a GPU" in head
    assert "x86_64" in head
    assert "ms-swift 4.6.0" in head
    assert "Accepted on the degraded path" in head


def test_a_lab_that_is_not_degraded_says_nothing_of_it() -> None:
    assert "Degraded" not in one_page(spark().experiment)


def test_nodes_that_differ_are_told_apart() -> None:
    story = spark()
    story.add(ev.NodeDescribed, node="node-b", facts={"driver": "580.99"})
    head = section(one_page(story.experiment), 0)
    assert "Environment, node-a:" in head
    assert "driver 580.99" in head


def test_without_e1_only_e0_speaks() -> None:
    story = Story()
    story.run("E0", train_log([0.8] * 20))
    page = one_page(story.experiment)
    assert "Only **E0** has figures" in page
    assert "| E1 | not run |" in page
    assert "only one configuration has figures" in section(page, 3)


def test_without_the_baseline_no_factor_is_given() -> None:
    story = spark(only=("E0", "E1", "R1"))
    story.run("E0", b"", outcome="failed", cause="refused")
    story.run("E1", seven_b_log(2.0))
    story.run("R1", seven_b_log(3.0))
    first = section(one_page(story.experiment), 1)
    assert "no factor against it" in first
    assert "left out of the comparison" in first


def test_differing_tokens_per_step_are_said_and_rates_decide() -> None:
    story = spark(only=("E0", "G1"))
    story.run("E0", seven_b_log(4.0, 3200))
    story.run("G1", seven_b_log(2.5, 1600))
    first = section(one_page(story.experiment), 1)
    assert "**E0** trains the most tokens/s" in first
    assert "s/it alone does not compare them" in first
    assert "shortest step is G1's" in first


def test_a_difference_of_two_percent_is_not_called_one() -> None:
    story = spark(only=("E0", "E1"))
    story.run("E0", seven_b_log(4.0))
    story.run("E1", seven_b_log(3.94))
    page = one_page(story.experiment)
    assert "less than 3.0 %" in section(page, 1)
    assert "**E0 (TP1)**" in section(page, 3)


def uneven(apart: float) -> list[float]:
    """Thirty step times about 2 s, half of them so much below and half so much above."""
    return [6.0, *(2.0 - apart, 2.0 + apart) * 14, 2.0]


@pytest.mark.parametrize(("apart", "told"), [(0.02, True), (0.4, False)])
def test_a_margin_within_the_scatter_of_the_steps_names_no_winner(apart: float, told: bool) -> None:
    story = spark(only=("E0", "E1"))
    story.run("E0", train_log([1.05 * seconds for seconds in uneven(apart)], tokens_per_step=3200))
    story.run("E1", train_log(uneven(apart), tokens_per_step=3200))
    page, page_zh = one_page(story.experiment), one_page(story.experiment, "zh")
    assert "1.05× the second" in section(page, 1)
    assert ("twice the error that the scatter of their steps leaves" in section(page, 1)) is not told
    assert ("离散造成的误差的两倍" in page_zh) is not told
    assert ("**E1 (DP2)**" in section(page, 3)) is told


def test_rows_without_a_scatter_claim_no_more_than_is_known() -> None:
    story = spark(only=("E0", "E1"))
    story.run("E0", seven_b_log(4.0))
    story.run("E1", seven_b_log(2.0))
    experiment = story.experiment
    older = {config: row.model_copy(update={"step_spread": None}) for config, row in experiment.rows.items()}
    words = "The scatter of their steps is not known, so chance is not ruled out."
    assert words not in one_page(experiment)
    assert words in one_page(replace(experiment, rows=older))
    assert "不能排除偶然" in one_page(replace(experiment, rows=older), "zh")


def test_a_contradicted_hypothesis_is_said() -> None:
    story = Story()
    story.hypotheses(E0="The baseline.", E1="Faster than E0.")
    story.run("E0", train_log([0.5] * 20))
    story.run("E1", train_log([0.9] * 20))
    assert "**contradicted** (1.80× the step time of E0)" in one_page(story.experiment)
    assert "**被数据推翻**" in one_page(story.experiment, "zh")


def test_own_figures_choose_on_own_machines() -> None:
    story = spark(only=("E0", "E1", "R1"))
    story.run("E0", seven_b_log(4.0))
    story.run("E1", seven_b_log(2.2))
    story.run("R1", seven_b_log(3.1))
    third = section(one_page(story.experiment), 3)
    assert third.splitlines()[2].startswith("**E1 (DP2)**: 1,455 tokens/s")
    assert "R1 alone gives 1.29× E0" in third
    assert "On paper" not in third


def test_stand_ins_say_what_they_do_not_show() -> None:
    third = section(one_page(demo().experiment), 3)
    assert "it trained on a CPU" in third
    assert "do not show the speed of a 7B model on two Sparks" in third
    assert "On paper: **data parallel over both Sparks**" in third


def test_a_full_machine_is_a_warning() -> None:
    story = spark(only=("E0", "E1"))
    story.run("E0", seven_b_log(4.0))
    story.run("E1", seven_b_log(2.0), peaks={"node-a": 118 * GIB, "node-b": 118 * GIB})
    assert "leaves too little" in section(one_page(story.experiment), 3)


def test_training_that_broke_is_not_recommended_in_silence() -> None:
    story = spark(only=("E0", "E1"))
    story.run("E0", seven_b_log(4.0))
    story.run("E1", seven_b_log(2.0, losses={30: "nan"}))
    page = one_page(story.experiment)
    assert "its training was not sound: the loss of step 30, the last one, is nan" in section(page, 3)
    assert "not finite in 1 of 30 steps" in section(page, 1)


def test_a_reading_below_the_account_is_not_explained_away() -> None:
    story = spark(only=("E0",))
    story.run("E0", seven_b_log(4.0), peaks={"node-a": 2 * GIB})
    assert "more than the reading" in section(one_page(story.experiment), 2)


def test_published_utilisation_follows_from_the_published_step_times() -> None:
    fourth = section(one_page(Story().experiment), 4)
    dense = 6 * 14_770_033_664 * 16 * 8192 / 9.04 / (8 * 312e12)
    assert f"| 9.04 | 64 GB | {dense * 100:.1f} % |" in fourth


def test_reasons_for_the_gap_follow_from_the_facts() -> None:
    cpu, gpu = demo(), spark(only=("E0",))
    gpu.run("E0", seven_b_log(4.0))
    assert "trained on a CPU" in section(one_page(cpu.experiment), 4)
    fourth = section(one_page(gpu.experiment), 4)
    assert "CPU" not in fourth
    assert "rows have 200 tokens" in fourth
    assert "the table's is the maker's 312" in fourth


def test_a_page_with_a_secret_masks_it_and_says_so() -> None:
    story = Story()
    secret = "hf_" + "Ab1" * 12
    story.run("E0", b"", outcome="failed", cause=f"401 for token {secret}")
    for lang in ("en", "zh"):
        page = one_page(story.experiment, lang)
        assert secret not in page
        assert "redacted" in page
    assert "Secrets were masked in 2 places" in one_page(story.experiment)


def test_a_secret_is_masked_before_the_text_is_cut() -> None:
    secret = "hf_" + "Ab1" * 12
    for length in range(150, 230, 7):
        story = Story()
        story.run("E0", b"", outcome="failed", cause="x" * length + " " + secret)
        assert "hf_Ab1" not in one_page(story.experiment)


def test_markdown_of_others_stays_text() -> None:
    story = Story()
    story.run(
        "E0", b"", outcome="failed", cause="a | b\n# head\n<script>x</script> [l](http://h) `c` **d** _e_"
    )
    page = one_page(story.experiment)
    line = next(line for line in page.splitlines() if "left out" in line)
    assert r"a \| b; \# head; &lt;script&gt;" in line
    assert r"\[l\](http://h) \`c\` \*\*d\*\* \_e\_" in line


@settings(max_examples=40, deadline=None)
@given(
    outcomes=st.lists(st.sampled_from(["done", "failed", "stopped", "timed out"]), max_size=5),
    seconds=st.floats(0.01, 30),
    steps=st.integers(0, 12),
    mean=st.sampled_from([None, 90.0]),
    state=st.sampled_from(list(ItemState)[2:]),
    real=st.booleans(),
    known=st.sampled_from([{}, GPU_FACTS]),
    cause=st.text(max_size=40),
)
def test_no_outcome_breaks_the_page(
    outcomes: list[str],
    seconds: float,
    steps: int,
    mean: float | None,
    state: ItemState,
    real: bool,
    known: dict[str, object],
    cause: str,
) -> None:
    ids = ("E0", "E1", "R1", "G1", "P2")
    story = replace(spark(only=ids) if real else Story(only=ids), facts=known, events=[])
    story.walk(state, cause)
    for config, outcome in zip(ids, outcomes, strict=False):
        log = train_log([seconds] * steps, mean_tokens=mean)
        story.run(config, log, outcome=outcome, cause=cause)
    for lang in ("en", "zh"):
        assert one_page(story.experiment, lang).count("\n## ") == 5
