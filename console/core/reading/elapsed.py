"""The framework's clock, recovered from its cumulative mean.

`train_speed(s/it)` is elapsed / (step - start_step), so elapsed = speed x (step - start_step). Only the start
step is not printed: it is 0, or the checkpoint's step after a resume. `elapsed_time` is the same number in
whole seconds (rounded in 4.x, cut off in 3.x), which tells the two cases apart.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

EARLY, LATE = 0.51, 1.01
"""The true time lies between the printed whole seconds less EARLY and plus LATE."""


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Seconds since the start of training, exact within `half_width`."""

    seconds: float
    half_width: float


@dataclass(frozen=True, slots=True)
class StartStep:
    """Smallest and largest start step that the lines seen so far allow, and the likeliest one."""

    low: int
    high: int
    best: int


Observation = tuple[int, float | None, float | None]
"""step, printed mean in s/it, printed elapsed in whole seconds"""


def start_step(observations: Iterable[Observation], hint: int | None = None) -> StartStep:
    """Where counting began. `hint`: the step of the checkpoint that was resumed, if known."""
    low, high = 0, None
    for step, speed, printed in observations:
        high = step - 1 if high is None else min(high, step - 1)
        if not speed or printed is None or not math.isfinite(speed) or speed <= 0:
            continue
        most = math.floor((printed + LATE) / speed)
        least = max(1, math.ceil((printed - EARLY) / speed))
        lower, upper = max(low, step - most), min(high, step - least)
        if lower <= upper:
            low, high = lower, upper
    high = max(low, high if high is not None else 0)
    if hint is not None and low <= hint <= high:
        return StartStep(low, high, hint)
    return StartStep(low, high, 0 if low == 0 else (low + high) // 2)


def elapsed(
    step: int, start: int, speed: float | None, speed_half_width: float | None, printed: float | None
) -> Elapsed | None:
    """The best of the mean times the steps and the printed whole seconds; None if neither is there."""
    if speed is None or not math.isfinite(speed) or speed <= 0:
        return None if printed is None else Elapsed(printed, LATE)
    steps = max(0, step - start)
    seconds, half = speed * steps, (speed_half_width or 0.0) * steps
    if printed is not None and half > LATE:
        low, high = max(seconds - half, printed - EARLY), min(seconds + half, printed + LATE)
        if low <= high:
            return Elapsed((low + high) / 2, (high - low) / 2)
    return Elapsed(seconds, half)
