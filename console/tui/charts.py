"""Charts of a run, from its steps and its nodes' readings; what is drawn depends on the arguments only."""

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Literal

from console.core.record.events import StepLogged
from console.core.record.experiment import Experiment
from console.core.record.views import RunView
from console.tui import figures
from console.tui.figures import GIB
from console.tui.readings import Reading
from console.tui.widgets.chart_view import Chart, Level, Series
from console.tui.words import Words

ChartName = Literal["loss", "grad_norm", "step_seconds", "tokens", "memory", "power", "clock"]
BY_STEP: tuple[ChartName, ...] = ("loss", "grad_norm", "step_seconds", "tokens")
BY_TIME: tuple[ChartName, ...] = ("memory", "power", "clock")
COLOURS = ("green", "cyan", "magenta", "yellow", "blue", "red", "white", "bright_green")


def chart_of(
    name: ChartName,
    experiment: Experiment,
    run: RunView,
    readings: dict[str, Sequence[Reading]],
    words: Words,
) -> Chart:
    """The chart of that name. Those of `BY_STEP` have steps on the x axis, those of `BY_TIME` minutes."""
    if name in BY_TIME:
        return _by_time(name, experiment, run, readings, words)
    xs = tuple(float(step.step) for step in run.steps)
    ys = _values(name, experiment, run)
    series = [Series("", xs, ys, "green")]
    if name == "loss" and run.evaluations:
        evals = tuple(float(seen.step) for seen in run.evaluations)
        series.append(
            Series(
                words("chart.validation"),
                evals,
                tuple(seen.loss for seen in run.evaluations),
                "magenta",
                points=True,
            )
        )
    bad = [step for step, y in zip(xs, ys, strict=True) if y is not None and not math.isfinite(y)]
    gap_words = words("chart.not_finite", n=len(bad), step=int(bad[0])) if bad else ""
    return Chart(words(f"chart.{name}"), tuple(series), empty=words("chart.empty"), gap_words=gap_words)


def minutes(at: datetime, run: RunView) -> float:
    """Minutes since the run was planned: the x axis of the charts by time."""
    return (at - run.planned_at).total_seconds() / 60


def step_interval_seconds(steps: Sequence[StepLogged]) -> tuple[float | None, ...]:
    """Seconds per step between one logged step and the one before it; None where the log carries no clock."""
    found: list[float | None] = [None] if steps else []
    for before, after in pairwise(steps):
        if before.elapsed_seconds is None or after.elapsed_seconds is None or after.step <= before.step:
            found.append(None)
        else:
            found.append((after.elapsed_seconds - before.elapsed_seconds) / (after.step - before.step))
    return tuple(found)


def _values(name: ChartName, experiment: Experiment, run: RunView) -> tuple[float | None, ...]:
    if name == "loss":
        return tuple(step.loss for step in run.steps)
    if name == "grad_norm":
        return tuple(step.grad_norm for step in run.steps)
    seconds = step_interval_seconds(run.steps)
    if name == "step_seconds":
        return seconds
    per_step = _tokens_per_step(experiment, run)
    return tuple(per_step / s if per_step and s else None for s in seconds)


def _tokens_per_step(experiment: Experiment, run: RunView) -> float | None:
    """Samples of a step times their mean length; the mean is the framework's own figure."""
    batch = run.settings.get("global_batch", experiment.profile.settings.global_batch)
    return float(batch) * run.dataset.mean_tokens if run.dataset else None


def _by_time(
    name: ChartName,
    experiment: Experiment,
    run: RunView,
    readings: dict[str, Sequence[Reading]],
    words: Words,
) -> Chart:
    read: dict[ChartName, Callable[[Reading], float | None]] = {
        "memory": lambda r: r.used_bytes / GIB,
        "power": lambda r: r.gpu_power_watts,
        "clock": lambda r: r.gpu_sm_clock_mhz,
    }
    # Readings arrive in batches: their spacing is the node's, its clock's difference the least delay seen.
    series = []
    short = figures.short_names(run.nodes)
    for node, colour in zip(run.nodes, COLOURS * 2, strict=False):
        mine = [
            r
            for r in readings.get(node, ())
            if run.planned_at <= r.arrived_at <= (run.ended_at or r.arrived_at)
        ]
        ahead = min((r.arrived_at.timestamp() - r.at for r in mine), default=0.0)
        begun = run.planned_at.timestamp() - ahead
        values = [((r.at - begun) / 60, read[name](r)) for r in mine]
        known = [(x, y) for x, y in values if y is not None]
        series.append(Series(short[node], tuple(x for x, _ in known), tuple(y for _, y in known), colour))
    levels = _memory_levels(experiment, run, readings, words) if name == "memory" else ()
    return Chart(words(f"chart.{name}"), tuple(series), levels, empty=words("chart.empty"))


def _memory_levels(
    experiment: Experiment, run: RunView, readings: dict[str, Sequence[Reading]], words: Words
) -> tuple[Level, ...]:
    """The smallest node's total, the use at which its guard acts, and what the plan predicted."""
    totals = {node: readings[node][-1].total_bytes for node in run.nodes if readings.get(node)}
    if not totals:
        return ()
    least = min(totals, key=lambda node: totals[node])
    levels = []
    if floor := experiment.nodes[least].floor_bytes:
        levels.append(Level(words("chart.floor"), (totals[least] - floor) / GIB, "red"))
    predicted = run.settings.get("predicted_memory_bytes")
    if isinstance(predicted, int | float) and predicted > 0:
        levels.append(Level(words("chart.predicted"), predicted / GIB, "yellow"))
    levels.append(Level(words("chart.total"), totals[least] / GIB, "grey62"))
    return tuple(levels)
