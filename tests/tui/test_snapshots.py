"""What the screens look like, few and meaningful, at the smallest size and at a comfortable one."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from textual.pilot import Pilot

from console.core.record import events as ev
from console.tui.actions import SCREENS
from console.tui.app import LabApp, render_screenshot
from tui.draw_readme import PICTURE, draw_window
from tui.support import FakeSession, at, decision, item_four, opening, page, settle, story, walk

SIZES = [(80, 24), (120, 40)]
Compare = Callable[..., bool]


def words_of(svg: str) -> list[str]:
    """The text of a picture, without the ids that change with every drawing."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def shown(session: FakeSession, lang: str = "en") -> LabApp:
    return LabApp(session, lang, return_command="lab open spark-pair.yaml", one_page=page)


def on(screen: str, *keys: str) -> Callable[[Pilot[object]], object]:
    async def prepare(pilot: Pilot[object]) -> None:
        await pilot.press(str(SCREENS.index(screen) + 1))  # type: ignore[arg-type]
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
        pilot.app.lab_screen.redraw()  # type: ignore[attr-defined]
        await pilot.pause()

    return prepare


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("screen", SCREENS)
def test_screen(snap_compare: Compare, folder: Path, screen: str, size: tuple[int, int]) -> None:
    assert snap_compare(shown(story(folder)), terminal_size=size, run_before=on(screen))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_decision(snap_compare: Compare, folder: Path, size: tuple[int, int]) -> None:
    async def opened(pilot: Pilot[object]) -> None:
        await pilot.pause()

    assert snap_compare(shown(story(folder, decision())), terminal_size=size, run_before=opened)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("keys", [("v",), ("v", "v", "l", "a")], ids=["side", "merged-log-smooth"])
def test_logs_together(
    snap_compare: Compare, folder: Path, keys: tuple[str, ...], size: tuple[int, int]
) -> None:
    session = story(folder)
    session.log_grows("E1-1", "spark-a", b"[rank0]: both say this\nrank zero alone\n")
    session.log_grows("E1-1", "spark-b", b"[rank1]: both say this\nrank one alone\n")
    settle(session)
    assert snap_compare(shown(session), terminal_size=size, run_before=on("runs", *keys))


def test_runs_in_chinese_without_contact(snap_compare: Compare, folder: Path) -> None:
    session = story(folder)
    session.happen(ev.LinkChanged(at=session.clock, node="spark-b", state="down", why="no answer"))
    session.clock += timedelta(seconds=40)
    assert snap_compare(shown(session, "zh"), terminal_size=(80, 24), run_before=on("runs"))


def test_checklist_while_an_item_runs(snap_compare: Compare, folder: Path) -> None:
    events = [*opening(), *walk()[:7], *item_four(5.6, ends=False)]
    session = FakeSession(events, folder, now=at(16.5))
    assert snap_compare(shown(session), terminal_size=(80, 24), run_before=on("checklist"))


def test_no_contact(snap_compare: Compare, folder: Path) -> None:
    session = story(folder)
    since = session.clock - timedelta(seconds=40)
    session.happen(
        ev.LinkChanged(at=since, node="spark-b", state="down", why="no answer to keep-alive"),
        ev.StreamChanged(at=since, node="spark-b", state="lost"),
    )
    session.readings["spark-b"] = [r for r in session.readings["spark-b"] if r[0] < since]
    assert snap_compare(shown(session), terminal_size=(80, 24), run_before=on("window"))


def test_in_chinese(snap_compare: Compare, folder: Path) -> None:
    assert snap_compare(shown(story(folder), "zh"), terminal_size=(80, 24), run_before=on("window"))


def test_hypotheses(snap_compare: Compare, folder: Path) -> None:
    session = FakeSession([*opening(), *walk()], folder, now=at(19))

    async def opened(pilot: Pilot[object]) -> None:
        await pilot.press(*"about 6 s")

    assert snap_compare(shown(session), terminal_size=(80, 24), run_before=opened)


@pytest.mark.parametrize("key", ["R", "q", "question_mark"])
def test_panel(snap_compare: Compare, folder: Path, key: str) -> None:
    assert snap_compare(shown(story(folder)), terminal_size=(80, 24), run_before=on("window", key))


async def test_the_readmes_picture_is_what_the_window_screen_shows(folder: Path) -> None:
    drawn = await draw_window(folder)
    assert words_of(drawn) == words_of(PICTURE.read_text()), "draw it anew: python tests/tui/draw_readme.py"


async def test_a_screenshot_can_be_taken_without_a_terminal(folder: Path) -> None:
    svg = await render_screenshot(story(folder), "runs", (100, 30), one_page=page)
    assert svg.startswith("<svg")
    assert "spark-b" in svg
    with pytest.raises(ValueError, match="no screen"):
        await render_screenshot(story(folder), "nowhere", (80, 24))  # type: ignore[arg-type]
