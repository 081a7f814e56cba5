"""What a log view draws anew: the lines that changed, and nothing when lines come in below those in sight."""

from pathlib import Path

import pytest
from support.waiting import until
from textual.app import App, ComposeResult
from textual.screen import Screen

from console.tui.widgets.log_view import LogView


class Noting(LogView):
    """Notes which lines of the screen it drew."""

    drawn: list[int]

    def render_line(self, y: int):  # type: ignore[no-untyped-def]
        self.drawn.append(y)
        return super().render_line(y)


class NotingApp(App[None]):
    """One log alone."""

    def compose(self) -> ComposeResult:
        view = Noting()
        view.drawn = []
        yield view


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"line %d\n" % n for n in range(100)))
    return path


def append(log: Path, data: bytes) -> None:
    with log.open("ab") as stream:
        stream.write(data)


async def test_only_the_lines_that_the_cursor_leaves_and_enters_are_drawn(log: Path) -> None:
    app = NotingApp()
    async with app.run_test(size=(40, 10)) as pilot:
        view = app.query_one(Noting)
        view.open(log)
        view.focus()
        await pilot.press("up", "up")
        await until(lambda: 7 in view.drawn, "the cursor's line")
        view.drawn.clear()
        await pilot.press("up")
        await until(lambda: view.drawn, "the cursor's next line")
        await pilot.pause()
        assert sorted(view.drawn) == [6, 7]


async def test_lines_below_those_in_sight_lay_out_nothing_and_draw_nothing(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts: list[Screen[object]] = []
    app = NotingApp()
    async with app.run_test(size=(40, 10)) as pilot:
        view = app.query_one(Noting)
        view.open(log)
        view.focus()
        await pilot.press("up", "up")
        await pilot.pause()
        laid_out = Screen._refresh_layout
        monkeypatch.setattr(
            Screen,
            "_refresh_layout",
            lambda self, *args, **how: (layouts.append(self), laid_out(self, *args, **how)),
        )
        view.drawn.clear()
        append(log, b"further\n" * 50)
        view.look()
        await until(lambda: view.vertical_scrollbar.window_virtual_size == 150, "the scroll bar's new length")
        await pilot.pause()
        assert view.drawn == []
        assert layouts == []
        await pilot.press("end")
        await until(lambda: view.drawn, "the end of the log")
        assert sorted(set(view.drawn)) == list(range(10))


async def test_the_cursors_line_is_in_sight_wherever_long_lines_are_wrapped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"%03d %s\n" % (n, b"x" * 100) for n in range(40)))
    app = NotingApp()
    async with app.run_test(size=(40, 10)) as pilot:
        view = app.query_one(Noting)
        view.open(path)
        view.focus()
        for key in [*["up"] * 39, *["down"] * 39]:
            await pilot.press(key)
            rows = [row for row, _ in view._layout()]
            assert view.cursor in rows, key
            assert rows == sorted(rows)
        assert view.follow
