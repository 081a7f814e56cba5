"""Charts: cut to the width without losing extremes, with gaps where values were not finite."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import until
from textual.app import App, ComposeResult
from textual_plot import PlotWidget

from console.core.record import events as ev
from console.engine.replay import ReadSession
from console.tui import charts
from console.tui.readings import Reading, reading_of
from console.tui.screens.runs import RunsScreen
from console.tui.widgets.axes import RoundTicks
from console.tui.widgets.chart_view import Chart, ChartView, Reader, Series, _between, _pieces, _reading
from console.tui.widgets.decimate import decimate
from console.tui.words import Words
from tui.conftest import Opener
from tui.support import FakeSession, at, sample, screen_text, story

EN = Words("en")
EXAMPLE = Path(__file__).parents[2] / "examples" / "h200-pair"
values = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))


@given(st.lists(values, max_size=300), st.integers(1, 60))
def test_decimation_keeps_extremes_and_order_and_counts_gaps(ys: list[float | None], width: int) -> None:
    xs = list(range(len(ys)))
    pieces = decimate(xs, ys, width)
    finite = [y for y in ys if y is not None and math.isfinite(y)]
    assert len(pieces.gaps) == len(ys) - len(finite)
    drawn = [y for _, piece in pieces.curves for y in piece]
    if finite:
        assert (min(drawn), max(drawn)) == (min(finite), max(finite))
    for x, _ in pieces.curves:
        assert (np.diff(x) > 0).all()
        inside = range(int(x[0]), int(x[-1]) + 1)
        assert not set(pieces.gaps.astype(int)) & set(inside), "no curve is drawn over a gap"
    assert len(drawn) <= 2 * (width + 2 * len(pieces.curves))


def logged(step: int, loss: float) -> ev.StepLogged:
    """One more step of the run that is under way."""
    return ev.StepLogged(
        at=at(33), run="E1-1", step=step, total=93, loss=loss, grad_norm=1.0, start_byte=0, end_byte=1, line=1
    )


def test_a_loss_that_became_nan_is_marked_with_its_step(folder: Path) -> None:
    session = story(folder)
    session.happen(logged(62, math.nan), logged(63, math.inf))
    chart = charts.chart_of("loss", session.experiment, session.experiment.runs["E1-1"], {}, EN)
    assert chart.gap_words == "2 not finite, first at step 62"


@pytest.mark.parametrize("loss", [1e308, -1e308])
async def test_a_loss_at_the_end_of_the_numbers_ends_no_screen(
    opened: Opener, folder: Path, loss: float
) -> None:
    session = story(folder)
    session.happen(logged(62, loss))
    async with opened(session, screen="runs") as (_, app, _seen):
        assert "62/93" in screen_text(app)


def test_step_time_is_the_difference_not_the_printed_mean(folder: Path) -> None:
    steps = story(folder).experiment.runs["E1-1"].steps
    seconds = charts.step_interval_seconds(steps)
    assert seconds[0] is None
    assert all(math.isclose(s, 3.21) for s in seconds[1:] if s is not None)


def readings_of(session: FakeSession) -> dict[str, list[Reading]]:
    """All readings of all nodes as charts take them."""
    return {node: [reading_of(*one) for one in found] for node, found in session.readings.items()}


def test_memory_has_total_floor_and_prediction(folder: Path) -> None:
    session = story(folder)
    run = session.experiment.runs["E1-1"]
    chart = charts.chart_of("memory", session.experiment, run, readings_of(session), EN)
    levels = {level.name: level.y for level in chart.levels}
    assert math.isclose(levels["total"], 121.6, rel_tol=1e-3)
    assert math.isclose(levels["guard acts"], 121.6 - 12, rel_tol=1e-3)
    assert [series.name for series in chart.series] == ["a", "b"]


def test_a_device_with_memory_of_its_own_is_charted_by_what_the_driver_lists(folder: Path) -> None:
    """Beside the machine's memory the prediction, which is of the device's, would say nothing."""
    session = ReadSession(EXAMPLE)
    run = session.experiment.runs["E1-1"]
    readings = {node: [reading_of(*one) for one in session.samples(node)] for node in run.nodes}
    chart = charts.chart_of("memory", session.experiment, run, readings, EN)
    assert chart.title == "GPU memory, GiB"
    assert {level.name for level in chart.levels} == {"total", "predicted"}
    total = next(level.y for level in chart.levels if level.name == "total")
    assert 125 < total < 142, "an H200's, not the host's 252"
    assert max(y for y in chart.series[0].y if y is not None) == pytest.approx(42.3, abs=0.1)


def test_tokens_need_the_measured_mean_length(folder: Path) -> None:
    session = story(folder)
    run = session.experiment.runs["E1-1"]
    chart = charts.chart_of("tokens", session.experiment, run, {}, EN)
    assert math.isclose(chart.series[0].y[-1] or 0.0, 16 * 512.3 / 3.21, rel_tol=1e-6)
    assert None not in chart.series[0].y, "before the second step there is nothing to be missing"


@given(st.lists(values, max_size=60), st.sampled_from([0.6, 0.9, 0.97]))
def test_smoothing_keeps_gaps_and_stays_between_the_extremes(ys: list[float | None], weight: float) -> None:
    ys = [y if y is None or not math.isfinite(y) else math.fmod(y, 1e6) for y in ys]
    smooth = charts.ema(ys, weight)
    finite = [y for y in ys if y is not None and math.isfinite(y)]
    for y, s in zip(ys, smooth, strict=True):
        if y is None or not math.isfinite(y):
            assert s is y or (s is not None and y is not None and math.isnan(s) == math.isnan(y))
        else:
            assert s is not None
            assert min(finite) - 1e-3 <= s <= max(finite) + 1e-3


def test_smoothing_starts_at_the_first_value_and_lags_behind() -> None:
    smooth = charts.ema([2.0, 2.0, 1.0], 0.9)
    assert smooth[:2] == [pytest.approx(2.0), pytest.approx(2.0)]
    assert 1.0 < (smooth[2] or 0.0) < 2.0


def test_a_smoothed_curve_is_named_and_the_raw_one_stays(folder: Path) -> None:
    session = story(folder)
    run = session.experiment.runs["E1-1"]
    look = charts.Look(smoothing=0.9)
    raw, smooth = charts.chart_of("loss", session.experiment, run, {}, EN, look).series
    assert raw.y == tuple(step.loss for step in run.steps)
    assert raw.name == ""
    assert smooth.name == "EMA 0.9"
    assert smooth.y[-1] != raw.y[-1]


def test_a_log_axis_makes_gaps_of_what_has_no_logarithm_and_says_so(folder: Path) -> None:
    session = story(folder)
    session.happen(logged(62, 0.0))
    run = session.experiment.runs["E1-1"]
    chart = charts.chart_of("loss", session.experiment, run, {}, EN, charts.Look(log=True))
    assert chart.title == "loss, log"
    assert chart.gap_words == "1 not above 0, first at step 62"
    pieces = _pieces(chart.series[0], 100, log=True)
    assert list(pieces.gaps) == [62.0]
    assert pieces.curves[0][1][0] == pytest.approx(math.log10(run.steps[0].loss or 0.0))


async def test_log_axis_and_smoothing_are_told_in_the_title(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="runs") as (pilot, app, _):
        await pilot.press("l", "a")
        await until(lambda: "loss, log" in screen_text(app), "the axis in the title")
        last = session.experiment.runs["E1-1"].steps[-1]
        assert f"━ {last.loss:.3f}  ━EMA 0.6 " in screen_text(app), "the raw value first"
        await pilot.press("a", "a", "a", "l")
        await until(lambda: "EMA" not in screen_text(app) and "log  " not in screen_text(app), "neither")
        await pilot.press("c", "c", "c", "c", "a")
        await until(lambda: "GPU power, W, EMA 0.6" in screen_text(app), "a chart by time is smoothed too")
        assert "memory, GiB  ━" in screen_text(app), "that of the memory beside it is not"


@pytest.mark.parametrize("name", ["power", "clock"])
def test_charts_by_time_are_smoothed_over_their_grey_values(folder: Path, name: charts.ChartName) -> None:
    session = story(folder)
    run, readings = session.experiment.runs["E1-1"], readings_of(session)
    plain = charts.chart_of(name, session.experiment, run, readings, EN)
    smoothed = charts.chart_of(name, session.experiment, run, readings, EN, charts.Look(smoothing=0.9))
    raw, smooth = smoothed.series[:2], smoothed.series[2:]
    assert [one.y for one in raw] == [one.y for one in plain.series]
    assert all(one.quiet and one.style == "grey50" for one in raw)
    assert [one.name for one in smooth] == ["a", "b"]
    assert [one.y for one in smooth] == [tuple(charts.ema(one.y, 0.9)) for one in raw]


def test_the_chart_of_the_memory_is_never_smoothed(folder: Path) -> None:
    session = story(folder)
    run, readings = session.experiment.runs["E1-1"], readings_of(session)
    plain = charts.chart_of("memory", session.experiment, run, readings, EN)
    assert charts.chart_of("memory", session.experiment, run, readings, EN, charts.Look(True, 0.9)) == plain


async def test_levels_are_named_on_their_lines(opened: Opener, folder: Path) -> None:
    session = story(folder)
    run = session.experiment.runs["E1-1"]
    planned = ev.RunPlanned(
        at=run.planned_at,
        run="E2-1",
        config="E2",
        attempt=1,
        purpose="matrix",
        launches=run.launches,
        log_node=run.log_node,
        settings={"predicted_memory_bytes": 60 << 30},
    )
    session.happen(planned)
    async with opened(session, screen="runs") as (pilot, app, _):
        await until(lambda: "predicted 60" in screen_text(app), "what the plan predicted")
        assert "total 122" in screen_text(app)
        assert "guard acts 110" in screen_text(app)
        await pilot.press("L")
        await until(lambda: "总量 122" in screen_text(app), "wide letters too")


def test_readings_that_stayed_away_leave_a_gap(folder: Path) -> None:
    session = story(folder)
    run = session.experiment.runs["E1-1"]
    readings = {node: [reading_of(*one) for one in session.readings[node]] for node in run.nodes}
    lost = readings["spark-a"][-30:-15]
    readings["spark-a"] = [one for one in readings["spark-a"] if one not in lost]
    a, b = charts.chart_of("memory", session.experiment, run, readings, EN).series
    assert a.y.count(None) == 1
    assert None not in b.y


@pytest.mark.parametrize(
    ("chart", "change", "words"),
    [
        ("loss", {"steps": 0}, "no step was logged"),
        ("loss", {"losses": None}, "the logged steps have none"),
        ("tokens", {"dataset": None}, "mean tokens per sample"),
        ("step_seconds", {"steps": 1}, "two steps with the elapsed time"),
    ],
)
def test_an_empty_chart_says_why(folder: Path, chart: str, change: dict[str, int], words: str) -> None:
    session = story(folder, steps=change.get("steps", 61))
    run = session.experiment.runs["E1-1"]
    run = replace(run, dataset=None) if "dataset" in change else run
    if "losses" in change:
        run = replace(run, steps=tuple(replace(step, loss=None) for step in run.steps))
    assert words in charts.chart_of(chart, session.experiment, run, {}, EN).empty  # type: ignore[arg-type]


def test_gpu_charts_say_why_there_are_no_figures(folder: Path) -> None:
    session = story(folder)
    run = session.experiment.runs["E1-1"]
    moment, without = sample(1, session.clock, 10.0)
    found = reading_of(moment, without.model_copy(update={"gpu_missing": "no NVML on this node"}))
    readings = {node: [found] for node in run.nodes}
    chart = charts.chart_of("power", session.experiment, run, readings, EN)
    assert chart.empty == "no values: no NVML on this node"


@given(st.floats(-9e4, 9e4), st.floats(0.01, 1.0), st.integers(2, 8))
def test_ticks_are_few_inside_and_told_apart(low: float, size: float, most: int) -> None:
    size = size * max(abs(low), 0.1)
    ticks = RoundTicks(most)
    places = ticks.get_ticks(low, low + size)
    assert 1 <= len(places) <= most
    assert all(low - 1e-6 * size <= place <= low + 1.000001 * size for place in places)
    labels = ticks.get_labels_for_ticks(places)
    assert len(set(labels)) == len(labels)
    assert max(map(len, labels)) <= 7


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.1, 12.0, ["0.1", "1", "10"]),
        (0.4, 12.0, ["0.5", "1", "2", "5", "10"]),
        (1e-3, 1e3, ["0.001", "0.1", "10", "1000"]),
        (1.0, 1.3, ["1", "1.1", "1.2", "1.3"]),
    ],
)
def test_a_log_axis_is_labelled_with_the_values_themselves(
    low: float, high: float, labels: list[str]
) -> None:
    ticks = RoundTicks(5, log=True)
    assert ticks.get_labels_for_ticks(ticks.get_ticks(math.log10(low), math.log10(high))) == labels


async def test_the_cursor_reads_the_same_step_in_all_charts(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="runs", size=(120, 40)) as (pilot, app, _):
        screen = app.lab_screen
        assert isinstance(screen, RunsScreen)
        await pilot.press(*["comma"] * 11)
        await pilot.pause()
        run = session.experiment.runs["E1-1"]
        step = run.steps[-12]
        by_step, by_time = (screen.charts.reader(run, EN, by_time=wanted) for wanted in (False, True))
        assert by_step == Reader(step.step, f"step {step.step}")
        assert by_time == Reader((step.at - run.planned_at).total_seconds() / 60, f"step {step.step}")
        assert f"{step.loss:.3f}" in screen_text(app)
        assert screen_text(app).count(f"step {step.step}") == 2, "either chart says where it is read"


def test_a_cursor_reads_no_neighbour_in_place_of_a_missing_value() -> None:
    series = Series("", (1.0, 2.0, 5.0), (4.0, 3.0, 2.0))
    assert _reading(series, Reader(2.0, ""), 0.0) == 3.0
    assert _reading(series, Reader(3.0, ""), 0.0) is None
    assert _reading(series, Reader(2.1, ""), 0.2) == 3.0
    assert _reading(series, None, 0.0) == 2.0


def test_a_zoomed_curve_reaches_both_edges_and_fills_the_height() -> None:
    whole = Series("", tuple(map(float, range(100))), tuple(float(100 - n) for n in range(100)))
    part = _between(whole, 40.0, 60.0)
    assert (part.x[0], part.x[-1]) == (39.0, 61.0)
    assert max(y for y in part.y if y is not None) == 61.0, "what is out of sight does not press it flat"


async def test_an_unchanged_chart_is_not_drawn_again(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="runs") as (_pilot, app, _):
        view = app.lab_screen.query_one("#chart-main", ChartView)
        chart = charts.chart_of("loss", session.experiment, session.experiment.runs["E1-1"], {}, EN)
        view.show(chart, cursor=None, x_range=None)
        assert not view.show(chart, cursor=None, x_range=None)
        assert view.show(chart, cursor=Reader(5.0, "step 5"), x_range=None)


async def test_a_run_without_any_value_draws(opened: Opener, folder: Path) -> None:
    session = story(folder, steps=0)
    session.readings.clear()
    async with opened(session, screen="runs") as (_, app, _seen):
        assert "no values yet" in screen_text(app)
        session.happen(ev.Evaluated(at=at(33), run="E1-1", step=1, loss=None, end_byte=1))
        await until(lambda: "validation" in screen_text(app), "the validation's legend")


async def test_a_chart_without_values_draws_no_axis() -> None:
    class Alone(App[None]):
        def compose(self) -> ComposeResult:
            yield ChartView()

    app = Alone()
    async with app.run_test(size=(60, 20)) as pilot:
        view, plot = app.query_one(ChartView), app.query_one(PlotWidget)
        assert not plot.display, "nothing was shown yet"
        for ys in ((), (None, None)):
            series = Series("", tuple(range(len(ys))), ys)
            view.show(Chart("loss", (series,), empty="no steps yet"), cursor=None, x_range=None)
            await pilot.pause()
            assert not plot.display
            assert "no steps yet" in screen_text(app)
        not_finite = Series("", (1.0,), (math.nan,))
        chart = Chart("loss", (not_finite,), empty="no steps yet", gap_words="1 not finite")
        view.show(chart, cursor=None, x_range=None)
        await pilot.pause()
        assert "1 not finite" in screen_text(app)
        assert "no steps yet" not in screen_text(app)
        view.show(Chart("loss", (Series("", (1.0,), (2.0,)),)), cursor=None, x_range=None)
        assert plot.display
