"""The parts of an experiment's state, each frozen; `experiment.py` puts them together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from console.core.plan.checklist import ItemState
from console.core.reading.diagnosis import Finding
from console.core.record.events import (
    Choice,
    DatasetMeasured,
    Evaluated,
    NodeLaunch,
    ParametersCounted,
    StepEnded,
    StepLogged,
    TransportSeen,
)
from console.core.record.figures import Source


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node. Link, stream and guard are separate states, each with the time of its last change."""

    name: str
    link: str = "connecting"
    link_since: datetime | None = None
    link_why: str = ""
    rtt_seconds: float | None = None
    stream: str = "waiting"
    stream_since: datetime | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    guard: str = ""
    lease_until: datetime | None = None
    lease_renewed: datetime | None = None
    floor_bytes: int | None = None
    risk: str = ""
    came_back_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ItemView:
    """One checklist item with the evidence of its latest attempt."""

    id: str
    state: ItemState = ItemState.WAITING
    attempt: int = 0
    started_at: datetime | None = None
    box_seconds: float = 0.0
    seconds: float = 0.0
    reason: str = ""
    closes: tuple[str, ...] = ()
    running_steps: tuple[str, ...] = ()
    evidence: tuple[StepEnded, ...] = ()


@dataclass(frozen=True, slots=True)
class JobView:
    """What the node's own files say of a job."""

    node: str
    state: str = "absent"
    since: datetime | None = None
    pid: int | None = None
    rung: str = ""
    run_dir: str = ""
    exit_code: int | None = None
    adopted: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class StepView:
    """One logged step as screens draw it: a run has thousands, and the journal keeps the whole events."""

    at: datetime
    step: int
    total: int | None
    loss: float | None
    grad_norm: float | None
    elapsed_seconds: float | None
    memory_gib: float | None
    end_byte: int

    @classmethod
    def of(cls, event: StepLogged) -> Self:
        return cls(
            event.at,
            event.step,
            event.total,
            event.loss,
            event.grad_norm,
            event.elapsed_seconds,
            event.memory_gib,
            event.end_byte,
        )


@dataclass(frozen=True, slots=True)
class RunView:
    """One attempt at one configuration."""

    id: str
    config: str
    attempt: int
    purpose: str
    planned_at: datetime
    launches: tuple[NodeLaunch, ...]
    log_node: str
    settings: Mapping[str, Any]
    jobs: Mapping[str, JobView] = field(default_factory=dict)
    steps: tuple[StepView, ...] = ()
    evaluations: tuple[Evaluated, ...] = ()
    dataset: DatasetMeasured | None = None
    parameters: ParametersCounted | None = None
    transports: tuple[TransportSeen, ...] = ()
    outcome: str | None = None
    cause: str = ""
    ended_at: datetime | None = None
    logs: Mapping[str, Source] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """`planned`, `starting`, `running`, or the outcome."""
        if self.outcome:
            return self.outcome
        states = {job.state for job in self.jobs.values()}
        if not states or states == {"absent"}:
            return "planned"
        return "running" if self.steps else "starting"

    @property
    def last_step(self) -> StepView | None:
        return self.steps[-1] if self.steps else None

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(launch.node for launch in self.launches)


@dataclass(frozen=True, slots=True)
class DecisionView:
    """An open or answered decision."""

    id: str
    asked_at: datetime
    subject: str
    what_happened: str
    raw_error: str
    choices: tuple[Choice, ...]
    recommended: str
    choice: str | None = None
    reason: str = ""
    by: str = ""
    made_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ServiceOnNode:
    """Where the service is in its life on one node."""

    state: str
    since: datetime
    words: str = ""


@dataclass(frozen=True, slots=True)
class ServiceView:
    """The service as a whole, as the newest event says, and on each node that had an event of its own."""

    state: str = "unknown"
    since: datetime | None = None
    words: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    was_stopped: bool = False
    nodes: Mapping[str, ServiceOnNode] = field(default_factory=dict)

    @property
    def owed(self) -> bool:
        """The service was stopped and is not proven healthy since."""
        return self.was_stopped and self.state != "healthy"


@dataclass(frozen=True, slots=True)
class ActiveFinding:
    finding: Finding
    raised_at: datetime
    node: str | None
    run: str | None
    cleared_at: datetime | None = None
