"""Symptom -> suspect -> first action: findings that come and go as facts, samples and states arrive."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from console.core.reading.facts import LogFact
from console.core.reading.signatures import Signature

Severity = Literal["note", "warning", "failure"]
LinkState = Literal["up", "down", "unknown"]
JobState = Literal["none", "starting", "running", "ended", "failed"]


class Finding(BaseModel):
    """One thing that is wrong now, and what to do first.

    `key` tells two findings of one rule apart (rule id and node); `since` is the time it was raised, on the
    caller's clock. `line`, `start_byte`, `end_byte` name the log text it rests on, if it rests on one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    severity: Severity
    title: str
    seen: str
    suspects: tuple[str, ...]
    first_action: str
    facts_link: str
    node: str | None = None
    since: float
    line: int | None = None
    start_byte: int | None = None
    end_byte: int | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        return (self.id, self.node)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSample:
    """What the sampler saw on a node. None = not readable there (never 0)."""

    node: str
    at: float
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    gpu_utilization: float | None = None
    """0 to 1."""
    gpu_power_watts: float | None = None
    sm_clock_hertz: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the plan says about this run; a field left None switches the rules off that need it."""

    framework: str | None = None
    nodes: tuple[str, ...] = ()
    log_node: str | None = None
    """The node whose log carries the metric lines (last-rank rule)."""
    rdma: bool | None = None
    rails: int | None = None
    step_seconds: float | None = None
    memory_bytes: int | None = None
    save_steps: int | None = None
    shared_cache: bool | None = None
    idle_power_watts: float = 30.0
    low_clock_hertz: float = 1.4e9


@dataclass(frozen=True, slots=True)
class Change:
    """A finding that was raised, or one that no longer holds."""

    what: Literal["raised", "cleared"]
    finding: Finding
    at: float


class Rules(BaseModel):
    """`checklists/diagnosis.yaml`, checked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """What a `TrainLogReader` must look for so that the rules see it."""
        raise NotImplementedError


def load_rules(text: str, source: str = "diagnosis.yaml") -> Rules:
    """Read the rule file's text. Raises InputError naming the field and what was expected."""
    raise NotImplementedError


class Diagnosis:
    """Watches one run. Pure: facts, samples, states and the time are given to it.

    Every method returns the changes it caused. `at` is any monotonic number of seconds, the same clock for
    all calls of one object.
    """

    def __init__(self, rules: Rules, expectation: Expectation | None = None) -> None: ...

    def facts(self, node: str, facts: Sequence[LogFact], at: float) -> tuple[Change, ...]:
        """Facts read from one node's log, arrived at `at`."""
        raise NotImplementedError

    def output(self, node: str, at: float) -> None:
        """Any byte arrived from this node's log."""
        raise NotImplementedError

    def sample(self, sample: NodeSample) -> tuple[Change, ...]:
        raise NotImplementedError

    def link(self, node: str, state: LinkState, at: float) -> tuple[Change, ...]:
        raise NotImplementedError

    def job(self, node: str, state: JobState, at: float) -> tuple[Change, ...]:
        raise NotImplementedError

    def tick(self, at: float) -> tuple[Change, ...]:
        """Look at what depends on time alone: silence and stalls. Call about once a second."""
        raise NotImplementedError

    @property
    def active(self) -> tuple[Finding, ...]:
        """All findings that hold now, worst first."""
        raise NotImplementedError
