"""The log on screen: following, moving, searching, filtering, findings, copying, raw bytes."""

from pathlib import Path

from support.waiting import until
from textual import events
from textual.app import App, ComposeResult

from console.tui.messages import LogAdvanced
from console.tui.screens.runs import RunsScreen
from console.tui.widgets.expressions import expression
from console.tui.widgets.log_index import LogIndex
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
        session.log_grows("E1-1", "spark-b", b"a new line of the log\n")
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
        session.log_grows("E1-1", "spark-b", b"further\n" * 50)
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
        await until(lambda: "'iteration': '7/93'" in view.marked_text(), "the only match")
        await pilot.press("slash")
        await pilot.press(*["backspace"] * 6, *"7/93", "enter")
        await until(lambda: "57/93" in view.marked_text(), "the match before, from the end again")
        await pilot.press("n")
        await until(lambda: "'7/93'" in view.marked_text(), "the next match, from the start again")


async def test_filter_shows_matching_lines_only_and_grows(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="runs") as (pilot, app, _):
        view = view_of(app)
        await until(lambda: view.row_count == 64, "the log")
        await pilot.press("ampersand", *"iteration': '1[0-9]/", "enter")
        await until(lambda: view.row_count == 10, "ten matching lines")
        session.log_grows("E1-1", "spark-b", b"no\n'iteration': '12/93' again\n")
        await until(lambda: view.row_count == 11, "the new match")
        await pilot.press("escape")
        await until(lambda: view.row_count == 66, "all lines again")


async def test_a_filter_stays_for_the_other_nodes_log(opened: Opener, folder: Path) -> None:
    session = story(folder)
    session.log_grows("E1-1", "spark-a", b"mine alone\n" * 3)
    async with opened(session, screen="runs") as (pilot, app, _):
        await pilot.press("ampersand", *"mine alone", "enter", "o")
        await until(lambda: view_of(app).row_count == 3, "the matches in the other log")
        assert view_of(app).marked_text() == "mine alone"


async def test_a_bad_pattern_is_refused_with_words(opened: Opener, folder: Path) -> None:
    async with opened(story(folder), screen="runs") as (pilot, app, _):
        await pilot.press("ampersand", "(", "enter")
        await until(lambda: "regular" in screen_text(app), "the refusal")
        assert view_of(app).pattern is None


async def test_an_expression_that_takes_too_long_is_given_up(opened: Opener, folder: Path) -> None:
    session = story(folder)
    session.log_grows("E1-1", "spark-b", b"-" * 5000 + b" the slow line\n")
    async with opened(session, screen="runs") as (pilot, app, _):
        await until(lambda: view_of(app).row_count == 65, "the log")
        await pilot.press("ampersand", *"(-+-+)+[ZY]", "enter")
        await until(lambda: "takes too long on" in screen_text(app).replace("\n", ""), "the words")
        assert view_of(app).pattern is None
        assert view_of(app).row_count == 65, "all lines again"


async def test_an_expression_that_becomes_slow_with_a_new_line_is_given_up(
    opened: Opener, folder: Path
) -> None:
    session = story(folder)
    async with opened(session, screen="runs") as (pilot, app, _):
        view = view_of(app)
        await until(lambda: view.row_count == 64, "the log")
        await pilot.press("ampersand", *"(x+x+)+[ZY]", "enter")
        await until(lambda: view.row_count == 0 and view.progress is None, "no match")
        session.log_grows("E1-1", "spark-b", b"x" * 5000 + b"\n")
        await until(lambda: view.pattern is None and view.row_count == 65, "all lines again")
        await until(lambda: "takes too long on" in screen_text(app).replace("\n", ""), "the words")


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
        session.log_grows("E1-1", "spark-b", b"\x1b[31mred\xff\x1b]0;title\x07\n")
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
    session.log_grows("E1-1", "spark-b", ("word " * 60 + "the end").encode())
    async with opened(session, screen="runs") as (pilot, app, _):
        await until(lambda: "the end" in screen_text(app), "the end of the long line")
        await pilot.press("w")
        await pilot.pause()
        assert "the end" not in screen_text(app)


async def test_ten_thousand_lines_filter_is_incremental(opened: Opener, folder: Path) -> None:
    session = story(folder)
    session.log_grows("E1-1", "spark-b", b"".join(b"row %d\n" % n for n in range(10_000)))
    async with opened(session, screen="runs") as (_, app, _seen):
        view = view_of(app)
        view.set_filter(expression(r"row \d*7$"))
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


def long_log(folder: Path, megabytes: int) -> Path:
    """A log with one line at its start that is nowhere else."""
    log = folder / "long"
    block = b"".join(
        b"node-a:81:97 [0] NCCL INFO Channel %02d/24 : 0 1 2 3\n" % (n % 24) for n in range(20_000)
    )
    with log.open("wb") as file:
        file.write(b"only here\n")
        while file.tell() < megabytes << 20:
            file.write(block)
        file.write(b"the end of it\n")
    return log


async def test_keys_act_while_200_megabytes_are_searched(tmp_path: Path) -> None:
    app = LogAlone()
    async with app.run_test(size=(60, 12)):
        view = app.query_one(LogView)
        view.open(long_log(tmp_path, 200))
        view.focus()
        view.find("not in there", -1)
        await until(lambda: view.progress is not None, "the search under way")
        keys = 0
        while view.progress is not None:
            before = view.cursor
            app.post_message(events.Key("up", None))
            await until(lambda before=before: view.cursor != before, "the key's effect")
            keys += view.progress is not None
        assert keys > 3
        assert not view.follow


async def test_a_search_shows_how_far_it_is_and_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    app = LogAlone()
    async with app.run_test(size=(60, 12)):
        view = app.query_one(LogView)
        view.open(long_log(tmp_path, 40))
        view.find("only here", -1)
        await until(lambda: 0 < (view.progress or 0) < 1, "the search under way")
        view.find("", 1)
        assert view.progress is None
        assert view.follow
        assert "the end of it" in view.marked_text()


async def test_a_line_far_back_is_found_and_the_end_is_one_key_away(tmp_path: Path) -> None:
    app = LogAlone()
    async with app.run_test(size=(60, 12)) as pilot:
        view = app.query_one(LogView)
        view.open(long_log(tmp_path, 20))
        view.focus()
        view.find("ONLY here", -1)
        await until(lambda: view.marked_text() == "only here", "the first line of the log")
        await until(lambda: "only here" in screen_text(app), "it on screen")
        assert not view.follow
        await pilot.press("end")
        await until(lambda: "the end of it" in screen_text(app), "the end on screen")
        assert view.follow


async def test_a_filter_shows_the_newest_matches_first_and_then_the_whole_logs(tmp_path: Path) -> None:
    log = long_log(tmp_path, 20)
    app = LogAlone()
    async with app.run_test(size=(60, 12)):
        view = app.query_one(LogView)
        view.open(log)
        view.set_filter(expression("only here|the end"))
        await until(lambda: view.row_count == 1, "the newest match")
        assert view.progress is not None
        await until(lambda: view.row_count == 2, "the other")
        with log.open("ab") as stream:
            stream.write(b"after the end\n")
        view.grew()
        await until(lambda: view.row_count == 3, "the new one")
        view.go(0)
        assert view.marked_text() == "only here"
        view.set_filter(None)
        assert view.marked_text() == "only here"
        assert view.row_count > 1000


async def test_what_is_being_read_stays_while_the_log_grows(tmp_path: Path) -> None:
    log = long_log(tmp_path, 1)
    app = LogAlone()
    async with app.run_test(size=(60, 12)):
        view = app.query_one(LogView)
        view.open(log)
        view.index = LogIndex(log, lines_kept=2000)
        view.look()
        view.go(view.row_count - 5)
        here = view.raw()
        with log.open("ab") as stream:
            stream.write(b"further\n" * 5000)
        for _ in range(3):
            view.look()
        assert view.raw() == here
        view.toggle_follow()
        view.look()
        await until(lambda: "further" in screen_text(app), "the end again")
