"""How long a lab should take: what is known is added up, what is not known is named."""

from pathlib import Path
from typing import Any

import pytest

from console.core.ledger.of_lab import prediction_of
from console.core.plan.checklist import Checklist, parse_checklist
from console.core.plan.profile import Profile, parse_profile
from console.engine.duration import STARTUP_SECONDS, LabTime, lab_time, steps_of

ROOT = Path(__file__).parents[2]


def lab(name: str, **change: Any) -> Profile:
    file = ROOT / "profiles" / f"{name}.yaml"
    profile = parse_profile(file.read_text(encoding="utf-8"), file=file.name)
    return Profile.model_validate(profile.model_dump() | change)


def with_settings(profile: Profile, **change: Any) -> Profile:
    return profile.model_copy(update={"settings": profile.settings.model_copy(update=change)})


def checklist() -> Checklist:
    file = ROOT / "checklists" / "smoke.yaml"
    return parse_checklist(file.read_text(encoding="utf-8"), file=file.name)


def time(profile: Profile, *ids: str, window_hours: float | None = None) -> LabTime:
    configs = [profile.configuration(config) for config in ids]
    return lab_time(profile, configs, checklist(), window_hours)


@pytest.mark.parametrize(("config", "steps"), [("E0", 93), ("E1", 93), ("D0", 94)])
def test_megatron_leaves_the_rest_of_an_epoch_out_and_swift_trains_it(config: str, steps: int) -> None:
    profile = lab("spark-pair")
    assert steps_of(profile, profile.configuration(config)) == (steps, "")


def test_a_tiny_models_rows_are_those_built_with_it() -> None:
    profile = lab("embedded")
    assert steps_of(profile, profile.configuration("E0")) == (20, "")
    assert steps_of(profile, profile.configuration("G1")) == (40, "")


def test_steps_that_nobody_knows_are_not_guessed() -> None:
    profile = lab("spark-pair", dataset={"sources": ["some/data#500", "some/other"]})
    steps, why = steps_of(profile, profile.configuration("E0"))
    assert steps is None
    assert "without #count" in why
    packed = with_settings(lab("spark-pair"), packing=True)
    steps, why = steps_of(packed, packed.configuration("E0"))
    assert steps is None
    assert "packing" in why
    given = with_settings(packed, epochs=None, max_steps=7)
    assert steps_of(given, given.configuration("E0")) == (7, "")


def test_the_whole_is_the_sum_of_its_parts() -> None:
    profile = lab("h200-pair")
    found = time(profile, "E0", "E1")
    steps = [prediction_of(profile, profile.configuration(config)).step_seconds for config in ("E0", "E1")]
    trained = sum(20 * step.number for step in steps if step.number is not None)
    assert found.seconds == pytest.approx(2400 + 2 * STARTUP_SECONDS + trained)
    assert found.high - found.restore_at_most_seconds > found.seconds
    assert found.restore_at_most_seconds == 60
    assert found.unknown == ()
    assert found.fit == "fits"


@pytest.mark.parametrize(
    ("hours", "fit"), [(0.75, "does not fit"), (0.78, "may not fit"), (2, "fits"), (72, "fits")]
)
def test_the_window_is_compared_with_the_whole_band(hours: float, fit: str) -> None:
    assert time(lab("h200-pair"), "E0", window_hours=hours).fit == fit


def test_a_step_time_that_is_not_known_is_named_once_and_leaves_the_fit_open() -> None:
    found = time(lab("embedded"), "E0", "E1")
    assert found.unknown == ("E0, E1: no step time: the profile names no device",)
    assert [run.seconds for run in found.runs] == [None, None]
    assert found.fit is None
    assert time(lab("embedded"), "E0", "E1", window_hours=0.5).fit == "does not fit"


def test_without_a_window_nothing_is_compared() -> None:
    found = time(lab("h200-pair", window={}), "E0")
    assert found.window_seconds is None
    assert found.fit is None


def test_a_restore_that_the_profile_knows_counts_for_every_node() -> None:
    profile = lab("spark-pair")
    known = profile.service.model_copy(update={"restore_seconds": 600.0})
    found = time(profile.model_copy(update={"service": known}), "E0")
    assert (found.restore_seconds, found.restore_at_most_seconds) == (1200, 1200)
    assert time(profile, "E0").restore_at_most_seconds == 7200
