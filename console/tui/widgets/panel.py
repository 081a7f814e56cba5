"""What all panels share: a box over the screen, closed with escape; the screens stay one key away."""

from typing import ClassVar, Generic, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from console.tui.actions import GLOBAL, SCREENS, bindings

Result = TypeVar("Result")


class Panel(ModalScreen[Result | None], Generic[Result]):
    """Base of all panels: title, scrolling body, what belongs beneath it, keys. None means: left undone."""

    CSS_PATH = "panel.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar = [
        Binding("escape", "close", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("down", "scroll(1)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
        Binding("pagedown,space", "scroll(10)", show=False),
        *bindings([action for action in GLOBAL if action.id in (*SCREENS, "restore")]),
    ]

    def __init__(self, title: str, body: Text, keys: str, *, danger: bool = False) -> None:
        super().__init__(classes="danger" if danger else "")
        self._title, self._body, self._keys = title, body, keys

    def compose(self) -> ComposeResult:
        with Vertical(classes="panel-box"):
            yield Static(Text(self._title, "bold"), classes="panel-title")
            with VerticalScroll(classes="panel-body", can_focus=False):
                yield Static(self._body, classes="panel-text")
            yield from self.compose_below()
            yield Static(Text(self._keys), classes="panel-keys")

    def compose_below(self) -> ComposeResult:
        """Widgets between body and keys."""
        return
        yield

    def action_close(self) -> None:
        self.dismiss(None)

    def action_scroll(self, rows: int) -> None:
        self.query_one(".panel-body").scroll_relative(y=rows, animate=False)


class TextPanel(Panel[None]):
    """Something to read."""

    BINDINGS: ClassVar = [Binding("enter,q", "close", show=False)]
