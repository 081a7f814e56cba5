"""Charts of a run, from its steps and its nodes' readings; what is drawn depends on the arguments only."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Literal

from console.core.ledger.devices import Device
from console.core.ledger.of_lab import device_with_own_memory
from console.core.record.experiment import Experiment
from console.core.record.views import RunView, StepView
from console.tui import figures
from console.tui.figures import GIB
from console.tui.readings import Reading
from console.tui.widgets.chart_view import Chart, Level, Series
from console.tui.words import Words

ChartName = Literal["loss", "grad_norm", "step_seconds", "tokens", "memory", "power", "clock"]
BY_STEP: tuple[ChartName, ...] = ("loss", "grad_norm", "step_seconds", "tokens")
BETWEEN_STEPS: tuple[ChartName, ...] = ("step_seconds", "tokens")
"""Their first value belongs to the second logged step."""
BY_TIME: tuple[ChartName, ...] = ("memory", "power", "clock")
COLOURS = ("green", "cyan", "magenta", "yellow", "blue", "red", "white", "bright_green")
GAP_SPACINGS = 5
"""Readings further apart than so many usual spacings, and stale meanwhile, are not joined by a line."""
SMOOTHING = (0.0, 0.6, 0.9, 0.97)
"""Weights of the mean up to a step in its smoothed value; 0 shows the values as they are."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a chart is looked at. That of the memory is always as it is: a peak must stay what it was."""

    log: bool = False
    smoothing: float = 0.0


PLAIN = Look()


def chart_of(
    name: ChartName,
    experiment: Experiment,
    run: RunView,
    readings: Mapping[str, Sequence[Reading]],
    words: Words,
    look: Look = PLAIN,
) -> Chart:
    """The chart of that name. Those of `BY_STEP` have steps on the x axis, those of `BY_TIME` minutes."""
    if name in BY_TIME:
        return _by_time(name, experiment, run, readings, words, PLAIN if name == "memory" else look)
    first = 1 if name in BETWEEN_STEPS else 0
    xs = tuple(float(step.step) for step in run.steps[first:])
    ys = _values(name, experiment, run)[first:]
    series = [Series("", xs, ys, "grey50" if look.smoothing else "green")]
    if look.smoothing:
        smooth = tuple(ema(ys, look.smoothing))
        series.append(Series(words("chart.ema", weight=f"{look.smoothing:g}"), xs, smooth, "bold green"))
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
    return Chart(
        _title(name, words, log=look.log),
        tuple(series),
        empty=_why_empty(name, run, words),
        gap_words=_gap_words(xs, ys, words, log=look.log),
        log=look.log,
    )


def _title(name: ChartName, words: Words, *, log: bool) -> str:
    return words(f"chart.{name}") + (words("chart.log") if log else "")


def ema(ys: Iterable[float | None], weight: float) -> list[float | None]:
    """Exponential moving average without its bias to 0 at the start: what is not finite stays as it is.

    `mean = weight * mean + (1 - weight) * y`, divided by `1 - weight ** n` (Kingma and Ba 2015, Adam, 3).
    """
    mean, n, smooth = 0.0, 0, list[float | None]()
    for y in ys:
        if y is None or not math.isfinite(y):
            smooth.append(y)
            continue
        n += 1
        mean = weight * mean + (1 - weight) * y
        smooth.append(mean / (1 - weight**n))
    return smooth


def _gap_words(xs: Sequence[float], ys: Sequence[float | None], words: Words, *, log: bool) -> str:
    """How many values could not be drawn, and where the first of them is."""
    known = [(x, y) for x, y in zip(xs, ys, strict=True) if y is not None]
    bad = [x for x, y in known if not math.isfinite(y)]
    low = [x for x, y in known if log and math.isfinite(y) and y <= 0]
    found = [("chart.not_finite", bad), ("chart.not_positive", low)]
    return " · ".join(words(key, n=len(at), step=int(at[0])) for key, at in found if at)


def _why_empty(name: ChartName, run: RunView, words: Words) -> str:
    if name == "tokens" and run.steps and run.dataset is None:
        return words("chart.no_lengths")
    if name in BETWEEN_STEPS and run.steps:
        return words("chart.no_clock")
    return words("chart.not_in_steps" if run.steps else "chart.no_steps")


def newest_at(name: ChartName, run: RunView, readings: Mapping[str, Sequence[Reading]]) -> datetime | None:
    """When the chart's newest value came; of several nodes' the one that came least recently."""
    if name in BY_STEP:
        return run.steps[-1].at if run.steps else None
    return min((readings[node][-1].arrived_at for node in run.nodes if readings.get(node)), default=None)


def minutes(at: datetime, run: RunView) -> float:
    """Minutes since the run was planned: the x axis of the charts by time."""
    return (at - run.planned_at).total_seconds() / 60


def step_interval_seconds(steps: Sequence[StepView]) -> tuple[float | None, ...]:
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
    readings: Mapping[str, Sequence[Reading]],
    words: Words,
    look: Look,
) -> Chart:
    device = device_with_own_memory(experiment.profile) if name == "memory" else None
    read: dict[ChartName, Callable[[Reading], float | None]] = {
        "memory": lambda r: _memory_gib(r, on_device=device is not None),
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
        drawn = _with_gaps([(x, y) for x, y in values if y is not None])
        series.append(Series(short[node], tuple(x for x, _ in drawn), tuple(y for _, y in drawn), colour))
    title = _title(name, words, log=look.log)
    if look.smoothing:
        raw = [replace(one, style="grey50", quiet=True) for one in series]
        smooth = [
            replace(one, y=tuple(ema(one.y, look.smoothing)), style=f"bold {one.style}") for one in series
        ]
        series, title = raw + smooth, title + words("chart.smoothed", weight=f"{look.smoothing:g}")
    levels: tuple[Level, ...] = ()
    if name == "memory":
        levels = _memory_levels(experiment, run, readings, words, device)
    return Chart(
        words("chart.device_memory") if device else title,
        tuple(series),
        levels,
        empty=_why_no_readings(name, run, readings, words),
        x_unit=words("chart.minutes"),
        reach=figures.STALE_SECONDS / 60,
        log=look.log,
    )


def _with_gaps(known: Sequence[tuple[float, float]]) -> list[tuple[float, float | None]]:
    """Readings with a gap wherever one came much later than they usually do: nothing is known in between."""
    apart = [after - before for (before, _), (after, _) in pairwise(known)]
    most = max(figures.STALE_SECONDS / 60, GAP_SPACINGS * median(apart)) if apart else 0.0
    drawn: list[tuple[float, float | None]] = [*known[:1]]
    for (before, _), (after, y) in pairwise(known):
        if after - before > most:
            drawn.append(((before + after) / 2, None))
        drawn.append((after, y))
    return drawn


def _why_no_readings(
    name: ChartName, run: RunView, readings: Mapping[str, Sequence[Reading]], words: Words
) -> str:
    newest = [readings[node][-1] for node in run.nodes if readings.get(node)]
    missing = next((reading.gpu_missing for reading in newest if reading.gpu_missing), None)
    if name != "memory" and missing:
        return words("chart.no_gpu", why=missing)
    return words("chart.no_readings")


def _memory_gib(reading: Reading, *, on_device: bool) -> float | None:
    if not on_device:
        return reading.used_bytes / GIB
    return None if reading.gpu_bytes is None else reading.gpu_bytes / GIB


def _memory_levels(
    experiment: Experiment,
    run: RunView,
    readings: Mapping[str, Sequence[Reading]],
    words: Words,
    device: Device | None,
) -> tuple[Level, ...]:
    """The total, what the plan predicted, and in the machine's own memory the use at which a guard acts.

    The total is that of the smallest node.
    """
    totals = {node: readings[node][-1].total_bytes for node in run.nodes if readings.get(node)}
    if not totals:
        return ()
    least = min(totals, key=lambda node: totals[node])
    total = device.memory_bytes if device else totals[least]
    floor = None if device else experiment.nodes[least].floor_bytes
    levels = []
    if floor:
        levels.append(Level(words("chart.floor"), (total - floor) / GIB, "red"))
    predicted = run.settings.get("predicted_memory_bytes")
    if isinstance(predicted, int | float) and predicted > 0:
        levels.append(Level(words("chart.predicted"), predicted / GIB, "yellow"))
    levels.append(Level(words("chart.total"), total / GIB, "grey62"))
    return tuple(levels)
