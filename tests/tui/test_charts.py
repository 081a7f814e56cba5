"""Charts: cut to the width without losing extremes, with gaps where values were not finite."""

import math
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import until

from console.core.record import events as ev
from console.tui import charts
from console.tui.readings import reading_of
from console.tui.screens.runs import RunsScreen
from console.tui.widgets.chart_view import ChartView
from console.tui.widgets.decimate import decimate
from console.tui.words import Words
from tui.conftest import Opener
from tui.support import at, screen_text, story

EN = Words("en")
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


def test_a_loss_that_became_nan_is_marked_with_its_step(folder: Path) -> None:
    session = story(folder)
    step = session.experiment.runs["E1-1"].steps[-1]
    session.happen(step.model_copy(update={"step": 62, "loss": math.nan}))
    session.happen(step.model_copy(update={"step": 63, "loss": math.inf}))
    chart = charts.chart_of("loss", session.experiment, session.experiment.runs["E1-1"], {}, EN)
    assert chart.gap_words == "2 not finite, first at step 62"


def test_step_time_is_the_difference_not_the_printed_mean(folder: Path) -> None:
    steps = story(folder).experiment.runs["E1-1"].steps
    seconds = charts.step_interval_seconds(steps)
    assert seconds[0] is None
    assert all(math.isclose(s, 3.21) for s in seconds[1:] if s is not None)


def test_memory_has_total_floor_and_prediction(folder: Path) -> None:
    session = story(folder)
    run = session.experiment.runs["E1-1"]
    readings = {node: [reading_of(*one) for one in session.readings[node]] for node in run.nodes}
    chart = charts.chart_of("memory", session.experiment, run, readings, EN)
    levels = {level.name: level.y for level in chart.levels}
    assert math.isclose(levels["total"], 121.6, rel_tol=1e-3)
    assert math.isclose(levels["guard acts"], 121.6 - 12, rel_tol=1e-3)
    assert [series.name for series in chart.series] == ["a", "b"]


def test_tokens_need_the_measured_mean_length(folder: Path) -> None:
    session = story(folder)
    run = session.experiment.runs["E1-1"]
    chart = charts.chart_of("tokens", session.experiment, run, {}, EN)
    assert math.isclose(chart.series[0].y[-1] or 0.0, 16 * 512.3 / 3.21, rel_tol=1e-6)


async def test_the_cursor_reads_the_same_step_in_all_charts(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="runs", size=(120, 40)) as (pilot, app, _):
        screen = app.lab_screen
        assert isinstance(screen, RunsScreen)
        await pilot.press(*["comma"] * 11)
        await pilot.pause()
        run = session.experiment.runs["E1-1"]
        step = run.steps[-12]
        assert screen._cursor_x(run, by_time=False) == step.step
        assert screen._cursor_x(run, by_time=True) == (step.at - run.planned_at).total_seconds() / 60
        assert f"{step.loss:.3f}" in screen_text(app)


async def test_an_unchanged_chart_is_not_drawn_again(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="runs") as (_pilot, app, _):
        view = app.lab_screen.query_one("#chart-main", ChartView)
        chart = charts.chart_of("loss", session.experiment, session.experiment.runs["E1-1"], {}, EN)
        view.show(chart, cursor=None, x_range=None)
        assert not view.show(chart, cursor=None, x_range=None)
        assert view.show(chart, cursor=5.0, x_range=None)


async def test_a_run_without_any_value_draws(opened: Opener, folder: Path) -> None:
    session = story(folder, steps=0)
    session.readings.clear()
    async with opened(session, screen="runs") as (_, app, _seen):
        assert "no values yet" in screen_text(app)
        session.happen(ev.Evaluated(at=at(33), run="E1-1", step=1, loss=None, end_byte=1))
        await until(lambda: "validation" in screen_text(app), "the validation's legend")
