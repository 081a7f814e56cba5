"""The app: six screens over one session, the panels that ask, and the way out."""

from dataclasses import dataclass
from typing import ClassVar

from textual.app import App

from console.engine.session import Session
from console.tui.actions import ScreenName


@dataclass(frozen=True, slots=True)
class Left:
    """How the user left. `running` lists (run, node) of the jobs that go on without the console."""

    running: tuple[tuple[str, str], ...] = ()


class LabApp(App[Left]):
    """The console on a live, watched or replayed experiment. `run()` returns a `Left`.

    `return_command` is what a person types to come back; it is shown when leaving with jobs running.
    """

    TITLE: ClassVar[str] = "lab"

    def __init__(self, session: Session, lang: str = "en", *, return_command: str = "") -> None:
        super().__init__()
        self.session = session
        self.lang = lang
        self.return_command = return_command


async def render_screenshot(session: Session, screen: ScreenName, size: tuple[int, int]) -> str:
    """One screen as SVG, drawn without a terminal. `size` is (columns, rows)."""
    raise NotImplementedError
