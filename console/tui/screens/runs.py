"""Screen 3: the matrix, the charts of the chosen run, and its live log."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import Input, Static

from console.core.record.experiment import Experiment
from console.core.record.views import RunView
from console.tui.actions import LOCAL, bindings
from console.tui.messages import FilterGivenUp, LogAdvanced, SearchEnded
from console.tui.paint import lines, say
from console.tui.screens.base import LabScreen
from console.tui.screens.runs_text import (
    contact_text,
    log_head_text,
    matrix_text,
    merged_head_text,
    run_text,
)
from console.tui.screens.window import finding_rows
from console.tui.widgets.expressions import BadExpression, expression
from console.tui.widgets.log_panes import MODES, LogPanes, Mode, NodeLog
from console.tui.widgets.log_view import LOOK_SECONDS, LogView
from console.tui.widgets.merged_logs import HISTORY_LINES
from console.tui.widgets.merged_view import MergedView
from console.tui.widgets.panel import TextPanel
from console.tui.widgets.run_charts import RunCharts

PANES = ("both", "log", "charts")
LINE_CELLS = 40
"""So much of a line names it."""


class RunsScreen(LabScreen):
    """Follows the newest run and the node whose log counts, until the user chooses others."""

    CSS_PATH: ClassVar = ["base.tcss", "runs.tcss"]
    AUTO_FOCUS = "#pane-0 LogView"
    BINDINGS = [*bindings(LOCAL["runs"])]
    name_of = "runs"

    def __init__(self) -> None:
        super().__init__()
        self._run: str | None = None
        self._node: str | None = None
        self._mode: Mode = "one"
        self._asking: str = ""
        self._looker: Timer | None = None
        self._end_listening: Callable[[], None] | None = None

    def compose_body(self) -> ComposeResult:
        yield Static(id="matrix")
        yield Static(id="run")
        yield Static(id="finding-line")
        with Horizontal(id="upper"):
            yield RunCharts(id="charts")
            with Vertical(id="run-findings", classes="section"):
                yield Static(id="finding-list")
        yield Static(id="contact")
        yield LogPanes(id="logs")
        yield Input(id="ask")

    @property
    def log_view(self) -> LogView:
        """The log that the keys go to."""
        return self.panes.view

    @property
    def panes(self) -> LogPanes:
        return self.query_one("#logs", LogPanes)

    @property
    def charts(self) -> RunCharts:
        return self.query_one("#charts", RunCharts)

    def on_mount(self) -> None:
        self.query_one("#ask").display = False
        if self.lab.session.read_only:
            self._looker = self.set_interval(LOOK_SECONDS, self._look)

    def on_screen_suspend(self) -> None:
        if self._end_listening:
            self._end_listening()
        if self._looker:
            self._looker.pause()

    def on_screen_resume(self) -> None:
        self._end_listening = self.lab.session.listen_logs(self._log_grew)
        if self._looker:
            self._looker.resume()
        self._look()
        super().on_screen_resume()

    def shown_run(self, experiment: Experiment) -> RunView | None:
        """The run that is shown: the chosen one, else the one under way, else the last."""
        if self._run in experiment.runs:
            return experiment.runs[self._run or ""]
        return experiment.current_run or next(reversed(tuple(experiment.runs.values())), None)

    def shown_node(self, run: RunView) -> str:
        """The node whose log is shown."""
        return self._node if self._node in run.nodes and self._node else run.log_node

    def draw(self, experiment: Experiment, now: datetime) -> None:
        words = self.words
        self.put("matrix", matrix_text(experiment, self.shown_run(experiment), words, self.size.width))
        run = self.shown_run(experiment)
        self.query_one("#run-findings").border_title = words("runs.findings")
        self.set_class(run is None, "no-run")
        if run is None:
            self.put("run", Text())
            self.put("contact", say(words("runs.no_run")))
            return
        self.put("run", run_text(experiment, run, now, words, self.size.width))
        rows = list(finding_rows(experiment, words, run.id))
        self.put("finding-line", rows[0] if rows else Text())
        self.query_one("#finding-line").display = bool(rows) and not self.has_class("-wide")
        self.put("finding-list", lines(rows) if rows else say((words("runs.none"), "grey62")))
        self.panes.show(self._logs(experiment, run), self.shown_node(run), self._mode)
        self._draw_log_heads()
        self._draw_contact(experiment, run, now)
        readings = {node: self.lab.readings.of(node) for node in run.nodes}
        self.charts.draw(experiment, run, readings, now, words)

    def _logs(self, experiment: Experiment, run: RunView) -> list[NodeLog]:
        """The run's logs by rank, each with the places that findings in it rest on."""
        found = [active for active in experiment.findings if active.run == run.id]
        return [
            NodeLog(
                launch.node,
                launch.rank,
                launch.node == run.log_node,
                self.lab.session.log_path(run.id, launch.node),
                tuple(
                    active.finding.start_byte
                    for active in found
                    if active.finding.start_byte is not None and active.node in (launch.node, None)
                ),
            )
            for launch in run.launches
        ]

    def _look(self) -> None:
        self.panes.look()

    def _log_grew(self, run: str, node: str) -> None:
        self.panes.grew(self.lab.session.log_path(run, node))

    def _draw_contact(self, experiment: Experiment, run: RunView, now: datetime) -> None:
        logs = self.panes.in_sight()
        latest = {log.node: self.lab.readings.latest(log.node) for log in logs}
        heard = {node: reading.arrived_at if reading else None for node, reading in latest.items()}
        grew = {log.node: written_at(log.path) for log in logs}
        text = contact_text(experiment, run, heard, grew, now, self.words)
        self.put("contact", text)

    @on(LogAdvanced)
    def _draw_log_heads(self) -> None:
        for pane in self.panes.panes():
            if isinstance(pane.view, MergedView):
                pane.view.begins = self.words("runs.begins", n=f"{HISTORY_LINES:,}")
                pane.put_head(merged_head_text(self.panes.in_sight(), pane.view, self.words))
            elif pane.log_of is not None:
                chosen = pane.view is self.log_view
                pane.put_head(
                    log_head_text(pane.log_of, pane.view, self.words, mode=self.panes.mode, chosen=chosen)
                )

    @on(SearchEnded)
    def _search_ended(self, event: SearchEnded) -> None:
        if not event.found:
            self.lab.tell(self.words("runs.no_match"))

    @on(FilterGivenUp)
    def _filter_given_up(self, event: FilterGivenUp) -> None:
        self.lab.tell(self.words("runs.too_slow", line=event.line[:LINE_CELLS]), "warning")
        self.redraw()

    def _charts_changed(self) -> None:
        self.charts.redraw_soon()
        self.redraw()

    def action_next_run(self) -> None:
        experiment = self.lab.session.experiment
        ids, shown = list(experiment.runs), self.shown_run(experiment)
        if shown:
            self._run = ids[(ids.index(shown.id) + 1) % len(ids)]
            self._node = None
            self.charts.show_all()
            self._charts_changed()

    def action_other_node(self) -> None:
        run = self.shown_run(self.lab.session.experiment)
        if run:
            nodes = run.nodes
            self._node = nodes[(nodes.index(self.shown_node(run)) + 1) % len(nodes)]
            self.redraw()

    def action_logs(self) -> None:
        """One log, side by side, merged, and so on; a run on one node has but one log."""
        run = self.shown_run(self.lab.session.experiment)
        if run and len(run.launches) < 2:
            self.lab.tell(self.words("runs.one_log"))
            return
        self._mode = MODES[(MODES.index(self._mode) + 1) % len(MODES)]
        self.redraw()

    def action_panes(self) -> None:
        classes = [f"only-{pane}" for pane in PANES]
        now = next((n for n, name in enumerate(classes) if self.has_class(name)), 0)
        self.remove_class(*classes)
        self.add_class(classes[(now + 1) % len(PANES)])
        self.call_after_refresh(self._charts_changed)
        self.call_after_refresh(self._look)

    def action_chart(self) -> None:
        self.charts.next_chart()
        self._charts_changed()

    def action_log_scale(self) -> None:
        self.charts.toggle_log()
        self._charts_changed()

    def action_smooth(self) -> None:
        self.charts.next_smoothing()
        self._charts_changed()

    def action_zoom(self, step: int) -> None:
        self.charts.zoom(step)
        self._charts_changed()

    def action_cursor(self, step: int) -> None:
        if run := self.shown_run(self.lab.session.experiment):
            self.charts.move_cursor(run, step)
            self._charts_changed()

    def action_follow(self) -> None:
        self.log_view.toggle_follow()
        self.redraw()

    def action_wrap(self) -> None:
        self.log_view.toggle_wrap()

    def action_search(self) -> None:
        self._ask("search", self.log_view.needle)

    def action_filter(self) -> None:
        self._ask("filter", self.log_view.pattern.pattern if self.log_view.pattern else "")

    def action_match(self, step: int) -> None:
        if self.log_view.needle:
            self.log_view.find(self.log_view.needle, step)

    def action_finding(self, step: int) -> None:
        if not self.log_view.go_to_finding(step):
            self.lab.tell(self.words("runs.no_findings"))

    def action_mark(self) -> None:
        self.log_view.mark = self.log_view.cursor
        self.lab.tell(self.words("runs.marked"))

    def action_copy(self) -> None:
        text = self.log_view.marked_text()
        self.app.copy_to_clipboard(text)
        self.log_view.mark = None
        count = text.count("\n") + 1 if text else 0
        self.lab.tell(self.words("runs.copied", n=count))

    def action_raw(self) -> None:
        """The exact bytes of the line, escaped, so that nothing in them can act."""
        view, words = self.log_view, self.words
        if isinstance(view, MergedView):
            title = words("action.raw")
            text = lines(
                say(
                    (f"{words('runs.rank', rank=rank)}, {words('runs.byte', byte=byte)}: ", "bold"),
                    escaped(raw),
                )
                for rank, byte, raw in view.raws()
            )
        elif found := view.raw():
            line = view.current_line
            number = None if view.index is None or line is None else view.index.number(line)
            title = words("runs.raw", line=number or "?", byte=found[0])
            text = Text(escaped(found[1]))
        else:
            return
        self.app.push_screen(TextPanel(title, text, words("help.close")))

    def _ask(self, what: str, value: str) -> None:
        self._asking = what
        field = self.query_one("#ask", Input)
        field.placeholder = self.words(f"action.{what}")
        field.value = value
        field.display = True
        field.focus()

    @on(Input.Submitted, "#ask")
    def _asked(self, event: Input.Submitted) -> None:
        view = self.log_view
        if self._asking == "search":
            view.find(event.value, -1)
        else:
            try:
                view.set_filter(expression(event.value) if event.value else None)
            except BadExpression as error:
                self.lab.tell(f"{self.words('runs.bad_pattern')}: {error}", "warning")
                return
        self._close_ask()

    def key_escape(self) -> None:
        if self.query_one("#ask").display:
            self._close_ask()
        else:
            self.log_view.find("", 1)
            self.log_view.set_filter(None)
            self.charts.show_all()
            self._charts_changed()

    def _close_ask(self) -> None:
        self.query_one("#ask").display = False
        self.log_view.focus()
        self.redraw()


def escaped(raw: bytes) -> str:
    return ascii(raw)[2:-1]


def written_at(path: Path) -> datetime | None:
    """When the last bytes came into a mirror; None while there is none."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
    except OSError:
        return None
