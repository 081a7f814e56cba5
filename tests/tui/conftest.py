"""A lab on screen: the app under a pilot, its session beside it."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from textual.message import Message
from textual.pilot import Pilot

from console.tui.actions import SCREENS
from console.tui.app import LabApp, Left
from tui.support import FakeSession, page

Opener = Callable[..., AbstractAsyncContextManager[tuple[Pilot[Left], LabApp, list[Message]]]]


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same terminal and zone everywhere."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()


@pytest.fixture
def opened() -> Opener:
    """`async with opened(session, size=...)` gives pilot, app, and every message that was handled."""

    @asynccontextmanager
    async def open_lab(
        session: FakeSession, *, size: tuple[int, int] = (80, 24), lang: str = "en", screen: str = "window"
    ) -> AsyncIterator[tuple[Pilot[Left], LabApp, list[Message]]]:
        app = LabApp(session, lang, return_command="lab open spark-pair.yaml", one_page=page)
        seen: list[Message] = []
        async with app.run_test(size=size, message_hook=seen.append, notifications=True) as pilot:
            await pilot.pause()
            if screen != "window":
                await pilot.press(str(SCREENS.index(screen) + 1))  # type: ignore[arg-type]
                await pilot.pause()
            yield pilot, app, seen

    return open_lab


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spark-pair"
