"""The whole state of an experiment; it changes by events alone (`folding.py`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from console.core.plan.checklist import Checklist, Verdict, parse_checklist
from console.core.plan.profile import Profile, parse_profile
from console.core.record import events as ev
from console.core.record.figures import Row
from console.core.record.timeline import Line
from console.core.record.views import (
    ActiveFinding,
    DecisionView,
    ItemView,
    NodeView,
    RunView,
    ServiceView,
)


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

    @property
    def configurations(self) -> tuple[str, ...]:
        """Ids of the configurations that this experiment runs, in order."""
        matrix = self.profile.matrix
        if self.degraded and self.profile.degraded_matrix:
            return tuple(config.id for config in self.profile.degraded_matrix.configurations)
        return tuple(c.id for c in matrix.configurations if not self.only or c.id in self.only)

    @property
    def baseline(self) -> str:
        """The configuration that the others are compared with, of the path that is being run."""
        degraded = self.profile.degraded_matrix
        if degraded and degraded.baseline in self.configurations:
            return degraded.baseline
        return self.profile.matrix.baseline

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
