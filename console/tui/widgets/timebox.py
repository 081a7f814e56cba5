"""Time that is running out: the maintenance window as a bar, a checklist box as a countdown."""

from datetime import datetime

from rich.cells import cell_len
from rich.text import Text

from console.core.record.experiment import Experiment
from console.core.record.views import ItemView
from console.tui import figures
from console.tui.paint import say
from console.tui.words import Words

AMBER_SECONDS = 300.0
"""A box turns amber when this much of it is left."""


def window_bar(experiment: Experiment, now: datetime, words: Words, width: int) -> Text:
    """From opening to end of the window; as much of it as fits into `width` cells, the time left first.

    An experiment that is closed has no use for the rest of its window.
    """
    if experiment.outcome is not None:
        return say((words("header.closed"), "grey62"))
    if experiment.window_ends is None:
        return say((words("header.no_window"), "grey62"))
    left = (experiment.window_ends - now).total_seconds()
    whole = (experiment.window_ends - experiment.opened_at).total_seconds()
    style = "bold red" if left < AMBER_SECONDS else "yellow" if left < whole / 4 else "green"
    if left >= 0:
        time_left = f"{figures.span(left)} {words('header.left')}"
    else:
        time_left = f"{words('header.over')} {figures.span(-left)}"
    ends = f"{figures.time_of_day(experiment.opened_at)}–{figures.time_of_day(experiment.window_ends)} "
    room = width - cell_len(time_left) - cell_len(ends) - 2
    text = say(ends if room >= 0 else "")
    if room >= 6:
        used, free = figures.bar(1 - left / whole if whole > 0 else 1.0, min(room, 30))
        text.append(used, "grey62")
        text.append(free, style)
        text.append(" ")
    text.append(time_left, style)
    return text


def box_left(item: ItemView, now: datetime) -> float | None:
    """Seconds left in an item's box, None when it is not running."""
    if item.state != "running" or item.started_at is None:
        return None
    return item.box_seconds - figures.since(item.started_at, now)


def countdown(left: float) -> Text:
    """`14:59`, amber at five minutes, red when over."""
    style = "bold red" if left <= 0 else "bold yellow" if left <= AMBER_SECONDS else "green"
    return Text(figures.clock(left), style)
