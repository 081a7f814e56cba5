"""A chart: our own adapter around the plot widget. Title, legend and reading stand in one line above it."""

import math
import os
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static
from textual_plot import HiResMode, PlotWidget

from console.tui import figures
from console.tui.paint import cut, plain
from console.tui.widgets.axes import RoundTicks
from console.tui.widgets.decimate import Pieces, decimate

LEFT, BOTTOM = 7, 1
"""Cells of the margins that hold the labels of the axes."""
TICK_CELLS = 9
HIGHEST = 1e300
"""No higher value is drawn: with air above it and ticks it would leave the range of numbers."""


@dataclass(frozen=True, slots=True)
class Series:
    """One curve, or with `points` single marks. `y` may hold None, NaN and inf."""

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    style: str = "green"
    points: bool = False
    quiet: bool = False
    """Without a place in the title."""


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line over the whole width, with its name and value on it."""

    name: str
    y: float
    style: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What a chart shows. On a `log` axis values up to 0 make gaps; the title reads the values themselves."""

    title: str
    series: tuple[Series, ...] = ()
    levels: tuple[Level, ...] = ()
    empty: str = ""
    """Why there is nothing to draw, told in its place."""
    gap_words: str = ""
    """Told under the title when values could not be drawn."""
    log: bool = False
    x_unit: str = ""
    reach: float = 0.0
    """How far along x a value may be from the cursor and still be read there."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The reading cursor: its place on the x axis, and what it stands on in words."""

    x: float
    words: str


class ChartView(Vertical):
    """Draws a `Chart`; unchanged ones are not drawn again."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._wanted: tuple[Chart, Reader | None, tuple[float, float] | None, str] | None = None
        self._shown: tuple[object, ...] | None = None
        self._mode = HiResMode.HALFBLOCK if os.environ.get("TERM") == "linux" else HiResMode.BRAILLE

    def compose(self) -> ComposeResult:
        yield Static(classes="chart-title", markup=False)
        yield Static(classes="chart-note", markup=False)
        yield Static(classes="chart-empty", markup=False)
        plot = PlotWidget(allow_pan_and_zoom=False, classes="chart-plot")
        plot.can_focus = plot.display = False
        for margin, cells in (
            (PlotWidget.margin_top, 0),
            (PlotWidget.margin_bottom, BOTTOM),
            (PlotWidget.margin_left, LEFT),
        ):
            plot.set_reactive(margin, cells)
        yield plot

    def show(
        self, chart: Chart, *, cursor: Reader | None, x_range: tuple[float, float] | None, age: str = ""
    ) -> bool:
        """Draw it; whether anything had to be drawn. `age`: of its newest value, once that matters."""
        self._wanted = (chart, cursor, x_range, age)
        return self._paint()

    def on_resize(self) -> None:
        self.call_after_refresh(self._paint)

    def _paint(self) -> bool:
        state = (self._wanted, self.size)
        if self._wanted is None or state == self._shown or self.size.width < 12 or self.size.height < 5:
            return False
        self._shown = state
        chart, cursor, x_range, age = self._wanted
        self.query_one(".chart-title", Static).update(self._title(chart, cursor, age))
        plot, nothing = self.query_one(PlotWidget), self.query_one(".chart-empty", Static)
        plot.display = any(_can_be_drawn(y, log=chart.log) for series in chart.series for y in series.y)
        nothing.display = not plot.display
        note = self.query_one(".chart-note", Static)
        note.display = bool(chart.gap_words)
        note.update(Text(f"× {plain(chart.gap_words)}", "bold red"))
        nothing.update(Text("" if chart.gap_words else plain(chart.empty), "grey62"))
        if plot.display:
            self._plot(plot, chart, cursor, x_range or _extent(chart))
        return True

    def _plot(
        self, plot: PlotWidget, chart: Chart, cursor: Reader | None, x_range: tuple[float, float]
    ) -> None:
        plot.clear()
        width = self.size.width - LEFT - 2
        height = self.size.height - BOTTOM - (4 if chart.gap_words else 3)
        series = [_between(one, *x_range) for one in chart.series]
        pieces = [(one, _pieces(one, 2 * max(8, width), log=chart.log)) for one in series]
        levels = [(one, _scaled(one.y, log=chart.log)) for one in chart.levels]
        heights = [float(y) for _, piece in pieces for _, ys in piece.curves for y in ys]
        bottom, top = _room([*heights, *(y for _, y in levels if np.isfinite(y))])
        plot.set_xlimits(*x_range)
        plot.set_ylimits(bottom, top)
        plot.set_x_formatter(RoundTicks(width // TICK_CELLS, unit=plain(chart.x_unit)))
        plot.set_y_formatter(RoundTicks(min(6, height // 2 + 1), log=chart.log))
        for level, y in levels:
            plot.plot(list(x_range), [y, y], line_style=level.style, hires_mode=self._mode)
        for one, piece in pieces:
            self._draw(plot, one, piece, min(heights, default=bottom))
        levels.sort(key=lambda pair: -pair[1])
        rows = groupby(levels, key=lambda pair: math.floor((pair[1] - bottom) / (top - bottom) * height))
        for _, together in rows:
            self._label(plot, [pair[0] for pair in together], width, chart.log, x_range)
        if cursor is not None and x_range[0] <= cursor.x <= x_range[1]:
            plot.add_v_line(cursor.x, line_style="grey62")

    def _draw(self, plot: PlotWidget, series: Series, pieces: Pieces, bottom: float) -> None:
        for x, y in pieces.curves:
            if series.points:
                plot.scatter(x, y, marker="◆", marker_style=series.style)
            elif len(x) == 1:
                plot.scatter(x, y, marker_style=series.style, hires_mode=self._mode)
            else:
                plot.plot(x, y, line_style=series.style, hires_mode=self._mode)
        if len(pieces.gaps):
            plot.scatter(pieces.gaps, np.full(len(pieces.gaps), bottom), marker="×", marker_style="bold red")

    def _label(
        self, plot: PlotWidget, levels: Sequence[Level], width: int, log: bool, x_range: tuple[float, float]
    ) -> None:
        """Names and values of the levels that share a row, written on the line, a marker for every letter."""
        column, letters = 1, list[tuple[int, str, str]]()
        for level in levels:
            words = f"{plain(level.name)} {figures.number(level.y, 3)}"
            for letter in cut(words, width - column - 1):
                letters.append((column, letter, level.style))
                column += cell_len(letter)
            column += 1
        low, high = x_range
        y = _scaled(levels[0].y, log=log)
        for at, letter, style in letters:
            x = low + (at + 0.5) / width * (high - low)
            plot.scatter([x], [y], marker=letter, marker_style=style)
            if cell_len(letter) == 2:
                plot.scatter([x + (high - low) / width], [y], marker="", marker_style=style)

    def _title(self, chart: Chart, cursor: Reader | None, age: str) -> Text:
        text = Text(plain(chart.title), "bold", end="")
        if cursor is not None:
            text.append(f"  {plain(cursor.words)}", "reverse")
        elif age:
            text.append(f"  {plain(age)}", "bold yellow")
        for series in chart.series:
            if series.quiet:
                continue
            at = _reading(series, cursor, chart.reach)
            text.append("  ◆" if series.points else "  ━", series.style)
            text.append(plain(series.name) + " " if series.name else " ")
            text.append(figures.number(at, 3), "bold" if cursor is None else "reverse")
        text.truncate(self.size.width - 2, overflow="ellipsis")
        return text


def _reading(series: Series, cursor: Reader | None, reach: float) -> float | None:
    """The last value, or the one at the cursor."""
    if not series.x:
        return None
    if cursor is None:
        return series.y[-1]
    place = int(np.argmin(np.abs(np.asarray(series.x) - cursor.x)))
    return series.y[place] if abs(series.x[place] - cursor.x) <= reach else None


def _between(series: Series, low: float, high: float) -> Series:
    """The part of a curve that is in sight, with one point beyond either edge, so that lines reach it."""
    first = max(0, bisect_left(series.x, low) - 1)
    last = bisect_right(series.x, high) + 1
    return replace(series, x=series.x[first:last], y=series.y[first:last])


def _pieces(series: Series, width: int, *, log: bool) -> Pieces:
    """A curve cut to the width. Single points without a value leave no mark, they were only not taken."""
    known = [(x, y) for x, y in zip(series.x, series.y, strict=True) if y is not None or not series.points]
    return decimate(
        [x for x, _ in known], [None if y is None else _scaled(y, log=log) for _, y in known], width
    )


def _can_be_drawn(y: float | None, *, log: bool) -> bool:
    return y is not None and math.isfinite(_scaled(y, log=log))


def _scaled(y: float, *, log: bool) -> float:
    """The height of a value: itself, or its decimal logarithm, NaN where none can be drawn."""
    if not log:
        return y if abs(y) < HIGHEST else math.nan
    return math.log10(y) if y > 0 else math.nan


def _extent(chart: Chart) -> tuple[float, float]:
    xs = [x for series in chart.series for x in (series.x[:1] + series.x[-1:])]
    low, high = min(xs, default=0.0), max(xs, default=1.0)
    return (low, high) if high > low else (low, low + 1.0)


def _room(values: list[float]) -> tuple[float, float]:
    """Limits with a little air, so that no curve lies on the frame; a curve that is flat stays flat."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    flat = high - low <= 1e-3 * max(abs(low), abs(high))
    air = max(abs(high) * 0.05, 0.05) if flat else (high - low) * 0.06
    return low - air, high + air
