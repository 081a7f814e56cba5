"""A chart: our own adapter around the plot widget. Title, legend and reading stand in one line above it."""

import os
from dataclasses import dataclass

import numpy as np
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static
from textual_plot import HiResMode, PlotWidget

from console.tui import figures
from console.tui.paint import plain
from console.tui.widgets.decimate import decimate


@dataclass(frozen=True, slots=True)
class Series:
    """One curve, or with `points` single marks. `y` may hold None, NaN and inf."""

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    style: str = "green"
    points: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line over the whole width."""

    name: str
    y: float
    style: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What a chart shows. `steps_of` tells the reader at which x the step of the cursor lies."""

    title: str
    series: tuple[Series, ...] = ()
    levels: tuple[Level, ...] = ()
    empty: str = ""
    gap_words: str = ""
    """Told in the title when values were not finite."""


class ChartView(Vertical):
    """Draws a `Chart`; unchanged ones are not drawn again."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._wanted: tuple[Chart, float | None, tuple[float, float] | None] | None = None
        self._shown: tuple[object, ...] | None = None
        self._mode = HiResMode.HALFBLOCK if os.environ.get("TERM") == "linux" else HiResMode.BRAILLE

    def compose(self) -> ComposeResult:
        yield Static(classes="chart-title", markup=False)
        plot = PlotWidget(allow_pan_and_zoom=False, classes="chart-plot")
        plot.can_focus = False
        for margin, cells in (
            (PlotWidget.margin_top, 0),
            (PlotWidget.margin_bottom, 1),
            (PlotWidget.margin_left, 7),
        ):
            plot.set_reactive(margin, cells)
        yield plot

    def show(self, chart: Chart, *, cursor: float | None, x_range: tuple[float, float] | None) -> bool:
        """Draw it with a reading cursor at x; whether anything had to be drawn."""
        self._wanted = (chart, cursor, x_range)
        return self._paint()

    def on_resize(self) -> None:
        self.call_after_refresh(self._paint)

    def _paint(self) -> bool:
        state = (self._wanted, self.size)
        if self._wanted is None or state == self._shown or self.size.width < 12 or self.size.height < 5:
            return False
        self._shown = state
        chart, cursor, x_range = self._wanted
        self.query_one(".chart-title", Static).update(self._title(chart, cursor))
        plot = self.query_one(PlotWidget)
        plot.clear()
        plot.set_xlimits(*(x_range or _extent(chart)))
        finite = [v for s in chart.series for v in s.y if v is not None and np.isfinite(v)]
        plot.set_ylimits(*_room([*finite, *(level.y for level in chart.levels)]))
        low, high = x_range or _extent(chart)
        for level in chart.levels:
            plot.plot([low, high], [level.y, level.y], line_style=level.style, hires_mode=self._mode)
        for series in chart.series:
            self._draw(plot, series, max(8, self.size.width - 9), min(finite, default=0.0))
        if cursor is not None and low <= cursor <= high:
            plot.add_v_line(cursor, line_style="grey62")
        return True

    def _draw(self, plot: PlotWidget, series: Series, width: int, bottom: float) -> None:
        if series.points:
            known = [(x, y) for x, y in zip(series.x, series.y, strict=True) if y is not None]
            plot.scatter([x for x, _ in known], [y for _, y in known], marker="◆", marker_style=series.style)
            return
        pieces = decimate(series.x, series.y, 2 * width)
        for x, y in pieces.curves:
            if len(x) == 1:
                plot.scatter(x, y, marker_style=series.style, hires_mode=self._mode)
            else:
                plot.plot(x, y, line_style=series.style, hires_mode=self._mode)
        if len(pieces.gaps):
            plot.scatter(pieces.gaps, np.full(len(pieces.gaps), bottom), marker="×", marker_style="bold red")

    def _title(self, chart: Chart, cursor: float | None) -> Text:
        text = Text(plain(chart.title), "bold", end="")
        for series in chart.series:
            at = _reading(series, cursor)
            text.append("  ◆" if series.points else "  ━", series.style)
            text.append(plain(series.name) + " " if series.name else " ")
            text.append(figures.number(at, 3), "bold" if cursor is None else "reverse")
        for level in chart.levels:
            text.append("  ─", level.style)
            text.append(f"{plain(level.name)} {figures.number(level.y, 3)}")
        if chart.gap_words:
            text.append("  × " + plain(chart.gap_words), "bold red")
        if not any(series.x for series in chart.series):
            text.append("  " + plain(chart.empty), "grey62")
        text.truncate(self.size.width - 2, overflow="ellipsis")
        return text


def _reading(series: Series, cursor: float | None) -> float | None:
    """The last value, or the one nearest to the cursor."""
    if not series.x:
        return None
    if cursor is None:
        return series.y[-1]
    place = int(np.argmin(np.abs(np.asarray(series.x) - cursor)))
    return series.y[place]


def _extent(chart: Chart) -> tuple[float, float]:
    xs = [x for series in chart.series for x in (series.x[:1] + series.x[-1:])]
    low, high = min(xs, default=0.0), max(xs, default=1.0)
    return (low, high) if high > low else (low, low + 1.0)


def _room(values: list[float]) -> tuple[float, float]:
    """Limits with a little air, so that no curve lies on the frame."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    air = (high - low) * 0.06 or max(abs(high) * 0.05, 0.5)
    return low - air, high + air
