"""The last question before something on a node is ended: exactly what, exactly where."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input

from console.tui.paint import plain
from console.tui.widgets.panel import Panel
from console.tui.words import Words


class ConfirmPanel(Panel[str]):
    """Answers with the reason once `y` was pressed."""

    BINDINGS: ClassVar = [
        Binding("y", "confirm", show=False),
        Binding("r", "reason", show=False),
        Binding("n", "close", show=False),
    ]

    def __init__(self, title: str, body: Text, words: Words) -> None:
        super().__init__(title, body, words("confirm.keys"), danger=True, typing_keys=words("confirm.typing"))
        self._default = words("confirm.reason")
        self._label = words("confirm.note")

    def compose_below(self) -> ComposeResult:
        yield Input(placeholder=self._label, id="reason")

    def action_confirm(self) -> None:
        self.dismiss(plain(self.query_one("#reason", Input).value).strip() or self._default)

    def action_reason(self) -> None:
        self.query_one("#reason", Input).focus()

    def on_input_submitted(self) -> None:
        """Leave the text field, so that `y` is a key again."""
        self.set_focus(None)

    def action_close(self) -> None:
        if self.focused is not None:
            self.set_focus(None)
        else:
            self.dismiss(None)


class QuitPanel(Panel[bool]):
    """Says what goes on without the console; answers True when it shall end."""

    BINDINGS: ClassVar = [Binding("y,q,enter,ctrl+q", "quit", show=False)]

    def __init__(self, body: Text, words: Words) -> None:
        super().__init__(words("quit.title"), body, words("quit.keys"))

    def action_quit(self) -> None:
        self.dismiss(True)
