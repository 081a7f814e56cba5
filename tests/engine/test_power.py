"""Mean power of a run's devices: only readings while steps were made, only of nodes that have enough."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from console.engine.power import LEAST_READINGS, mean_power

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def at(second: float) -> datetime:
    return BEGAN + timedelta(seconds=second)


def recorder(**watts: dict[int, float | None]) -> Any:
    """Readings by node and second; steps after the second are warm."""

    def samples(node: str, since: datetime, until: datetime) -> list[tuple[datetime, Any]]:
        return [
            (at(second), SimpleNamespace(gpu_power_watts=value))
            for second, value in watts.get(node, {}).items()
            if since <= at(second) <= until
        ]

    profile = SimpleNamespace(warmup_steps=2)
    return SimpleNamespace(
        experiment=SimpleNamespace(profile=profile), journal=SimpleNamespace(samples=samples)
    )


def run(*seconds: float) -> Any:
    steps = tuple(SimpleNamespace(step=number, at=at(second)) for number, second in enumerate(seconds, 1))
    return SimpleNamespace(steps=steps, nodes=("a", "b"))


def test_the_mean_is_over_the_steps_after_warm_up() -> None:
    drawn = {second: 100.0 if second < 20 or second > 30 else 200.0 + second % 2 for second in range(40)}
    found = mean_power(recorder(a=drawn), run(5, 10, 20, 25, 30))
    assert found.keys() == {"a"}
    assert found["a"].value == pytest.approx(200 + 5 / 11)
    assert "11 readings at 1 Hz, steps 3 to 5" in found["a"].sources[0].words


def test_too_few_readings_say_nothing() -> None:
    few = {20 + n: 300.0 for n in range(LEAST_READINGS - 1)}
    assert mean_power(recorder(a=few, b=dict.fromkeys(range(20, 40), None)), run(5, 10, 20, 40)) == {}


def test_a_run_without_warm_steps_has_none() -> None:
    assert mean_power(recorder(a=dict.fromkeys(range(40), 300.0)), run(5, 10)) == {}
