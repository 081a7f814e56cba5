"""An experiment's state from its events: how each of them changes it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from console.core.errors import NotAJournal
from console.core.plan.checklist import ItemState
from console.core.record import events as ev
from console.core.record.experiment import Experiment
from console.core.record.timeline import line_of
from console.core.record.views import (
    ActiveFinding,
    DecisionView,
    JobView,
    RunView,
    ServiceOnNode,
    ServiceView,
    StepView,
)

TIMELINE_LINES = 200


def fold(events: Iterable[ev.Event]) -> Experiment:
    """The state after all of `events`. Raises `NotAJournal` when the first does not open an experiment."""
    stream = iter(events)
    first = next(stream, None)
    if not isinstance(first, ev.ExperimentOpened):
        raise NotAJournal(
            "this journal does not begin with the opening of an experiment",
            why=f"its first event is {first.kind!r}" if first else "it has no event",
            next_step="use a complete copy of it",
        )
    experiment = Experiment.opened(first)
    for event in stream:
        experiment = apply(experiment, event)
    return experiment


def apply(experiment: Experiment, event: ev.Event) -> Experiment:
    """The state after `event`."""
    changed = _APPLY[type(event)](experiment, event)
    if experiment.outcome is None:
        changed["last_at"] = max(experiment.last_at, event.at)
    if line := line_of(event):
        changed["timeline"] = (*experiment.timeline[-(TIMELINE_LINES - 1) :], line)
    return replace(experiment, **changed)


Changes = dict[str, Any]


def _with(mapping: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    return {**mapping, key: value}


def _node(state: Experiment, event: ev.Event, /, **changes: Any) -> Changes:
    assert event.node is not None
    return {"nodes": _with(state.nodes, event.node, replace(state.nodes[event.node], **changes))}


def _item(state: Experiment, item: str, /, **changes: Any) -> Changes:
    return {"items": _with(state.items, item, replace(state.items[item], **changes))}


def _run(state: Experiment, event: ev.Event, /, **changes: Any) -> Changes:
    assert event.run is not None
    return {"runs": _with(state.runs, event.run, replace(state.runs[event.run], **changes))}


def _job(state: Experiment, event: ev.Event, /, **changes: Any) -> Changes:
    assert event.run is not None
    assert event.node is not None
    jobs = state.runs[event.run].jobs
    job = jobs.get(event.node, JobView(event.node))
    return _run(state, event, jobs=_with(jobs, event.node, replace(job, since=event.at, **changes)))


def _attached(state: Experiment, event: ev.ConsoleAttached) -> Changes:
    return {"console": (event.pid, event.host), "headless": event.headless}


def _link(state: Experiment, event: ev.LinkChanged) -> Changes:
    return _node(
        state, event, link=event.state, link_since=event.at, link_why=event.why, rtt_seconds=event.rtt_seconds
    )


def _stream(state: Experiment, event: ev.StreamChanged) -> Changes:
    return _node(state, event, stream=event.state, stream_since=event.at)


def _described(state: Experiment, event: ev.NodeDescribed) -> Changes:
    assert event.node is not None
    return _node(state, event, facts={**state.nodes[event.node].facts, **event.facts})


def _item_started(state: Experiment, event: ev.ItemStarted) -> Changes:
    return _item(
        state,
        event.item,
        state=ItemState.RUNNING,
        attempt=event.attempt,
        started_at=event.at,
        box_seconds=event.box_seconds,
        evidence=(),
        running_steps=(),
        reason="",
        closes=(),
    )


def _step_started(state: Experiment, event: ev.StepStarted) -> Changes:
    running = state.items[event.item].running_steps
    return _item(state, event.item, running_steps=(*running, _step_key(event.step, event.node)))


def _step_ended(state: Experiment, event: ev.StepEnded) -> Changes:
    item = state.items[event.item]
    key = _step_key(event.step, event.node)
    running = tuple(step for step in item.running_steps if step != key)
    return _item(state, event.item, running_steps=running, evidence=(*item.evidence, event))


def _step_key(step: str, node: str | None) -> str:
    return f"{step} on {node}" if node else step


def _item_ended(state: Experiment, event: ev.ItemEnded) -> Changes:
    return _item(
        state,
        event.item,
        state=event.state,
        seconds=event.seconds,
        reason=event.reason,
        closes=event.closes,
        running_steps=(),
    )


def _asked(state: Experiment, event: ev.DecisionAsked) -> Changes:
    view = DecisionView(
        event.decision,
        event.at,
        event.subject,
        event.what_happened,
        event.raw_error,
        event.choices,
        event.recommended,
    )
    return {"decisions": _with(state.decisions, event.decision, view)}


def _made(state: Experiment, event: ev.DecisionMade) -> Changes:
    asked = state.decisions[event.decision]
    made = replace(asked, choice=event.choice, reason=event.reason, by=event.by, made_at=event.at)
    return {"decisions": _with(state.decisions, event.decision, made)}


def _hypotheses(state: Experiment, event: ev.HypothesesWritten) -> Changes:
    if state.hypotheses_at is not None:
        raise ValueError("hypotheses are written once, before the first run")
    return {
        "hypotheses": dict(event.texts),
        "hypotheses_at": event.at,
        "hypotheses_sha256": event.sha256,
    }


def _planned(state: Experiment, event: ev.RunPlanned) -> Changes:
    assert event.run is not None
    view = RunView(
        event.run,
        event.config,
        event.attempt,
        event.purpose,
        event.at,
        event.launches,
        event.log_node,
        event.settings,
        jobs={launch.node: JobView(launch.node) for launch in event.launches},
    )
    return {"runs": _with(state.runs, event.run, view)}


def _job_started(state: Experiment, event: ev.JobStarted) -> Changes:
    return _job(
        state,
        event,
        state="running",
        pid=event.pid,
        rung=event.rung,
        run_dir=event.run_dir,
        adopted=event.adopted,
    )


def _job_seen(state: Experiment, event: ev.JobSeen) -> Changes:
    return _job(state, event, state=event.state, exit_code=event.exit_code, why=event.why)


def _step_logged(state: Experiment, event: ev.StepLogged) -> Changes:
    assert event.run is not None
    return _run(state, event, steps=(*state.runs[event.run].steps, StepView.of(event)))


def _evaluated(state: Experiment, event: ev.Evaluated) -> Changes:
    assert event.run is not None
    return _run(state, event, evaluations=(*state.runs[event.run].evaluations, event))


def _transport(state: Experiment, event: ev.TransportSeen) -> Changes:
    assert event.run is not None
    return _run(state, event, transports=(*state.runs[event.run].transports, event))


def _run_ended(state: Experiment, event: ev.RunEnded) -> Changes:
    return _run(
        state, event, outcome=event.outcome, cause=event.cause, ended_at=event.at, logs=dict(event.logs)
    )


def _raised(state: Experiment, event: ev.FindingRaised) -> Changes:
    active = ActiveFinding(event.finding, event.at, event.node, event.run)
    return {"findings": (*state.findings, active)}


def _cleared(state: Experiment, event: ev.FindingCleared) -> Changes:
    def clear(active: ActiveFinding) -> ActiveFinding:
        same = active.finding.id == event.finding_id and (active.node, active.run) == (event.node, event.run)
        return replace(active, cleared_at=event.at) if same and active.cleared_at is None else active

    return {"findings": tuple(clear(active) for active in state.findings)}


def _service(state: Experiment, event: ev.ServiceChanged) -> Changes:
    stopped = state.service.was_stopped or event.state in ("stopping", "stopped")
    details = {**state.service.details, **event.details}
    here = ServiceOnNode(event.state, event.at, event.words)
    named = [event.node] if event.node else state.service.nodes
    nodes = {**state.service.nodes, **dict.fromkeys(named, here)}
    if event.node and event.state == "healthy":  # the whole is healthy when that is said of the whole
        return {"service": replace(state.service, details=details, nodes=nodes)}
    return {"service": ServiceView(event.state, event.at, event.words, details, stopped, nodes)}


def _guard(state: Experiment, event: ev.GuardSeen) -> Changes:
    assert event.node is not None
    renewed = event.at if event.lease_until is not None else state.nodes[event.node].lease_renewed
    return _node(
        state,
        event,
        guard=event.state,
        lease_until=event.lease_until,
        lease_renewed=renewed,
        floor_bytes=event.floor_bytes,
        risk=event.risk,
        came_back_at=event.came_back_at,
    )


def _prerequisite(state: Experiment, event: ev.PrerequisiteChecked) -> Changes:
    return {"prerequisites": _with(state.prerequisites, f"{event.name}@{event.node or ''}", event)}


_APPLY: dict[type, Callable[[Experiment, Any], Changes]] = {
    ev.ExperimentOpened: lambda state, event: {},
    ev.ConsoleAttached: _attached,
    ev.ConsoleLeft: lambda state, event: {"console": None},
    ev.LinkChanged: _link,
    ev.StreamChanged: _stream,
    ev.NodeDescribed: _described,
    ev.WalkStarted: lambda state, event: {"walk_started": event.at, "walk_seconds": None, "verdict": None},
    ev.ItemStarted: _item_started,
    ev.StepStarted: _step_started,
    ev.StepEnded: _step_ended,
    ev.ItemEnded: _item_ended,
    ev.WalkEnded: lambda state, event: {"verdict": event.verdict, "walk_seconds": event.seconds},
    ev.DecisionAsked: _asked,
    ev.DecisionMade: _made,
    ev.Degraded: lambda state, event: {"degraded": event.reason},
    ev.HypothesesWritten: _hypotheses,
    ev.RunPlanned: _planned,
    ev.JobStarted: _job_started,
    ev.JobSeen: _job_seen,
    ev.DatasetMeasured: lambda state, event: _run(state, event, dataset=event),
    ev.ParametersCounted: lambda state, event: _run(state, event, parameters=event),
    ev.StepLogged: _step_logged,
    ev.Evaluated: _evaluated,
    ev.TransportSeen: _transport,
    ev.RunEnded: _run_ended,
    ev.RowRecorded: lambda state, event: {"rows": _with(state.rows, event.row.id, event.row)},
    ev.FindingRaised: _raised,
    ev.FindingCleared: _cleared,
    ev.ServiceChanged: _service,
    ev.GuardSeen: _guard,
    ev.PrerequisiteChecked: _prerequisite,
    ev.Noted: lambda state, event: {},
    ev.ExperimentClosed: lambda state, event: {"outcome": event.outcome},
}
