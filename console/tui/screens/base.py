"""What all six screens share: the line on top, the next action, the keys, and how they are redrawn."""

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, cast

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Static

from console.core.record.experiment import Experiment
from console.tui import figures
from console.tui.actions import GLOBAL, LOCAL, Action, ScreenName, possible
from console.tui.next_action import next_action
from console.tui.paint import cut, plain, say
from console.tui.size import LEAST_CELLS, LEAST_ROWS, can_be_asked, too_small
from console.tui.widgets.timebox import window_bar
from console.tui.words import Words

if TYPE_CHECKING:
    from console.tui.app import LabApp


LEASE_LOW = 0.4
"""A lease turns amber when less than this part of it is left: it should have been renewed long before."""


WIDE = 110
"""Cells from which on there is room for whole words."""


class LabScreen(Screen[None]):
    """A screen drawn from one Experiment. Subclasses give `name_of`, `compose_body` and `draw`."""

    CSS_PATH: ClassVar = ["base.tcss"]
    AUTO_FOCUS = ""
    name_of: ClassVar[ScreenName]
    _composed = False

    @property
    def lab(self) -> "LabApp":
        return cast("LabApp", self.app)

    @property
    def words(self) -> Words:
        return self.lab.words

    def compose(self) -> ComposeResult:
        yield Static(id="too-small")
        yield Static(id="top")
        yield from self.compose_body()
        with Vertical(id="foot"):
            yield Static(id="next")
            yield Static(id="keys")

    def compose_body(self) -> ComposeResult:
        """The widgets between the line on top and the next action."""
        raise NotImplementedError

    def draw(self, experiment: Experiment, now: datetime) -> None:
        """Bring all widgets up to `experiment`; called at most ten times a second, in sight only."""
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return can_be_asked(action, self.app.size)

    def redraw(self) -> None:
        """Draw the whole screen anew from the session."""
        if not self._composed or not self.app.is_running or not self.size.width:
            return
        if too_small(self.size):
            has, needs = (f"{width}x{height}" for width, height in (self.size, (LEAST_CELLS, LEAST_ROWS)))
            self.put("too-small", say((self.words("screen.too_small", needs=needs, has=has), "bold yellow")))
            return
        experiment, now = self.lab.session.experiment, self.lab.session.now()
        with self.app.batch_update():
            self.put("top", _top(self, experiment, now))
            self.put("next", _next(self, experiment, now))
            self.put("keys", _keys(self, experiment))
            self.draw(experiment, now)

    def put(self, widget_id: str, text: Text) -> None:
        """Give a static widget its text; the same text again costs nothing."""
        widget = self.query_one(f"#{widget_id}", Static)
        if widget.content != text:
            grows = widget.styles.height is not None and widget.styles.height.is_auto
            widget.update(text, layout=grows)

    def on_mount(self) -> None:
        self._composed = True

    def on_screen_resume(self) -> None:
        self.redraw()

    def on_resize(self) -> None:
        self.call_after_refresh(self.redraw)


def offered(action: Action, experiment: Experiment, *, read_only: bool) -> bool:
    """Whether the key line shows this action now."""
    if not action.footer or not possible(action, experiment, read_only=read_only):
        return False
    if action.id == "decide":
        return experiment.open_decision is not None
    if action.id == "stop":
        return experiment.current_run is not None
    if action.id == "restore":
        return experiment.service.owed
    return True


def _top(screen: LabScreen, experiment: Experiment, now: datetime) -> Text:
    words, width = screen.words, screen.size.width
    head = say((f" {plain(experiment.name)} ", "bold reverse"), f" {words('screen.' + screen.name_of)} · ")
    if screen.lab.session.read_only:
        head.append_text(say((f" {words('header.watching')} ", "bold yellow")))
    lease = _leases(experiment, now, words, width)
    room = width - head.cell_len - lease.cell_len - 2
    head.append_text(window_bar(experiment, now, words, room))
    head.append(" " * max(1, width - head.cell_len - lease.cell_len - 1))
    head.append_text(lease)
    return head


def _leases(experiment: Experiment, now: datetime, words: Words, width: int) -> Text:
    """How long ago each guard last heard from the console."""
    held = [node for node in experiment.nodes.values() if node.lease_renewed and node.lease_until]
    if not held:
        return Text()
    text = say(words("header.lease_renewed" if width >= WIDE else "header.lease"))
    short = figures.short_names(list(experiment.nodes))
    for node in held[:4]:
        assert node.lease_renewed is not None
        assert node.lease_until is not None
        over = node.lease_until <= now
        left, whole = node.lease_until - now, node.lease_until - node.lease_renewed
        style = "bold red" if over else "green" if left > whole * LEASE_LOW else "yellow"
        name = plain(short[node.name])
        text.append(
            f" {'✗' if over else '●'} {name} {figures.span(figures.since(node.lease_renewed, now))}", style
        )
    return text.append(f" {words('window.ago')}")


def _next(screen: LabScreen, experiment: Experiment, now: datetime) -> Text:
    read_only = screen.lab.session.read_only
    what, action_id = next_action(experiment, now, screen.words, read_only=read_only)
    if (failure := screen.lab.failure) is not None:
        what, action_id = screen.words("failure.next", what=failure.render().splitlines()[0]), "quit"
    key = next((f" [{action.shown_key}]" for action in GLOBAL if action.id == action_id), "")
    style = "bold black on yellow" if action_id else "bold"
    return say((cut(f" ▶ {plain(what)}", screen.size.width - cell_len(key) - 1) + key + " ", style))


def _keys(screen: LabScreen, experiment: Experiment) -> Text:
    """The keys that fit, the urgent ones first; the way out always has its place."""
    read_only = screen.lab.session.read_only
    urgent = [a for a in GLOBAL if a.id in ("decide", "restore", "stop")]
    rest = [a for a in GLOBAL if a.id in ("help", "quit", "palette")]
    actions = [
        action
        for action in (*urgent, *rest[:1], *LOCAL[screen.name_of], *rest[1:])
        if offered(action, experiment, read_only=read_only)
    ]
    pieces = {action.id: _key(screen, action) for action in actions}
    text, room = Text(" 1-6", "bold cyan"), screen.size.width - pieces["quit"].cell_len
    for name, piece in pieces.items():
        if name == "quit" or text.cell_len + piece.cell_len < room:
            text.append_text(piece)
    return text


def _key(screen: LabScreen, action: Action) -> Text:
    words = screen.words(f"action.{action.id}")
    return say(
        ("  " + action.shown_key, "bold cyan"), (" " + words, "red" if action.danger == "ends" else "")
    )
