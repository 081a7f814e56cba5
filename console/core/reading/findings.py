"""The values of diagnosis: what it is told, and what it answers."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

Severity = Literal["note", "warning", "failure"]
LinkState = Literal["up", "down", "unknown"]
JobState = Literal["none", "starting", "running", "ended", "failed"]

SEVERITIES: tuple[Severity, ...] = ("failure", "warning", "note")
"""Worst first."""


class Said(NamedTuple):
    """A finding in one language."""

    title: str
    seen: str
    first_action: str


class Finding(BaseModel):
    """One thing that is wrong now, and what to do first. An old journal's findings lack the Chinese.

    `since` is the time it was raised, on the caller's clock. `line`, `start_byte`, `end_byte` name the log
    text it rests on, if it rests on one; that log is the one of `node`.
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
    title_zh: str = ""
    seen_zh: str = ""
    first_action_zh: str = ""

    def said(self, lang: Literal["en", "zh"]) -> Said:
        """In that language; in English where the journal has no Chinese."""
        if lang == "zh" and self.title_zh:
            return Said(self.title_zh, self.seen_zh, self.first_action_zh)
        return Said(self.title, self.seen, self.first_action)

    @property
    def key(self) -> tuple[str, str | None]:
        """Tells two findings of one rule apart."""
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
    """What the plan says about this run; a field left None switches off the rules that need it."""

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


@dataclass(frozen=True, slots=True)
class Change:
    """A finding that was raised, or one that no longer holds."""

    what: Literal["raised", "cleared"]
    finding: Finding
    at: float
