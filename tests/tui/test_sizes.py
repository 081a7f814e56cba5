"""The screens on terminals of other sizes than theirs, and that Chinese text keeps its columns."""

from pathlib import Path

import pytest
from rich.cells import cell_len
from support.waiting import until

from console.tui.actions import SCREENS
from console.tui.app import LabApp
from console.tui.size import LEAST_CELLS, LEAST_ROWS
from console.tui.widgets.timebox import window_bar
from console.tui.words import Words
from tui.conftest import Opener
from tui.support import FakeSession, at, opening, screen_text, story, walk


def said(app: LabApp) -> str:
    """The words on the screen, over however many lines."""
    return " ".join(screen_text(app).split())


@pytest.mark.parametrize("size", [(39, 24), (80, 11), (12, 3)])
async def test_a_terminal_that_is_too_small_is_told_so_until_it_grows(
    opened: Opener, folder: Path, size: tuple[int, int]
) -> None:
    async with opened(story(folder)) as (pilot, app, _):
        needs = f"too small: needs 40x12, has {size[0]}x{size[1]}"
        for screen in SCREENS:
            app.action_show(screen)
            await pilot.resize_terminal(*size)
            await until(lambda: said(app) == needs, "what it needs, and nothing else")
            await pilot.resize_terminal(80, 24)
            await until(lambda: "1-6" in screen_text(app), "the screen again")


async def test_a_panel_gives_way_too_and_comes_back(opened: Opener, folder: Path) -> None:
    session = FakeSession([*opening(), *walk()], folder, now=at(19))
    async with opened(session) as (pilot, app, _):
        await pilot.press(*"half")
        await pilot.resize_terminal(30, 8)
        await until(lambda: said(app) == "too small: needs 40x12, has 30x8", "what it needs")
        await pilot.resize_terminal(80, 24)
        await until(lambda: "half" in screen_text(app), "the form with what was typed")


async def test_nobody_decides_what_cannot_be_seen(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, size=(30, 8)) as (pilot, _, _seen):
        for keys in ("sy", "Ry", ["ctrl+r", "y"]):
            await pilot.press(*keys)
            await pilot.pause()
        assert session.asked == []
        await pilot.resize_terminal(80, 24)
        await pilot.press("R")
        await pilot.resize_terminal(30, 8)
        await pilot.press("y")
        assert session.asked == [], "not in a panel either"
        await pilot.resize_terminal(80, 24)
        await pilot.press("y")
        await until(lambda: bool(session.asked), "the restore that can be seen")


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_the_next_action_and_the_keys_stay_on_the_smallest_terminal(
    opened: Opener, folder: Path, screen: str, lang: str
) -> None:
    size = (LEAST_CELLS, LEAST_ROWS)
    async with opened(story(folder), screen=screen, lang=lang, size=size) as (_, app, _seen):
        *_, following, keys = screen_text(app).splitlines()
        assert following.startswith(" ▶ E1")
        assert keys.startswith(" 1-6")
        assert Words(lang)("action.quit") in keys


async def test_chinese_titles_stand_over_their_columns(opened: Opener, folder: Path) -> None:
    async with opened(story(folder), screen="ledger", lang="zh") as (_, app, _seen):
        rows = screen_text(app).splitlines()
        head = next(row for row in rows if Words("zh")("ledger.quantity") in row.split())
        memory = next(row for row in rows if Words("zh")("ledger.memory_bytes") in row)
        titles = [Words("zh")(f"ledger.{name}") for name in ("paper", "probed", "measured", "gap")]
        assert head.split()[1:] == titles, "whole"
        assert cell_len(head.rstrip()) == cell_len(memory.rstrip()), "and with the same right edge"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_time_left_fits_beside_its_bar(folder: Path, lang: str) -> None:
    session = story(folder)
    for width in range(24, 60):
        assert window_bar(session.experiment, session.now(), Words(lang), width).cell_len <= width
