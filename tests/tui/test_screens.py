"""What the screens say: ages, sources, blanks, states, on the smallest terminal too."""

import re
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from rich.cells import cell_len
from support.waiting import until
from textual.widgets import DataTable, OptionList

from console.core.ledger.columns import Column, Comparison
from console.core.plan.checklist import ItemState, Judgement
from console.core.record import events as ev
from console.core.record.figures import Source
from console.core.record.folding import apply
from console.core.record.predictions import predictions
from console.engine.replay import ReadSession
from console.tui.actions import SCREENS
from console.tui.comparison import comparison_of
from console.tui.messages import CellChosen
from console.tui.readings import KEPT, Readings
from console.tui.screens.checklist import evidence_text, so_far
from console.tui.screens.ledger import comparison_text
from console.tui.screens.record import read_excerpt, source_text
from console.tui.screens.runs_text import matrix_text
from console.tui.words import Words
from tui.conftest import Opener
from tui.support import (
    GIB,
    NODES,
    FakeSession,
    at,
    e0_done,
    hypotheses,
    item_four,
    opening,
    sample,
    screen_text,
    story,
    walk,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "h200-pair"
AGED = re.compile(r"GiB .* s ago")
"""A reading with its age."""


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_no_line_is_wider_than_the_terminal(
    opened: Opener, folder: Path, screen: str, lang: str
) -> None:
    async with opened(story(folder), screen=screen, lang=lang) as (_, app, _seen):
        for line in screen_text(app).split("\n"):
            assert cell_len(line) == 80, line


async def test_an_old_reading_is_shown_with_its_age(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session) as (_, app, _seen):
        assert not AGED.search(screen_text(app))
        session.clock += timedelta(seconds=25)
        await until(lambda: AGED.search(screen_text(app)), "ages of the readings")


async def test_the_age_of_the_leases_is_said_to_be_one(opened: Opener, folder: Path) -> None:
    session = story(folder)
    renewed = session.clock - timedelta(seconds=46)
    session.happen(
        *(
            ev.GuardSeen(at=renewed, node=node, state="ok", lease_until=session.clock + timedelta(minutes=14))
            for node in session.experiment.nodes
        )
    )
    async with opened(session) as (_, app, _seen):
        assert "lease ● a 46 s ● b 46 s ago" in screen_text(app)
    async with opened(session, size=(120, 40)) as (_, app, _seen):
        assert "lease renewed ● a 46 s ● b 46 s ago" in screen_text(app)


async def test_a_run_without_a_new_step_says_how_long(opened: Opener, folder: Path) -> None:
    session = story(folder)
    session.clock += timedelta(minutes=3)
    async with opened(session, screen="runs") as (_, app, _seen):
        assert "last step 3m" in screen_text(app)


async def test_link_stream_and_job_are_told_apart(opened: Opener, folder: Path) -> None:
    session = story(folder)
    session.happen(
        ev.StreamChanged(at=session.clock, node="spark-a", state="lost"),
        ev.JobSeen(at=session.clock, run="E1-1", node="spark-b", state="ended", exit_code=1),
    )
    async with opened(session) as (_, app, _seen):
        first, second = (next(x for x in screen_text(app).split("\n") if x.startswith(n)) for n in NODES)
        assert all(word in first for word in ("link ● up", "stream ✗ lost", "E1 running"))
        assert all(word in second for word in ("link ● up", "stream ● live", "E1 ended exit 1"))


async def test_without_colour_every_state_is_still_a_word(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(story(folder)) as (_, app, _seen):
        assert app.no_color
        assert "● up" in screen_text(app)
        assert "running" in screen_text(app)


async def test_a_number_leads_to_the_line_it_came_from(opened: Opener, folder: Path) -> None:
    session = story(folder)
    row = session.experiment.rows["E0"]
    step = [event for event in e0_done() if isinstance(event, ev.StepLogged)][-1]
    source = row.sources["final_loss"][0].model_copy(
        update={"start_byte": step.start_byte, "end_byte": step.end_byte, "line": step.line}
    )
    session.happen(
        ev.RowRecorded(at=session.clock, row=row.model_copy(update={"sources": {"final_loss": (source,)}}))
    )
    async with opened(session, screen="record") as (pilot, app, seen):
        await pilot.press(*["right"] * 6)
        await pilot.pause()
        assert any(isinstance(m, CellChosen) and (m.row, m.column) == ("E0", "loss") for m in seen)
        text = screen_text(app)
        assert "'93/93'" in text
        assert f"line {step.line}" in text
        assert "9f9f9f9f" in text


async def test_a_blank_says_why_and_the_cursor_stays(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="record") as (pilot, app, _):
        table = app.lab_screen.query_one("#sheet", DataTable)
        await pilot.press("down", "right")
        before = table.cursor_coordinate
        row = session.experiment.rows["E0"].model_copy(
            update={
                "id": "E1",
                "run": "E1-1",
                "parallel": "DP2",
                "tokens_per_second": None,
                "blanks": {"tokens_per_second": "the log has no token lengths"},
            }
        )
        session.happen(ev.RowRecorded(at=session.clock, row=row))
        await until(lambda: "the log has no token lengths" in screen_text(app), "the blank's reason")
        assert "▢ blank" in screen_text(app)
        assert table.cursor_coordinate == before


async def test_acceptance_stands_under_the_sheet(opened: Opener, folder: Path) -> None:
    async with opened(story(folder), screen="record", size=(120, 50)) as (_, app, _seen):
        text = screen_text(app)
        assert "acceptance criteria" in text
        assert "✓ 1" in text
        assert "✗ 5" in text or "· 5" in text


def test_an_excerpt_never_leaves_the_experiments_folder(folder: Path) -> None:
    folder.mkdir()
    (folder / "log").write_bytes(b"0123456789")
    (folder.parent / "outside").write_bytes(b"secret")
    assert read_excerpt(folder, "log", 2, 5) == b"234"
    assert read_excerpt(folder, "../outside", 0, 6) is None
    assert read_excerpt(folder, "/etc/hostname", 0, 6) is None
    assert read_excerpt(folder, "gone", 0, 6) is None


async def test_the_checklist_follows_until_an_item_is_chosen(opened: Opener, folder: Path) -> None:
    session = FakeSession([*opening(), *walk()[:3]], folder, now=at(5))
    async with opened(session, screen="checklist") as (pilot, app, _):
        items = app.lab_screen.query_one("#items", OptionList)
        session.happen(ev.ItemStarted(at=at(5), item="environment", box_seconds=900))
        await until(lambda: items.highlighted == 1, "the running item")
        assert "15:00" in screen_text(app)
        await pilot.press("up")
        session.happen(
            ev.ItemEnded(at=at(6), item="environment", state=ItemState.PASSED, seconds=60),
            ev.ItemStarted(at=at(6), item="swift", box_seconds=900),
        )
        await pilot.pause()
        assert items.highlighted == 0, "the chosen item stays"


@pytest.mark.parametrize(
    ("lang", "words"), [("en", "found False, expected = True"), ("zh", "实为 False，应为 = True")]
)
def test_a_judgement_says_what_was_found_and_what_was_expected(folder: Path, lang: str, words: str) -> None:
    ended = next(e for e in item_four(0, ends=False) if isinstance(e, ev.StepEnded))
    judgement = Judgement(value="core.ok", seen=False, expected="= True", passed=False, why="")
    experiment = story(folder).experiment
    view = replace(
        experiment.items["megatron"], evidence=(ended.model_copy(update={"judgements": (judgement,)}),)
    )
    text = evidence_text(experiment.checklist.item("megatron"), view, Words(lang))
    assert f"core.ok: {words}" in text.plain


def test_only_a_log_has_a_checksum_to_wait_for(folder: Path) -> None:
    experiment = story(folder).experiment
    samples = Source(words="greatest of 41 readings", file="experiment.sqlite3", node="spark-a")
    growing = Source(words="step 3", file="logs/spark-a/E0-1.log", start_byte=0, end_byte=9, line=1)
    row = experiment.rows["E0"].model_copy(
        update={"sources": {"peak_memory_bytes.spark-a": (samples,), "final_loss": (growing,)}}
    )
    experiment = apply(experiment, ev.RowRecorded(at=at(50), row=row))
    words = Words("en")
    assert "sha256" not in source_text(experiment, "E0", "memory", folder, words).plain
    assert words("record.sha_open") in source_text(experiment, "E0", "loss", folder, words).plain


async def test_notes_end_within_the_screen_and_stand_whole_with_the_source(
    opened: Opener, folder: Path
) -> None:
    session = story(folder)
    note = "transport: NCCL 2.28.9+cuda13.0: network Socket; no channel named"
    row = session.experiment.rows["E0"].model_copy(update={"notes": (note,)})
    session.happen(ev.RowRecorded(at=session.clock, row=row))
    async with opened(session, screen="record") as (_, app, _seen):
        text = screen_text(app)
        assert next(line for line in text.splitlines() if line.startswith("E0")).rstrip().endswith("…")
        assert note in text


def test_runs_keep_their_tabs_where_not_all_words_fit(folder: Path) -> None:
    experiment = story(folder).experiment
    shown = experiment.runs["E1-1"]
    assert "E0  ✓ done  E1  ▶ running" in matrix_text(experiment, shown, Words("en"), 80).plain
    narrow = matrix_text(experiment, shown, Words("en"), 40)
    assert "E0  ✓  E1  ▶ running" in narrow.plain
    assert narrow.cell_len <= 40


async def test_a_summary_without_a_row_says_why_it_is_empty(opened: Opener, folder: Path) -> None:
    session = FakeSession([*opening(), *walk(), *hypotheses()], folder, now=at(20))
    async with opened(session, screen="summary") as (_, app, _seen):
        assert Words("en")("summary.waiting") in screen_text(app)
        session.happen(*e0_done())
        await until(lambda: Words("en")("summary.waiting") not in screen_text(app), "the first row")


def test_the_ledger_gives_the_reasons_of_the_one_page() -> None:
    with ReadSession(EXAMPLE) as session:
        experiment = session.experiment
    config = experiment.profile.configuration("E2")
    compared = {one.quantity: one.why for one in predictions(experiment) if one.config == "E2"}
    for which, lang in enumerate(("en", "zh")):
        words = Words(lang)
        text = comparison_text(*comparison_of(experiment, config, words), compared, words).plain
        for why in compared.values():
            assert why[which]
            assert why[which] in text


async def test_whole_evidence_opens_in_a_panel(opened: Opener, folder: Path) -> None:
    async with opened(story(folder), screen="checklist") as (pilot, app, _):
        await pilot.press("up", "up", "up", "enter")
        await pilot.pause()
        text = screen_text(app)
        assert "python probe components" in text
        assert "Traceback" in text


def test_the_verdict_so_far_hopes_for_the_rest(folder: Path) -> None:
    events = [*opening(), *walk()]
    assert so_far(FakeSession(events[:7], folder, now=at(2)).experiment) is None
    assert (
        so_far(FakeSession(events[:-3], folder, now=at(20)).experiment) == "main line through, TE/FP8 closed"
    )


def test_the_ledger_compares_paper_with_measured(folder: Path) -> None:
    experiment = story(folder).experiment
    found, reason = comparison_of(experiment, experiment.profile.configuration("E0"), Words("en"))
    assert reason == ""
    assert found.paper is not None
    assert found.measured is not None
    assert found.measured.step_seconds.number == 6.42
    assert {gap.quantity for gap in found.gaps} == {
        "memory_bytes",
        "step_seconds",
        "tokens_per_second",
        "mfu",
    }
    waiting, _ = comparison_of(experiment, experiment.profile.configuration("E2"), Words("en"))
    assert waiting.paper is not None
    assert waiting.measured is None


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_ledger_says_what_does_not_fit_on_paper(lang: str) -> None:
    fits = Comparison(configuration="F1", paper=Column(fit="may fit", fit_reason="by a hair"))
    too_much = Comparison(configuration="F1", paper=Column(fit="does not fit", fit_reason="9 GiB too much"))
    assert "by a hair" not in comparison_text(fits, "", {}, Words(lang)).plain
    assert "9 GiB too much" in comparison_text(too_much, "", {}, Words(lang)).plain


def test_readings_keep_whole_batches_and_begin_anew_when_time_goes_back(folder: Path) -> None:
    session = story(folder)
    session.readings = {"spark-a": [sample(n, at(30), 10.0) for n in range(5)]}
    readings = Readings(session)
    assert len(readings.of("spark-a")) == 5
    session.readings["spark-a"] += [sample(5 + n, at(31), 11.0) for n in range(3)]
    assert [r.n for r in readings.of("spark-a")] == list(range(8))
    session.clock = at(30.5)
    session.readings["spark-a"] = session.readings["spark-a"][:5]
    assert len(readings.of("spark-a")) == 5


def test_hours_of_readings_stay_small_and_keep_their_peak_and_their_newest(folder: Path) -> None:
    session = story(folder)
    readings = Readings(session)
    start = session.now() - timedelta(hours=10)
    peak, last = 7_001, 36_000
    session.readings["spark-a"] = [
        sample(n, start + timedelta(seconds=n), 90.0 if n == peak else 10.0) for n in range(last)
    ]
    found = readings.of("spark-a")
    assert KEPT // 2 <= len(found) <= KEPT
    assert found[-1].n == last - 1
    assert [r.n for r in found] == sorted({r.n for r in found})
    assert [r.n for r in found if r.used_bytes > 80 * GIB] == [peak]
    apart = [after.n - before.n for before, after in pairwise(found)]
    assert max(apart) <= 4 * last / KEPT, "no part is thinner than the others"
