"""The charts of a run beside each other: one reading cursor, one zoom, drawn twice a second at most."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from time import monotonic

from textual.app import ComposeResult
from textual.containers import Horizontal

from console.core.record.experiment import Experiment
from console.core.record.views import RunView
from console.tui import charts, figures
from console.tui.readings import Reading
from console.tui.widgets.chart_view import ChartView, Reader
from console.tui.words import Words

CHART_SECONDS = 0.5
MOST_ZOOM = 8
CHARTS: tuple[charts.ChartName, ...] = (*charts.BY_STEP, "power", "clock")


class RunCharts(Horizontal):
    """The chosen chart and that of the memory. Cursor and zoom are kept as places among the logged steps."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.chart: charts.ChartName = "loss"
        self.look = charts.PLAIN
        self._cursor: int | None = None
        self._zoom = 0
        self._drawn_at = float("-inf")

    def compose(self) -> ComposeResult:
        yield ChartView(id="chart-main")
        yield ChartView(id="chart-memory")

    def draw(
        self,
        experiment: Experiment,
        run: RunView,
        readings: Mapping[str, Sequence[Reading]],
        now: datetime,
        words: Words,
    ) -> None:
        """Nothing is drawn when the last drawing is young or no chart is in sight."""
        if not self.display or monotonic() - self._drawn_at < CHART_SECONDS:
            return
        self._drawn_at = monotonic()
        for widget_id, name in (("chart-main", self.chart), ("chart-memory", "memory")):
            by_time = name in charts.BY_TIME
            self.query_one(f"#{widget_id}", ChartView).show(
                charts.chart_of(name, experiment, run, readings, words, self.look),
                cursor=self.reader(run, words, by_time=by_time),
                x_range=self._range(run, by_time=by_time),
                age=age_of(charts.newest_at(name, run, readings), run, now, words),
            )

    def redraw_soon(self) -> None:
        """The next `draw` draws."""
        self._drawn_at = float("-inf")

    def next_chart(self) -> None:
        self.chart = CHARTS[(CHARTS.index(self.chart) + 1) % len(CHARTS)]

    def toggle_log(self) -> None:
        self.look = charts.Look(not self.look.log, self.look.smoothing)

    def next_smoothing(self) -> None:
        """Smooth more, after the most not at all."""
        place = (charts.SMOOTHING.index(self.look.smoothing) + 1) % len(charts.SMOOTHING)
        self.look = charts.Look(self.look.log, charts.SMOOTHING[place])

    def zoom(self, step: int) -> None:
        self._zoom = max(0, min(MOST_ZOOM, self._zoom + step))

    def move_cursor(self, run: RunView, step: int) -> None:
        """From the newest step on; beyond it the cursor is gone again."""
        if run.steps:
            last = len(run.steps) - 1
            place = (last if self._cursor is None else self._cursor) + step
            self._cursor = None if place > last else max(0, place)

    def show_all(self) -> None:
        """Neither cursor nor zoom."""
        self._cursor, self._zoom = None, 0

    def reader(self, run: RunView, words: Words, *, by_time: bool) -> Reader | None:
        """The reading cursor: one step, in the charts by time at the moment it was logged."""
        if self._cursor is None or not run.steps:
            return None
        step = run.steps[min(self._cursor, len(run.steps) - 1)]
        x = charts.minutes(step.at, run) if by_time else float(step.step)
        return Reader(x, words("chart.at_step", step=step.step))

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


def age_of(at: datetime | None, run: RunView, now: datetime, words: Words) -> str:
    """How old a figure of a run is, once that matters; a run that ended has none: its figures are final."""
    age = figures.stale(at, now) if at and run.outcome is None else ""
    return f"{age} {words('window.ago')}" if age else ""
