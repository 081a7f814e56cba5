"""What all panels share: a box over the screen, closed with escape; the screens stay one key away."""

from typing import ClassVar, Generic, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from console.tui.actions import GLOBAL, SCREENS, bindings
from console.tui.size import can_be_asked

Result = TypeVar("Result")

MARGIN = 1
"""Rows of the screen that a panel leaves free."""
LEAST_BODY = 2


class Panel(ModalScreen[Result | None], Generic[Result]):
    """Base of all panels: title, scrolling body, what belongs beneath it, keys. None means: left undone.

    The body gives way when the terminal is low: what is chosen and the keys always stay in sight.
    """

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

    def __init__(
        self, title: str, body: Text, keys: str, *, danger: bool = False, typing_keys: str = ""
    ) -> None:
        """`typing_keys` stand in place of `keys` while a text field has the focus."""
        super().__init__(classes="danger" if danger else "")
        self._title, self._body, self._keys = title, body, keys
        self._typing_keys = typing_keys or keys

    def compose(self) -> ComposeResult:
        with Vertical(classes="panel-box"):
            yield Static(Text(self._title, "bold"), classes="panel-title")
            with VerticalScroll(classes="panel-body", can_focus=False):
                yield Static(self._body, classes="panel-text")
                yield from self.compose_inside()
            yield from self.compose_below()
            yield Static(Text(self._keys), classes="panel-keys")

    def compose_inside(self) -> ComposeResult:
        """Widgets that scroll with the body."""
        return
        yield

    def compose_below(self) -> ComposeResult:
        """Widgets between body and keys."""
        return
        yield

    def on_mount(self) -> None:
        self.call_after_refresh(self.fit_while_open)

    def on_resize(self) -> None:
        self.call_after_refresh(self.fit_while_open)

    def fit_while_open(self) -> None:
        """Fit, unless the panel was closed before its turn came."""
        if self.query(".panel-box"):
            self.fit()

    def fit(self) -> None:
        """Leave the body as many rows as the rest of the panel does not need."""
        box, body = self.query_one(".panel-box"), self.query_one(".panel-body")
        others = sum(widget.outer_size.height for widget in box.children if widget is not body)
        room = self.size.height - MARGIN - box.gutter.height - others
        body.styles.max_height = max(LEAST_BODY, room)

    def on_descendant_focus(self) -> None:
        self._put_keys(self._typing_keys)

    def on_descendant_blur(self) -> None:
        self._put_keys(self._keys)

    def _put_keys(self, keys: str) -> None:
        for line in self.query(".panel-keys").results(Static):
            line.update(Text(keys))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return can_be_asked(action, self.app.size)

    def action_close(self) -> None:
        self.dismiss(None)

    def action_scroll(self, rows: int) -> None:
        self.query_one(".panel-body").scroll_relative(y=rows, animate=False)


class TextPanel(Panel[None]):
    """Something to read."""

    BINDINGS: ClassVar = [Binding("enter,q", "close", show=False)]
