"""The logs of a run: one of them, as many side by side as fit, or all merged into one stream."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from console.tui.widgets.log_view import LogView
from console.tui.widgets.merged_view import MergedView

Mode = Literal["one", "side", "merged"]
MODES: tuple[Mode, ...] = ("one", "side", "merged")
PANE_CELLS = 38
"""A narrower log could not be read."""
MOST_PANES = 4


@dataclass(frozen=True, slots=True)
class NodeLog:
    """One node's log of the run, and the bytes in it that findings rest on."""

    node: str
    rank: int
    counts: bool
    """Its figures are the run's."""
    path: Path
    findings: tuple[int, ...] = ()


class LogPane(Vertical):
    """A log under its head."""

    def __init__(self, view: LogView, *, id: str) -> None:
        super().__init__(id=id)
        self.view = view
        self.log_of: NodeLog | None = None

    def compose(self) -> ComposeResult:
        yield Static(classes="log-head")
        yield self.view

    def put_head(self, text: Text) -> None:
        head = self.query_one(".log-head", Static)
        if head.content != text:
            head.update(text, layout=False)

    def open(self, log: NodeLog | None) -> None:
        """Show this log; None lets go of the last one."""
        self.display = log is not None
        self.log_of = log
        if log is None:
            self.view.close()
        else:
            self.view.open(log.path)
            self.view.set_findings(log.findings)


class LogPanes(Horizontal):
    """Holds the panes; the keys go to `view`, that of the node that is chosen."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.mode: Mode = "one"
        self._logs: tuple[NodeLog, ...] = ()
        self._chosen = ""
        self._panes = [LogPane(LogView(), id=f"pane-{n}") for n in range(MOST_PANES)]
        self._merged = LogPane(MergedView(), id="pane-merged")
        for pane in (*self._panes[1:], self._merged):
            pane.display = False

    def compose(self) -> ComposeResult:
        yield from self._panes
        yield self._merged

    @property
    def view(self) -> LogView:
        if self.mode == "merged":
            return self._merged.view
        return next(
            (p.view for p in self.panes() if p.log_of and p.log_of.node == self._chosen), self._panes[0].view
        )

    def panes(self) -> Iterator[LogPane]:
        """The panes in sight."""
        return (pane for pane in (*self._panes, self._merged) if pane.display)

    def in_sight(self) -> list[NodeLog]:
        """The logs that are shown."""
        return list(self._logs) if self.mode == "merged" else [p.log_of for p in self.panes() if p.log_of]

    def show(self, logs: Sequence[NodeLog], chosen: str, mode: Mode) -> None:
        """Show these logs in this way; a single log as it is."""
        had_focus = self.view.has_focus
        mode = mode if len(logs) > 1 else "one"
        self._logs, self._chosen, self.mode = tuple(logs), chosen, mode
        for pane, log in zip_longest(self._panes, self._beside_each_other()):
            pane.open(log)
        self._merged.display = mode == "merged"
        view = self._merged.view
        assert isinstance(view, MergedView)
        if mode == "merged":
            view.open_logs([log.path for log in logs], [log.rank for log in logs])
            view.set_places((n, byte) for n, log in enumerate(logs) for byte in log.findings)
        else:
            view.close()
        if had_focus and not self.view.has_focus:
            self.view.focus()

    def _beside_each_other(self) -> list[NodeLog]:
        """The chosen log, or with it as many of the others as there is room for."""
        if self.mode == "merged":
            return []
        here = next((n for n, log in enumerate(self._logs) if log.node == self._chosen), 0)
        room = 1 if self.mode == "one" else max(1, min(MOST_PANES, self.size.width // PANE_CELLS))
        first = min(here, max(0, len(self._logs) - room))
        return list(self._logs[first : first + room])

    def look(self) -> None:
        """Take in what was appended to the logs in sight."""
        if self.display:
            for pane in self.panes():
                pane.view.look()

    def grew(self, path: Path) -> None:
        """Bytes were added to a mirror."""
        if self.display:
            for pane in self.panes():
                if pane.view.shows(path):
                    pane.view.grew()
