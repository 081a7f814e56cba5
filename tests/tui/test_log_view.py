"""The log on screen: following, moving, searching, filtering, findings, copying, raw bytes."""

import re
from pathlib import Path

from support.waiting import until
from textual.app import App, ComposeResult

from console.tui.messages import LogAdvanced
from console.tui.screens.runs import RunsScreen
from console.tui.widgets.log_view import LogView
from tui.conftest import Opener
from tui.support import screen_text, story


def view_of(app: object) -> LogView:
    return app.lab_screen.log_view  # type: ignore[attr-defined]


async def test_appended_lines_are_drawn_while_following(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="runs") as (_, app, seen):
        view = view_of(app)
        await until(
            lambda: "'61/93'" in screen_text(app).replace("\n", "") or view.row_count == 64, "the log"
        )
        with session.log_path("E1-1", "spark-b").open("ab") as stream:
            stream.write(b"a new line of the log\n")
        await until(lambda: "a new line of the log" in screen_text(app), "the new line on screen")
        assert view.follow
        assert any(isinstance(message, LogAdvanced) and message.following for message in seen)


async def test_moving_up_ends_following_and_new_lines_move_nothing(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="runs") as (pilot, app, _):
        view = view_of(app)
        await until(lambda: view.row_count == 64, "the log")
        await pilot.press("up", "up", "up")
        await pilot.pause()
        assert not view.follow
        assert "not following" in screen_text(app)
        before, line = view.scroll_offset, view.current_line
        with session.log_path("E1-1", "spark-b").open("ab") as stream:
            stream.write(b"further\n" * 50)
        await until(lambda: view.row_count == 114, "the index to grow")
        await pilot.pause()
        assert (view.scroll_offset, view.current_line) == (before, line)
        await pilot.press("f")
        await until(lambda: "further" in screen_text(app), "the end again")


async def test_search_goes_from_match_to_match(opened: Opener, folder: Path) -> None:
    async with opened(story(folder), screen="runs") as (pilot, app, _):
        view = view_of(app)
        await until(lambda: view.row_count == 64, "the log")
        await pilot.press("slash", *"'7/93'", "enter")
        await pilot.pause()
        assert "'iteration': '7/93'" in view.marked_text()
        await pilot.press("slash")
        await pilot.press(*["backspace"] * 6, *"7/93", "enter", "n")
        assert "57/93" in view.marked_text() or "7/93" in view.marked_text()


async def test_filter_shows_matching_lines_only_and_grows(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="runs") as (pilot, app, _):
        view = view_of(app)
        await until(lambda: view.row_count == 64, "the log")
        await pilot.press("ampersand", *"iteration': '1[0-9]/", "enter")
        await until(lambda: view.row_count == 10, "ten matching lines")
        with session.log_path("E1-1", "spark-b").open("ab") as stream:
            stream.write(b"no\n'iteration': '12/93' again\n")
        await until(lambda: view.row_count == 11, "the new match")
        await pilot.press("escape")
        await until(lambda: view.row_count == 66, "all lines again")


async def test_a_bad_pattern_is_refused_with_words(opened: Opener, folder: Path) -> None:
    async with opened(story(folder), screen="runs") as (pilot, app, _):
        await pilot.press("ampersand", "(", "enter")
        await until(lambda: "regular" in screen_text(app), "the refusal")
        assert view_of(app).pattern is None


async def test_the_next_finding_is_one_key_away(opened: Opener, folder: Path) -> None:
    async with opened(story(folder), screen="runs") as (pilot, app, _):
        view = view_of(app)
        await until(lambda: view.row_count == 64, "the log")
        await pilot.press("right_square_bracket")
        await pilot.pause()
        assert view.index is not None
        start, end = view.index.span(view.current_line or 0)
        assert start <= 900 < end
        assert "▲" in screen_text(app)


async def test_marked_lines_are_copied(opened: Opener, folder: Path) -> None:
    async with opened(story(folder), screen="runs") as (pilot, app, _):
        await until(lambda: view_of(app).row_count == 64, "the log")
        await pilot.press("up", "m", "down", "y")
        assert app.clipboard.count("\n") == 1
        assert "60/93" not in app.clipboard.split("\n")[1]
        assert "61/93" in app.clipboard.split("\n")[1]


async def test_raw_bytes_are_shown_escaped(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="runs") as (pilot, app, _):
        with session.log_path("E1-1", "spark-b").open("ab") as stream:
            stream.write(b"\x1b[31mred\xff\x1b]0;title\x07\n")
        await until(lambda: view_of(app).row_count == 65, "the line")
        await pilot.press("b")
        await pilot.pause()
        assert r"\x1b[31mred\xff\x1b]0;title\x07" in screen_text(app)


async def test_the_other_nodes_log_and_the_other_run(opened: Opener, folder: Path) -> None:
    async with opened(story(folder), screen="runs") as (pilot, app, _):
        screen = app.lab_screen
        assert isinstance(screen, RunsScreen)
        assert "spark-b · rank 1, its log counts" in screen_text(app)
        await pilot.press("o")
        await pilot.pause()
        assert "spark-a · rank 0" in screen_text(app)
        await pilot.press("e")
        await until(lambda: view_of(app).row_count == 96, "E0's log")
        assert "93/93" in view_of(app).marked_text()


async def test_wrapped_rows_show_the_whole_last_line(opened: Opener, folder: Path) -> None:
    session = story(folder)
    with session.log_path("E1-1", "spark-b").open("ab") as stream:
        stream.write(("word " * 60 + "the end").encode())
    async with opened(session, screen="runs") as (pilot, app, _):
        await until(lambda: "the end" in screen_text(app), "the end of the long line")
        await pilot.press("w")
        await pilot.pause()
        assert "the end" not in screen_text(app)


async def test_ten_thousand_lines_filter_is_incremental(opened: Opener, folder: Path) -> None:
    session = story(folder)
    with session.log_path("E1-1", "spark-b").open("ab") as stream:
        stream.write(b"".join(b"row %d\n" % n for n in range(10_000)))
    async with opened(session, screen="runs") as (_, app, _seen):
        view = view_of(app)
        view.set_filter(re.compile(r"row \d*7$"))
        await until(lambda: view.row_count == 1000, "every match")


class LogAlone(App[None]):
    def compose(self) -> ComposeResult:
        yield LogView()


async def test_a_log_longer_than_the_screen_opens_at_its_end(tmp_path: Path) -> None:
    long = tmp_path / "long"
    long.write_bytes(b"a line\n" * 100_000 + b"the end of it\n")
    app = LogAlone()
    async with app.run_test(size=(60, 12)):
        app.query_one(LogView).open(long)
        await until(lambda: "the end of it" in screen_text(app), "the end of the log on screen")
