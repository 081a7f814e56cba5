"""Everything a key can do, in one table that makes bindings, footer, help, palette and documentation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding

from console.core.record.experiment import Experiment

Danger = Literal["none", "writes", "ends"]
"""`writes`: leaves something in the journal that can't be taken back. `ends`: ends something on a node."""
ScreenName = Literal["window", "checklist", "runs", "ledger", "record", "summary"]

SCREENS: tuple[ScreenName, ...] = ("window", "checklist", "runs", "ledger", "record", "summary")


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do. `id` is also the catalogue's key for its words (`action.<id>`)."""

    id: str
    key: str
    call: str
    """Textual action, e.g. `app.restore` or `screen.follow`."""
    danger: Danger = "none"
    footer: bool = False
    """Whether the key line shows it; help and palette show all."""
    priority: bool = False
    """Works while a text field has the focus."""
    writes_only: bool = False
    """Useless in a watched or replayed experiment."""

    @property
    def shown_key(self) -> str:
        """The first of its keys, as a person would name it."""
        return _name(self.key.split(",")[0])

    @property
    def shown_keys(self) -> str:
        """All of its keys."""
        return " ".join(_name(key) for key in self.key.split(","))


def _name(key: str) -> str:
    return _KEY_NAMES.get(key, key.replace("ctrl+", "^"))


_KEY_NAMES = {
    "question_mark": "?",
    "slash": "/",
    "ampersand": "&",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "plus": "+",
    "minus": "-",
    "comma": ",",
    "full_stop": ".",
    "enter": "↵",
}

GLOBAL: tuple[Action, ...] = (
    *(Action(name, str(n), f"app.show('{name}')") for n, name in enumerate(SCREENS, start=1)),
    Action("decide", "d", "app.decide", "writes", footer=True, writes_only=True),
    Action("hypotheses", "h", "app.hypotheses", "writes"),
    Action("stop", "s", "app.stop", "ends", footer=True, writes_only=True),
    Action("restore", "R,ctrl+r", "app.restore", "ends", footer=True, priority=True, writes_only=True),
    Action("language", "L", "app.language"),
    Action("help", "question_mark", "app.keys", footer=True),
    Action("palette", "ctrl+p", "app.command_palette", footer=True, priority=True),
    Action("quit", "q,ctrl+q", "app.leave", footer=True),
)

LOCAL: dict[ScreenName, tuple[Action, ...]] = {
    "window": (),
    "checklist": (Action("evidence", "enter", "screen.evidence", footer=True),),
    "runs": (
        Action("next_run", "e", "screen.next_run", footer=True),
        Action("logs", "v", "screen.logs", footer=True),
        Action("other_node", "o", "screen.other_node", footer=True),
        Action("panes", "p", "screen.panes", footer=True),
        Action("chart", "c", "screen.chart", footer=True),
        Action("log_scale", "l", "screen.log_scale", footer=True),
        Action("smooth", "a", "screen.smooth", footer=True),
        Action("zoom_in", "plus", "screen.zoom(1)"),
        Action("zoom_out", "minus", "screen.zoom(-1)"),
        Action("cursor_left", "comma", "screen.cursor(-1)"),
        Action("cursor_right", "full_stop", "screen.cursor(1)"),
        Action("follow", "f", "screen.follow", footer=True),
        Action("search", "slash", "screen.search", footer=True),
        Action("next_match", "n", "screen.match(1)"),
        Action("previous_match", "N", "screen.match(-1)"),
        Action("filter", "ampersand", "screen.filter"),
        Action("next_finding", "right_square_bracket", "screen.finding(1)"),
        Action("previous_finding", "left_square_bracket", "screen.finding(-1)"),
        Action("wrap", "w", "screen.wrap"),
        Action("mark", "m", "screen.mark"),
        Action("copy", "y", "screen.copy"),
        Action("raw", "b", "screen.raw"),
    ),
    "ledger": (Action("next_config", "e", "screen.next_config", footer=True),),
    "record": (Action("proof", "enter", "screen.proof", footer=True),),
    "summary": (),
}


def actions_of(screen: ScreenName) -> tuple[Action, ...]:
    """The screen's own actions first, then those that work anywhere."""
    return (*LOCAL[screen], *GLOBAL)


def possible(action: Action, experiment: Experiment, *, read_only: bool) -> bool:
    """Whether the experiment can ever grant it; what can't be granted is not offered."""
    if action.id == "restore" and experiment.profile.service.kind == "none":
        return False
    return not (read_only and action.writes_only)


def bindings(actions: Sequence[Action]) -> list[Binding]:
    """Textual bindings. Their descriptions are never shown: the catalogue's words are.

    Only control keys of a priority action take precedence, so that a text field still takes letters.
    """
    return [
        Binding(key, action.call, action.id, show=False, priority=action.priority and "ctrl+" in key)
        for action in actions
        for key in action.key.split(",")
    ]
