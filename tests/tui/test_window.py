"""What the Window screen says of a borrowed service and of the guards."""

from datetime import timedelta

from console.core.record import events as ev
from console.core.record.experiment import Experiment
from console.core.record.folding import apply, fold
from console.tui import figures
from console.tui.screens.window import node_figures, service_text
from console.tui.words import Words

from .support import at, opening

EN = Words("en")


def experiment(*events: ev.Event) -> Experiment:
    return fold([*opening(), *events])


def freed(seconds: float, source: str) -> list[ev.Event]:
    details = {"restore_seconds": seconds, "restore_source": source}
    return [
        ev.ServiceChanged(at=at(9), node="spark-b", state="stopped", words="drained"),
        ev.ServiceChanged(at=at(10), state="memory free", details=details),
    ]


def test_the_latest_start_of_the_restore_with_the_source_of_its_length() -> None:
    state = experiment(*freed(660, "measured at the last restore"))
    assert state.window_ends is not None
    by = figures.time_of_day(state.window_ends - timedelta(seconds=660))
    said = service_text(state, EN).plain
    assert (
        f"restore takes about 11 min (measured at the last restore): start by {by} to end in the window"
        in said
    )
    going = apply(state, ev.ServiceChanged(at=at(90), state="restoring"))
    assert "restore takes" not in service_text(going, EN).plain


def test_a_service_on_two_nodes_has_a_state_on_each() -> None:
    state = experiment(
        ev.ServiceChanged(at=at(9), node="spark-b", state="stopped"),
        ev.ServiceChanged(at=at(10), node="spark-a", state="not released", words="an engine process is left"),
    )
    lines = service_text(state, EN).plain.splitlines()
    assert any("spark-b" in line and "stopped" in line for line in lines)
    assert any("spark-a" in line and "an engine process is left" in line for line in lines)
    assert len(service_text(experiment(*freed(60, "profile")), EN).plain.splitlines()) == 2


def test_a_guard_at_risk_and_a_service_that_came_back_are_told() -> None:
    seen = ev.GuardSeen(
        at=at(20),
        node="spark-a",
        state="held",
        risk="logind ends a user's processes at logout here",
        came_back_at=at(19),
    )
    state = experiment(seen)
    said = node_figures(state.nodes["spark-a"], None, at(20), EN).plain
    assert f"service runs again since {figures.time_of_day(at(19))}" in said
    assert "logind ends a user's processes at logout here" in said
    renewed = apply(state, seen.model_copy(update={"risk": "", "came_back_at": None}))
    assert "service runs again" not in node_figures(renewed.nodes["spark-a"], None, at(21), EN).plain
