"""What the logged steps of a run say before its row is recorded, and what stays of that beside the row."""

from pathlib import Path

import pytest

from console.core.ledger.columns import Comparison
from console.core.record import events as ev
from console.core.record.experiment import Experiment
from console.core.record.folding import fold
from console.tui.comparison import comparison_of
from console.tui.screens.ledger import comparison_text
from console.tui.words import Words
from tui.conftest import Opener
from tui.support import GIB, at, e0_done, opening, planned, screen_text, steps_of, story

EN = Words("en")


def running(steps: int, *extra: ev.Event) -> Experiment:
    """E0 on its way: a slow first step, then 6 s each; the fullest memory at its second step."""
    logged = [event for event in steps_of("E0", 20.5, steps, 93, 6.0) if isinstance(event, ev.StepLogged)]
    changed = [
        event.model_copy(
            update={
                "elapsed_seconds": (event.elapsed_seconds or 0.0) + 50.0,
                "memory_gib": 40.0 if event.step == 2 else 38.0,
            }
        )
        for event in logged
    ]
    return fold([*opening(), *planned("E0", 20), *changed, *extra])


def compared(experiment: Experiment) -> Comparison:
    return comparison_of(experiment, experiment.profile.configuration("E0"), EN)[0]


def test_a_run_under_way_is_probed_by_its_logged_steps() -> None:
    found = compared(running(20))
    assert found.measured is None
    assert found.probed is not None
    assert found.probed.step_seconds.number == pytest.approx(6.0)
    assert found.probed.step_seconds.source == "median of 15 intervals, from 20 logged steps"
    assert found.probed.memory_bytes.number == 40.0 * GIB
    assert found.probed.memory_bytes.source == "greatest of 20 logged steps"
    assert {gap.quantity for gap in found.gaps} >= {"memory_bytes", "step_seconds"}, "against paper"


@pytest.mark.parametrize(("steps", "clean"), [(5, 0), (7, 2), (8, 3)])
def test_a_step_time_needs_three_clean_intervals(steps: int, clean: int) -> None:
    probed = compared(running(steps)).probed
    assert probed is not None
    assert (probed.step_seconds.number is not None) == (clean == 3)
    if clean < 3:
        assert probed.step_seconds.missing == f"{clean} clean intervals after warm-up, 3 are needed"
    assert probed.memory_bytes.number == 40.0 * GIB, "which needs no warm-up"


def test_an_interval_with_an_evaluation_in_it_is_not_clean() -> None:
    probed = compared(running(8, ev.Evaluated(at=at(22), run="E0-1", step=6, loss=1.0, end_byte=9))).probed
    assert probed is not None
    assert probed.step_seconds.missing.startswith("2 clean intervals")


def test_nothing_is_probed_before_the_first_step() -> None:
    assert compared(running(0)).probed is None


def test_beside_the_measured_row_stays_what_the_first_steps_said() -> None:
    found = compared(fold([*opening(), *e0_done()]))
    assert found.measured is not None
    assert found.probed is not None
    assert found.probed.step_seconds.number == pytest.approx(6.42)
    assert found.probed.step_seconds.source == "median of 3 intervals, from 8 logged steps"
    waiting = compared(running(20)).paper
    assert waiting is not None
    assert waiting.step_seconds.number is not None
    assert found.paper is not None
    assert found.paper.step_seconds.number == pytest.approx(waiting.step_seconds.number * 8197 / 32768)
    against_paper = {gap.quantity: gap.relative for gap in found.gaps if gap.against == "paper"}
    paper = found.paper.step_seconds.number if found.paper else None
    assert paper is not None
    assert against_paper["step_seconds"] == pytest.approx(6.42 / paper - 1), "the measured figure counts"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_is_probed_is_told_with_what_it_rests_on(lang: str) -> None:
    words, experiment = Words(lang), running(6)
    found, reason = comparison_of(experiment, experiment.profile.configuration("E0"), words)
    text = comparison_text(found, reason, {}, words).plain
    assert words("ledger.too_few_steps", n=1, needed=3) in text
    assert words("ledger.of_steps", n=6) in text


async def test_the_ledger_shows_the_run_under_way(opened: Opener, folder: Path) -> None:
    async with opened(story(folder), screen="ledger", size=(120, 40)) as (_, app, _seen):
        text = screen_text(app)
        assert "3.21" in next(row for row in text.splitlines() if EN("ledger.step_seconds") in row)
        assert "from 61 logged steps" in text
