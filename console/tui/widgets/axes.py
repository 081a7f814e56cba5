"""Ticks of a chart: few, round, and named so that a log scale reads in the values themselves."""

import math
from collections.abc import Sequence
from itertools import pairwise

from textual_plot import AxisFormatter

from console.tui import figures

ROUND = (1.0, 2.0, 5.0, 10.0)


class RoundTicks(AxisFormatter):
    """At most `most` ticks at round values, the first one with the unit.

    With `log`, the axis holds decimal logarithms of the values.
    """

    def __init__(self, most: int, *, log: bool = False, unit: str = "") -> None:
        self._most = max(2, most)
        self._log = log
        self._unit = unit

    def get_ticks(self, min_: float, max_: float, max_ticks: int = 8) -> list[float]:
        most = min(self._most, max_ticks)
        if self._log:
            for factors in ((1, 2, 5), (1,)):
                ticks = [math.log10(value) for value in _decades(min_, max_, factors)]
                if 2 <= len(ticks) <= most:
                    return ticks
            if len(ticks) > most:
                return ticks[:: math.ceil(len(ticks) / most)]
            return [math.log10(value) for value in round_values(10**min_, 10**max_, most) if value > 0]
        return round_values(min_, max_, most)

    def get_labels_for_ticks(self, ticks: Sequence[float]) -> list[str]:
        labels = [_short(10**tick) for tick in ticks] if self._log else _labels(ticks)
        return [f"{labels[0]} {self._unit}".rstrip(), *labels[1:]] if labels else []


def round_values(low: float, high: float, most: int) -> list[float]:
    """At most `most` multiples of 1, 2 or 5 times a power of ten, from `low` to `high`."""
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    for factor in (*ROUND, *(10 * factor for factor in ROUND[1:])):
        step = factor * power
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    return [round(n * step, 12) for n in range(first, last + 1)]


def _decades(low: float, high: float, factors: Sequence[int]) -> list[float]:
    """Those values of `factors` times powers of ten whose logarithms lie from `low` to `high`."""
    powers = range(math.floor(low), math.floor(high) + 1)
    values = (factor * 10.0**power for power in powers for factor in factors)
    return [value for value in values if low <= math.log10(value) <= high]


def _labels(values: Sequence[float]) -> list[str]:
    """In at most six cells, with as many decimals as tell neighbours apart."""
    apart = min((after - before for before, after in pairwise(values)), default=0.0)
    decimals = max(0, -math.floor(math.log10(apart) + 1e-9)) if apart > 0 else 0
    return [_label(value, decimals) for value in values]


def _short(value: float) -> str:
    return figures.count(value) if value >= 1e5 else f"{value:.4g}"


def _label(value: float, decimals: int) -> str:
    if abs(value) >= 1e5:
        return figures.count(value)
    if decimals > 4:
        return f"{value:.0e}" if value else "0"
    return f"{value:.{decimals}f}" if decimals < 2 or abs(value) < 100 else f"{value:.1f}"
