"""Detached jobs: started once, found again, stopped with nothing left."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from console.nodes.ssh import Node

Rung = Literal["systemd", "setsid"]


@dataclass(frozen=True)
class JobPlan:
    """What to run. Variables of `env` whose name says secret reach the job but never plan.json."""

    experiment: str
    run: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    """None: the run folder."""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JobStarted:
    """A job that is under way, whether this call started it or found it."""

    pid: int
    run_dir: str
    rung: Rung
    adopted: bool
    """The run had been started before; nothing was started now."""
    note: str = ""
    """What could end the job against our will (no linger, KillUserProcesses), else empty."""


@dataclass(frozen=True)
class JobState:
    """What the run folder and /proc say about a job."""

    state: Literal["absent", "starting", "running", "ended", "vanished"]
    run_dir: str
    pid: int | None = None
    exit_code: int | None = None
    heartbeat_age_seconds: float | None = None
    boot_changed: bool = False
    stop_requested: bool = False
    log_bytes: int | None = None
    log_inode: int | None = None
    orphan_pids: tuple[int, ...] = ()
    """Processes of a vanished job that are still there: stop() ends them."""


@dataclass(frozen=True)
class StopReport:
    """What stopping did. `left` is empty when nothing of the run is left."""

    asked: tuple[int, ...]
    killed: tuple[int, ...]
    left: tuple[int, ...]
    exit_code: int | None
    seconds: float


async def start(node: Node, plan: JobPlan) -> JobStarted:
    """Start the job detached, or adopt it when the run was started before.

    Raises NodeError (disk full, home read-only, program or folder missing), InputError (bad names).
    """
    raise NotImplementedError


async def look(node: Node, experiment: str, run: str) -> JobState:
    """What is known about the run now."""
    raise NotImplementedError


async def stop(node: Node, experiment: str, run: str, grace_seconds: float = 20.0) -> StopReport:
    """End the run: TERM to torchrun (else to the program), then to what is left, then KILL."""
    raise NotImplementedError


async def list_runs(node: Node, experiment: str) -> tuple[str, ...]:
    """Names of the experiment's runs on the node, sorted."""
    raise NotImplementedError


async def remote_log(node: Node, experiment: str, run: str) -> str:
    """Absolute path of the run's log on the node."""
    raise NotImplementedError
