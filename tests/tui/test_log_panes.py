"""Several logs at once: side by side, and merged, on small and large terminals."""

from functools import partial
from pathlib import Path

import pytest
from support.waiting import until
from textual.pilot import Pilot

from console.core.reading.merge import Merge
from console.tui.app import LabApp, Left
from console.tui.screens.runs import RunsScreen
from console.tui.widgets import merged_logs
from console.tui.widgets.merged_logs import HISTORY_LINES
from console.tui.widgets.merged_view import MergedView, ranks_text
from console.tui.words import Words
from tui.conftest import Opener
from tui.support import FakeSession, at, opening, planned, screen_text, story, walk


def two_logs(folder: Path, before: bytes = b"") -> FakeSession:
    """Logs that end alike; `before` stands before that in one of them."""
    session = story(folder)
    session.log_grows("E1-1", "spark-b", before)
    session.log_grows("E1-1", "spark-a", b"[rank0]: both say this\nrank zero alone\n")
    session.log_grows("E1-1", "spark-b", b"[rank1]: both say this\nrank one alone\n")
    return session


def screen_of(app: LabApp) -> RunsScreen:
    screen = app.lab_screen
    assert isinstance(screen, RunsScreen)
    return screen


async def to_merged(pilot: Pilot[Left], app: LabApp) -> MergedView:
    await pilot.press("v", "v")
    view = screen_of(app).log_view
    assert isinstance(view, MergedView)
    await until(lambda: "[0 1]" in screen_text(app), "a line that both ranks said")
    return view


async def test_logs_stand_side_by_side(opened: Opener, folder: Path) -> None:
    async with opened(two_logs(folder), screen="runs") as (pilot, app, _):
        await pilot.press("v")
        await until(lambda: "rank zero alone" in screen_text(app), "the other node's log")
        heads = next(line for line in screen_text(app).split("\n") if "rank 0" in line)
        assert "spark-a · rank 0 · 5 lines" in heads
        assert "▸spark-b · rank 1 · 66 lines" in heads
        bodies = screen_text(app).split("\n")
        assert any("both say this" in line[:40] and "both say this" in line[40:] for line in bodies)


async def test_keys_go_to_the_chosen_log(opened: Opener, folder: Path) -> None:
    async with opened(two_logs(folder), screen="runs") as (pilot, app, _):
        await pilot.press("v", "o")
        await until(lambda: "▸spark-a" in screen_text(app), "the next node chosen")
        await pilot.press("up", "y")
        assert app.clipboard == "[rank0]: both say this"
        assert "spark-a · rank 0 · not following" in screen_text(app)


async def test_a_wide_terminal_gives_way_to_a_narrow_one(opened: Opener, folder: Path) -> None:
    async with opened(two_logs(folder), screen="runs", size=(120, 40)) as (pilot, app, _):
        await pilot.press("v")
        await until(lambda: "rank zero alone" in screen_text(app), "both logs")
        await pilot.resize_terminal(70, 24)
        await until(lambda: "rank zero alone" not in screen_text(app), "the chosen log alone")
        assert "rank one alone" in screen_text(app)


async def test_merged_lines_name_their_ranks_and_what_is_not_known(opened: Opener, folder: Path) -> None:
    session = two_logs(folder)
    async with opened(session, screen="runs") as (pilot, app, _):
        view = await to_merged(pilot, app)
        text = screen_text(app)
        assert " [0 1] both say this" in text
        assert " [0]   rank zero alone" in text
        assert "~[1]   rank one alone" in text, "which of the two came first nobody knows"
        assert "merged 0:a 1:b · order: arrival, stamp, step, text; ~ unknown · 67 lines" in text
        session.log_grows("E1-1", "spark-a", b"a later line\n")
        await until(lambda: " [0]   a later line" in screen_text(app), "what arrived later, without doubt")
        assert view.follow


async def test_merged_logs_that_begin_late_say_so_above_their_first_row(opened: Opener, folder: Path) -> None:
    chatter = b"".join(b"chatter %d\n" % n for n in range(HISTORY_LINES))
    async with opened(two_logs(folder, chatter), screen="runs") as (pilot, app, _):
        view = await to_merged(pilot, app)
        begins = Words("en")("runs.begins", n="2,000")
        assert begins not in screen_text(app), "the end of the logs is in sight"
        await pilot.press("home")
        await until(lambda: begins in screen_text(app), "where the rows begin")
        first = screen_text(app).split(begins)[1].split("\n")[1]
        assert first.strip().startswith(view.marked_text().strip()), "right above the first row"
        await pilot.press(*["down"] * (view.size.height - 1))
        await until(lambda: begins not in screen_text(app), "the cursor's row in its place")
        assert f"{view.marked_text().strip()} " in screen_text(app)


async def test_whole_merged_logs_have_nothing_above_their_first_row(opened: Opener, folder: Path) -> None:
    async with opened(two_logs(folder), screen="runs") as (pilot, app, _):
        view = await to_merged(pilot, app)
        await pilot.press("home")
        await until(lambda: view.cursor == 0, "the first row")
        assert "⋯" not in screen_text(app)


async def test_merged_rows_are_searched_filtered_and_copied(opened: Opener, folder: Path) -> None:
    session = two_logs(folder)
    async with opened(session, screen="runs") as (pilot, app, _):
        view = await to_merged(pilot, app)
        await pilot.press("slash", *"zero", "enter")
        await until(lambda: "rank zero alone" in view.marked_text(), "the match")
        await pilot.press("ampersand", *"alone$", "enter")
        await until(lambda: view.row_count == 2, "two matching rows")
        session.log_grows("E1-1", "spark-b", b"more of it alone\nno\n")
        await until(lambda: view.row_count == 3, "the new match")
        await pilot.press("y")
        assert app.clipboard.endswith("[1]   more of it alone")
        await until(lambda: "lines copied: 1 " in screen_text(app), "how much was copied")


async def test_a_slow_expression_is_given_up_in_merged_logs(opened: Opener, folder: Path) -> None:
    session = two_logs(folder)
    async with opened(session, screen="runs") as (pilot, app, _):
        view = await to_merged(pilot, app)
        whole = view.row_count + 1
        session.log_grows("E1-1", "spark-b", b"x" * 5000 + b"\n")
        await until(lambda: view.row_count == whole, "the slow line")
        await pilot.press("ampersand", *"(x+x+)+[ZY]", "enter")
        await until(lambda: "takes too long on" in screen_text(app).replace("\n", ""), "the words")
        assert view.pattern is None
        assert view.row_count == whole


async def test_raw_bytes_of_a_merged_row_are_those_of_every_rank(opened: Opener, folder: Path) -> None:
    async with opened(two_logs(folder), screen="runs") as (pilot, app, _):
        await to_merged(pilot, app)
        await pilot.press("up", "up", "b")
        await until(lambda: "rank 1, byte" in screen_text(app), "the bytes")
        text = screen_text(app)
        assert "[rank0]: both say this" in text
        assert "[rank1]: both say this" in text


async def test_a_row_that_comes_in_above_leaves_the_cursor_on_its_line(opened: Opener, folder: Path) -> None:
    session = two_logs(folder)
    async with opened(session, screen="runs") as (pilot, app, _):
        view = await to_merged(pilot, app)
        session.log_grows("E1-1", "spark-b", b"now\nthen\n")
        await until(lambda: "then" in screen_text(app), "new lines of one node")
        await pilot.press("up", "down", "up")
        held, count = view.marked_text(), view.row_count
        session.log_grows("E1-1", "spark-a", b"inserted\nnow\n")
        await until(lambda: view.row_count == count + 1, "a row between others")
        assert view.marked_text().split()[-1] == held.split()[-1] == "now"


async def test_rows_dropped_from_the_front_leave_the_cursor_on_its_line(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged_logs, "Merge", partial(Merge, rows_kept=100))
    session = two_logs(folder)
    async with opened(session, screen="runs") as (pilot, app, _):
        view = await to_merged(pilot, app)
        await pilot.press("ampersand", *"alone|odd", "enter")
        await until(lambda: view.row_count == 2, "two matching rows")
        session.log_grows("E1-1", "spark-b", b"odd\neven\n" * 20)
        await until(lambda: view.row_count == 22, "more of them")
        await pilot.press("up", "m")
        held = view.cursor
        session.log_grows("E1-1", "spark-b", b"odd again\n" * 10)
        await until(lambda: "odd again" in view._text(view.row_count - 1), "rows for those that were dropped")
        assert view.row_count <= 100
        assert view.cursor <= held
        assert view.marked_text().endswith("odd")


async def test_a_finding_is_found_in_the_merged_stream(opened: Opener, folder: Path) -> None:
    async with opened(two_logs(folder), screen="runs") as (pilot, app, _):
        view = await to_merged(pilot, app)
        await pilot.press("right_square_bracket")
        await until(lambda: "▲" in screen_text(app).split("merged")[1], "the finding's mark")
        assert "[1]" in view.marked_text()


async def test_a_run_on_one_node_has_one_log(opened: Opener, folder: Path) -> None:
    async with opened(two_logs(folder), screen="runs") as (pilot, app, _):
        await to_merged(pilot, app)
        await pilot.press("e")
        await until(lambda: "log · spark-a · rank 0, its log counts" in screen_text(app), "its one log")
        await pilot.press("v")
        await until(lambda: "this run has one log" in screen_text(app), "why nothing changed")
        await pilot.press("question_mark")
        await pilot.pause()
        assert "one, side by side, merged" in screen_text(app), "the help lists the key"


def test_many_ranks_are_named_briefly() -> None:
    every = range(16)
    assert ranks_text([3], every) == "3"
    assert ranks_text([0, 2, 5], every) == "0 2 5"
    assert ranks_text(list(every), every) == "0-15"
    assert ranks_text([0, 2, 5, 7, 9], every) == "5 of 16"


async def test_before_the_first_run_there_are_words_instead_of_empty_panels(
    opened: Opener, folder: Path
) -> None:
    session = FakeSession([*opening(), *walk()[:3]], folder, now=at(5))
    async with opened(session, screen="runs") as (pilot, app, _):
        assert "the live log of every node" in screen_text(app)
        assert screen_text(app).splitlines()[-2].startswith(" ▶"), "the next action keeps its place"
        assert "━" not in screen_text(app)
        await pilot.press(*"voaclfnyb", "comma", "plus")
        session.happen(*planned("E0", 20))
        await until(lambda: "log · spark-a" in screen_text(app), "the first run")
