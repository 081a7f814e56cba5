"""The whole state of an experiment, folded from its events. `apply` is the only way it changes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from console.core.errors import NotAJournal
from console.core.plan.checklist import Checklist, ItemState, Verdict, parse_checklist
from console.core.plan.profile import Profile, parse_profile
from console.core.record import events as ev
from console.core.record.figures import Row
from console.core.record.timeline import Line, line_of
from console.core.record.views import (
    ActiveFinding,
    DecisionView,
    ItemView,
    JobView,
    NodeView,
    RunView,
    ServiceOnNode,
    ServiceView,
    StepView,
)

TIMELINE_LINES = 200


@dataclass(frozen=True, slots=True)
class Experiment:
    """Frozen; every screen and report is drawn from one of these."""

    name: str
    profile: Profile
    checklist: Checklist
    opened_at: datetime
    last_at: datetime
    """The newest event's time; of a closed experiment, when it was closed."""
    only: tuple[str, ...] = ()
    window_ends: datetime | None = None
    console_version: str = ""
    holder: str = ""
    console: tuple[int, str] | None = None
    headless: bool = False
    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    walk_started: datetime | None = None
    walk_seconds: float | None = None
    verdict: Verdict | None = None
    items: Mapping[str, ItemView] = field(default_factory=dict)
    decisions: Mapping[str, DecisionView] = field(default_factory=dict)
    degraded: str | None = None
    hypotheses: Mapping[str, str] = field(default_factory=dict)
    hypotheses_at: datetime | None = None
    hypotheses_sha256: str | None = None
    runs: Mapping[str, RunView] = field(default_factory=dict)
    rows: Mapping[str, Row] = field(default_factory=dict)
    findings: tuple[ActiveFinding, ...] = ()
    service: ServiceView = field(default_factory=ServiceView)
    prerequisites: Mapping[str, ev.PrerequisiteChecked] = field(default_factory=dict)
    timeline: tuple[Line, ...] = ()
    outcome: str | None = None

    @classmethod
    def opened(cls, event: ev.ExperimentOpened) -> Self:
        """The state after the first event. Raises `InputError` when its profile can no longer be read."""
        profile = parse_profile(event.profile_text, file=event.profile_file)
        checklist = parse_checklist(event.checklist_text, file=f"{profile.checklist}.yaml")
        return cls(
            name=event.name,
            profile=profile,
            checklist=checklist,
            opened_at=event.at,
            last_at=event.at,
            only=event.only,
            window_ends=event.window_ends,
            console_version=event.console_version,
            holder=event.holder,
            nodes={node.name: NodeView(node.name) for node in profile.nodes},
            items={item.id: ItemView(item.id, box_seconds=item.box_seconds) for item in checklist.items},
            timeline=(Line(event.at, f"experiment {event.name} opened"),),
        )

    def apply(self, event: ev.Event) -> Self:
        """The state after `event`."""
        changed = _APPLY[type(event)](self, event)
        if self.outcome is None:
            changed["last_at"] = max(self.last_at, event.at)
        if line := line_of(event):
            changed["timeline"] = (*self.timeline[-(TIMELINE_LINES - 1) :], line)
        return replace(self, **changed)

    @property
    def configurations(self) -> tuple[str, ...]:
        """Ids of the configurations that this experiment runs, in order."""
        matrix = self.profile.matrix
        if self.degraded and self.profile.degraded_matrix:
            return tuple(config.id for config in self.profile.degraded_matrix.configurations)
        return tuple(c.id for c in matrix.configurations if not self.only or c.id in self.only)

    def runs_of(self, config: str) -> tuple[RunView, ...]:
        """The attempts at a configuration, oldest first."""
        return tuple(run for run in self.runs.values() if run.config == config and run.purpose == "matrix")

    @property
    def current_run(self) -> RunView | None:
        """The run that is under way, or None."""
        return next((run for run in reversed(tuple(self.runs.values())) if run.outcome is None), None)

    @property
    def verdict_is_down(self) -> bool:
        """The checklist ended with the main line down."""
        return self.verdict is Verdict.DOWN

    @property
    def open_decision(self) -> DecisionView | None:
        return next((d for d in self.decisions.values() if d.choice is None), None)

    @property
    def active_findings(self) -> tuple[ActiveFinding, ...]:
        return tuple(active for active in self.findings if active.cleared_at is None)

    @property
    def running_jobs(self) -> tuple[tuple[str, str], ...]:
        """(run, node) of every job that the nodes' files call starting or running."""
        return tuple(
            (run.id, job.node)
            for run in self.runs.values()
            for job in run.jobs.values()
            if run.outcome is None and job.state in ("starting", "running")
        )


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
        experiment = experiment.apply(event)
    return experiment


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
