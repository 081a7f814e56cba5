"""How long an experiment should take, from what the profile and the ledger know; nothing is guessed."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from console.core.ledger.of_lab import prediction_of
from console.core.plan.checklist import Checklist
from console.core.plan.matrix import Configuration, Settings, effective_settings
from console.core.plan.profile import Profile, Window
from console.core.plan.service import NoService, for_node, start_order

STARTUP_SECONDS = 300.0
"""Allowed per run for imports, loading the model, the data set and the last checkpoint; not a prediction."""

BASIS = "step times as predicted for rows that fill max_length; shorter rows take less"

_COUNTED = re.compile(r"#(\d+)$", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunTime:
    """One configuration: start-up allowance and training, in seconds. `unknown` says what is missing."""

    config: str
    steps: int | None
    startup_seconds: float
    seconds: float | None
    low: float | None
    high: float | None
    unknown: str


@dataclass(frozen=True, slots=True)
class LabTime:
    """The whole lab against its window; times in seconds.

    `seconds` is what is known: the allowances, training that could be predicted, and the service's restore
    where the profile says how long that takes; `high` has the longest restore that the profile allows. It is
    the whole only where `unknown` is empty.
    """

    checklist_seconds: float
    runs: tuple[RunTime, ...]
    restore_seconds: float
    restore_at_most_seconds: float
    seconds: float
    low: float
    high: float
    unknown: tuple[str, ...]
    window_seconds: float | None

    @property
    def fit(self) -> Literal["fits", "may not fit", "does not fit"] | None:
        """None: there is no window, or too much is unknown to say."""
        if self.window_seconds is None:
            return None
        if self.seconds > self.window_seconds:
            return "does not fit"
        if self.high > self.window_seconds:
            return "may not fit"
        return None if self.unknown else "fits"


def lab_time(
    profile: Profile,
    configs: Sequence[Configuration],
    checklist: Checklist,
    window_hours: float | None = None,
) -> LabTime:
    """The checklist's box, every run, and the restore. Raises `InputError` for settings that are none."""
    runs = tuple(_run_time(profile, config) for config in configs)
    restore, restore_at_most = _restore_seconds(profile)
    fixed = checklist.box_seconds + restore
    return LabTime(
        checklist_seconds=checklist.box_seconds,
        runs=runs,
        restore_seconds=restore,
        restore_at_most_seconds=restore_at_most,
        seconds=fixed + sum(run.seconds or run.startup_seconds for run in runs),
        low=fixed + sum(run.low or run.startup_seconds for run in runs),
        high=checklist.box_seconds + restore_at_most + sum(run.high or run.startup_seconds for run in runs),
        unknown=_reasons(runs),
        window_seconds=_window_seconds(profile.window, window_hours),
    )


def _reasons(runs: Sequence[RunTime]) -> tuple[str, ...]:
    """What is not known, each once with the configurations it holds for."""
    found: dict[str, list[str]] = {}
    for run in runs:
        if run.unknown:
            found.setdefault(run.unknown, []).append(run.config)
    return tuple(f"{', '.join(configs)}: {why}" for why, configs in found.items())


def _run_time(profile: Profile, config: Configuration) -> RunTime:
    steps, unknown = steps_of(profile, config)
    step = prediction_of(profile, config).step_seconds
    reasons = [unknown] if unknown else []
    if step.number is None:
        reasons.append(f"no step time: {step.missing}")
    number, low, high = (
        None if steps is None or value is None else STARTUP_SECONDS + steps * value
        for value in (step.number, step.low, step.high)
    )
    return RunTime(config.id, steps, STARTUP_SECONDS, number, low, high, "; ".join(reasons))


def steps_of(profile: Profile, config: Configuration) -> tuple[int | None, str]:
    """Optimizer steps of a run, or None and what is not known.

    Of an epoch that does not divide, `swift sft` trains the rest and `megatron sft` leaves it out.
    """
    settings = effective_settings(profile.settings, config)
    if settings.max_steps is not None:
        return settings.max_steps, ""
    if settings.packing:
        return None, "no number of steps: with packing it depends on the rows' lengths"
    rows = _rows(profile)
    if rows is None:
        return None, "no number of steps: a data set without #count, so its rows are not known"
    return _epoch_steps(config, settings, rows), ""


def _epoch_steps(config: Configuration, settings: Settings, rows: int) -> int:
    assert settings.epochs is not None
    if config.mode == "swift":
        return math.ceil(math.ceil(rows / settings.global_batch) * settings.epochs)
    at_once = settings.micro_batch * config.data_parallel
    return int(rows // at_once * at_once * settings.epochs // settings.global_batch)


def _rows(profile: Profile) -> int | None:
    """Training rows: the counts of the sources, or what is built beside a tiny model."""
    counts = [_COUNTED.search(source) for source in profile.dataset.sources]
    built = profile.model.build
    found = [int(count[1]) if count else built.rows if built else None for count in counts]
    known = [count for count in found if count is not None]
    return int(sum(known) * (1 - profile.dataset.split_ratio)) if len(known) == len(found) else None


def _restore_seconds(profile: Profile) -> tuple[float, float]:
    """Bringing the service back, node after node: what the profile expects (0: not said), and allows."""
    nodes = start_order(profile.service, [node.name for node in profile.nodes])
    services = [for_node(profile.service, node) for node in nodes]
    times = [
        (one.restore_seconds or 0.0, one.restore_seconds or one.ready_timeout_seconds)
        for one in services
        if not isinstance(one, NoService)
    ]
    return sum(expected for expected, _ in times), sum(longest for _, longest in times)


def _window_seconds(window: Window, hours: float | None) -> float | None:
    hours = hours if hours is not None else window.hours
    if hours is not None:
        return hours * 3600
    if window.start is not None and window.end is not None:
        return (window.end - window.start).total_seconds()
    return None
