"""Screen 3: the matrix, the charts of the chosen run, and its live log."""

import re
from collections.abc import Callable
from datetime import datetime
from time import monotonic
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import Input, Static

from console.core.record.experiment import Experiment
from console.core.record.views import RunView
from console.tui import charts, figures, signs
from console.tui.actions import LOCAL, bindings
from console.tui.messages import LogAdvanced, SearchEnded
from console.tui.paint import cut, lines, plain, say
from console.tui.screens.base import LabScreen
from console.tui.screens.window import finding_rows
from console.tui.widgets.chart_view import ChartView
from console.tui.widgets.log_view import LOOK_SECONDS, LogView
from console.tui.widgets.panel import TextPanel
from console.tui.words import Words

CHART_SECONDS = 0.5
PANES = ("both", "log", "charts")


class RunsScreen(LabScreen):
    """Follows the newest run and the node whose log counts, until the user chooses others."""

    CSS_PATH: ClassVar = ["base.tcss", "runs.tcss"]
    AUTO_FOCUS = "#log"
    BINDINGS = [*bindings(LOCAL["runs"])]
    name_of = "runs"

    def __init__(self) -> None:
        super().__init__()
        self._run: str | None = None
        self._node: str | None = None
        self._chart: charts.ChartName = "loss"
        self._cursor: int | None = None
        self._zoom = 0
        self._charts_at = float("-inf")
        self._asking: str = ""
        self._looker: Timer | None = None
        self._end_listening: Callable[[], None] | None = None

    def compose_body(self) -> ComposeResult:
        yield Static(id="matrix")
        yield Static(id="run")
        yield Static(id="finding-line")
        with Horizontal(id="charts"):
            yield ChartView(id="chart-main")
            yield ChartView(id="chart-memory")
            with Vertical(id="run-findings", classes="section"):
                yield Static(id="finding-list")
        yield Static(id="log-head")
        yield LogView(id="log")
        yield Input(id="ask")

    @property
    def log_view(self) -> LogView:
        return self.query_one("#log", LogView)

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
        self.put("matrix", matrix_text(experiment, self.shown_run(experiment), words))
        run = self.shown_run(experiment)
        self.query_one("#run-findings").border_title = words("runs.findings")
        if run is None:
            self.put("run", say((f" {words('runs.no_run')}", "grey62")))
            return
        self.put("run", run_text(experiment, run, now, words, self.size.width))
        rows = list(finding_rows(experiment, run.id))
        self.put("finding-line", rows[0] if rows else Text())
        self.query_one("#finding-line").display = bool(rows) and not self.has_class("-wide")
        self.put("finding-list", lines(rows) if rows else say((words("runs.none"), "grey62")))
        node = self.shown_node(run)
        self.log_view.open(self.lab.session.log_path(run.id, node))
        self.log_view.set_findings(
            active.finding.start_byte
            for active in experiment.findings
            if active.finding.start_byte is not None and active.run == run.id and active.node in (node, None)
        )
        self._draw_log_head(run, node)
        self._draw_charts(experiment, run)

    def _look(self) -> None:
        if self.log_view.display:
            self.log_view.look()

    def _log_grew(self, run: str, node: str) -> None:
        view = self.log_view
        if view.display and view.shows(self.lab.session.log_path(run, node)):
            view.grew()

    @on(LogAdvanced)
    def _log_advanced(self) -> None:
        if run := self.shown_run(self.lab.session.experiment):
            self._draw_log_head(run, self.shown_node(run))

    @on(SearchEnded)
    def _search_ended(self, event: SearchEnded) -> None:
        if not event.found:
            self.lab.tell(self.words("runs.no_match"))

    def _draw_log_head(self, run: RunView, node: str) -> None:
        self.put("log-head", log_head_text(run, node, self.log_view, self.words))

    def _draw_charts(self, experiment: Experiment, run: RunView) -> None:
        """At most twice a second, and only when charts are in sight."""
        if not self.query_one("#charts").display or monotonic() - self._charts_at < CHART_SECONDS:
            return
        self._charts_at = monotonic()
        readings = {node: self.lab.readings.of(node) for node in run.nodes}
        for widget_id, name in (("chart-main", self._chart), ("chart-memory", "memory")):
            view = self.query_one(f"#{widget_id}", ChartView)
            if view.display:
                by_time = name in charts.BY_TIME
                view.show(
                    charts.chart_of(name, experiment, run, readings, self.words),
                    cursor=self._cursor_x(run, by_time=by_time),
                    x_range=self._range(run, by_time=by_time),
                )

    def _cursor_x(self, run: RunView, *, by_time: bool) -> float | None:
        """The reading cursor's place: one step, in the charts by time at the moment it was logged."""
        if self._cursor is None or not run.steps:
            return None
        step = run.steps[min(self._cursor, len(run.steps) - 1)]
        return charts.minutes(step.at, run) if by_time else float(step.step)

    def _range(self, run: RunView, *, by_time: bool) -> tuple[float, float] | None:
        """The same stretch of steps in all charts: each zoom halves it, around cursor or end."""
        if not self._zoom or len(run.steps) < 2:
            return None
        shown = max(2, len(run.steps) >> self._zoom)
        middle = len(run.steps) - 1 if self._cursor is None else self._cursor
        first = max(0, min(middle - shown // 2, len(run.steps) - shown))
        ends = run.steps[first], run.steps[min(len(run.steps) - 1, first + shown - 1)]
        low, high = (charts.minutes(s.at, run) if by_time else float(s.step) for s in ends)
        return (low, high) if high > low else None

    def _charts_changed(self) -> None:
        self._charts_at = float("-inf")
        self.redraw()

    def action_next_run(self) -> None:
        experiment = self.lab.session.experiment
        ids, shown = list(experiment.runs), self.shown_run(experiment)
        if shown:
            self._run = ids[(ids.index(shown.id) + 1) % len(ids)]
            self._node = self._cursor = None
            self._charts_changed()

    def action_other_node(self) -> None:
        run = self.shown_run(self.lab.session.experiment)
        if run:
            nodes = run.nodes
            self._node = nodes[(nodes.index(self.shown_node(run)) + 1) % len(nodes)]
            self.redraw()

    def action_panes(self) -> None:
        classes = [f"only-{pane}" for pane in PANES]
        now = next((n for n, name in enumerate(classes) if self.has_class(name)), 0)
        self.remove_class(*classes)
        self.add_class(classes[(now + 1) % len(PANES)])
        self.call_after_refresh(self._charts_changed)
        self.call_after_refresh(self._look)

    def action_chart(self) -> None:
        names: tuple[charts.ChartName, ...] = (*charts.BY_STEP, "power", "clock")
        self._chart = names[(names.index(self._chart) + 1) % len(names)]
        self._charts_changed()

    def action_zoom(self, step: int) -> None:
        self._zoom = max(0, min(8, self._zoom + step))
        self._charts_changed()

    def action_cursor(self, step: int) -> None:
        run = self.shown_run(self.lab.session.experiment)
        if run and run.steps:
            last = len(run.steps) - 1
            place = (last if self._cursor is None else self._cursor) + step
            self._cursor = None if place > last else max(0, place)
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
        self.lab.tell(self.words("runs.copied", n=text.count("\n") + 1 if text else 0))

    def action_raw(self) -> None:
        """The exact bytes of the line, escaped, so that nothing in them can act."""
        if found := self.log_view.raw():
            byte, raw = found
            line = self.log_view.current_line or 0
            number = self.log_view.index.number(line) if self.log_view.index else None
            title = self.words("runs.raw", line=number or "?", byte=byte)
            self.app.push_screen(TextPanel(title, Text(ascii(raw)[2:-1]), self.words("help.close")))

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
                view.set_filter(re.compile(event.value) if event.value else None)
            except re.error as error:
                self.lab.tell(f"{self.words('runs.bad_pattern')}: {error}", "warning")
                return
        self._close_ask()

    def key_escape(self) -> None:
        if self.query_one("#ask").display:
            self._close_ask()
        else:
            self.log_view.find("", 1)
            self.log_view.set_filter(None)
            self._cursor, self._zoom = None, 0
            self._charts_changed()

    def _close_ask(self) -> None:
        self.query_one("#ask").display = False
        self.log_view.focus()
        self.redraw()


def matrix_text(experiment: Experiment, shown: RunView | None, words: Words) -> Text:
    """All configurations with their state, the shown run marked; smoke runs first."""
    text = Text(" ", end="")
    runs = [run for run in experiment.runs.values() if run.purpose != "matrix"]
    entries = [(run.id, run.config, run.state) for run in runs]
    for config in experiment.configurations:
        attempts = experiment.runs_of(config)
        last = attempts[-1] if attempts else None
        entries.append((last.id if last else "", config, last.state if last else "planned"))
    for run_id, config, state in entries:
        found = signs.sign(signs.RUN, state)
        here = shown is not None and run_id == shown.id
        text.append(f" {plain(config)} ", "bold reverse" if here else "bold")
        text.append(f" {found.glyph} {words.state(state)}  ", found.style)
    return text


def run_text(experiment: Experiment, run: RunView, now: datetime, words: Words, width: int) -> Text:
    """What the run is, how its batch is put together, and where it stands."""
    head = say((f" {plain(run.config)} ", "bold"))
    config = next((c for c in experiment.profile.matrix.configurations if c.id == run.config), None)
    if config and run.purpose == "matrix":
        settings = {**experiment.profile.settings.model_dump(), **config.settings, **run.settings}
        micro, batch = settings["micro_batch"], settings["global_batch"]
        dp = config.data_parallel
        head.append(f"{plain(config.title)} · {config.parallel}  ")
        head.append(
            f"{words('runs.global')} {batch} = {micro} × DP {dp} × {batch / (micro * dp):g}", "grey62"
        )
    last = run.last_step
    tail = Text(end="")
    if last:
        tail.append(f"{words('runs.step')} {last.step}/{last.total or '?'}", "bold")
        if run.outcome is None and (age := figures.stale(last.at, now)):
            tail.append(f" · {words('runs.since')} {age} {words('window.ago')}", "yellow")
        row = experiment.rows.get(run.config)
        pace = [s for s in charts.step_interval_seconds(run.steps)[1:] if s is not None]
        if row and row.run == run.id and row.steady_step_seconds is not None:
            tail.append(f"  {figures.number(row.steady_step_seconds, 3)} s/it")
        elif pace:
            tail.append(f"  {figures.number(pace[-1], 3)} s/it")
    if run.cause:
        tail.append(f"  {plain(run.cause)}", "red")
    head.truncate(max(0, width - min(tail.cell_len, width // 2) - 2), overflow="ellipsis")
    return say(head, "  ", tail)


def log_head_text(run: RunView, node: str, view: LogView, words: Words) -> Text:
    """Whose log this is, whether it follows, and how long it is."""
    rank = next((launch.rank for launch in run.launches if launch.node == node), 0)
    kind = "runs.log_rank" if node == run.log_node else "runs.rank"
    parts = [words("runs.log"), plain(node), words(kind, rank=rank)]
    parts.append(words("runs.following") if view.follow else words("runs.stopped"))
    parts.append(f"{view.row_count:,} {words('runs.lines')}".replace(",", " "))
    text = say((" " + " · ".join(parts), "bold"))
    if view.pattern:
        text.append(f" · {words('runs.filtered')} {cut(plain(view.pattern.pattern), 20)}", "yellow")
    if view.needle:
        text.append(f" · /{cut(plain(view.needle), 20)}", "yellow")
    if view.progress is not None:
        text.append(f" · {words('runs.looking')} {view.progress:.0%}", "yellow")
    if view.index is None or (not view.row_count and not view.pattern):
        text.append(f" · {words('runs.no_log')}", "grey62")
    elif view.index.hole:
        text.append(f" · {words('runs.older')}", "yellow")
    return text
