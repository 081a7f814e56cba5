"""Detached jobs: started once, found again, stopped with nothing left.

A job belongs to its run folder `~/.lab/<experiment>/<run>/` on the node, not to a connection: whoever looks
there knows all there is to know. Its supervisor (launch.sh) is detached at birth, by systemd-run where the
user lingers, else by setsid.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from console.core.errors import AnswerUnreadable, NodeError
from console.nodes import remote
from console.nodes.launch import JobPlan, checked, launch_text, plan_text, secrets_text
from console.nodes.launch import valid_name as _name
from console.nodes.ssh import Node

__all__ = [
    "JobPlan",
    "JobStarted",
    "JobState",
    "StopReport",
    "list_runs",
    "log_path",
    "look",
    "start",
    "stop",
]

Rung = Literal["systemd", "setsid"]
State = Literal["absent", "starting", "running", "ended", "vanished"]


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

    state: State
    """vanished: the supervisor is gone and left no exit status (killed, or the node booted)."""
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
    checked(plan)
    texts = (plan_text(plan), launch_text(plan), secrets_text(plan))
    parts = [text.encode("utf-8", "surrogateescape") for text in texts]
    sizes = [str(len(part)) for part in parts]
    answer = await _ask(
        node,
        "job_start",
        _folder(plan.experiment, plan.run),
        (plan.argv[0], plan.env.get("PATH", ""), plan.cwd or "", *sizes),
        timeout=60,
        stdin=b"".join(parts),
    )
    return JobStarted(
        pid=int(answer.get("pid") or 0),
        run_dir=answer["run_dir"],
        rung="systemd" if answer.get("rung") == "systemd" else "setsid",
        adopted=answer.get("adopted") == "1",
        note=_detachment_note(answer),
    )


async def look(node: Node, experiment: str, run: str) -> JobState:
    """What is known about the run now."""
    answer = await _ask(node, "job_look", _folder(experiment, run), timeout=30)
    age = _number(answer, "heartbeat_age_seconds")
    return JobState(
        state=cast(State, answer["state"]),
        run_dir=answer["run_dir"],
        pid=_number(answer, "pid"),
        exit_code=_number(answer, "exit_code"),
        heartbeat_age_seconds=None if age is None else float(max(age, 0)),
        boot_changed=answer.get("boot_changed") == "1",
        stop_requested=answer.get("stop_requested") == "1",
        log_bytes=_number(answer, "log_bytes"),
        log_inode=_number(answer, "log_inode"),
        orphan_pids=_numbers(answer, "orphan_pids"),
    )


async def stop(node: Node, experiment: str, run: str, grace_seconds: float = 20.0) -> StopReport:
    """End the run: TERM to torchrun (else to the program), after the grace to what is left, then KILL.

    torchrun starts every worker in a session of its own, so they are found by parentage and by the mark that
    all processes of a run carry. Stopping a run that ended ends what it left behind.
    """
    answer = await _ask(
        node,
        "job_stop",
        _folder(experiment, run),
        (str(math.ceil(grace_seconds)),),
        timeout=grace_seconds + 60,
    )
    return StopReport(
        asked=_numbers(answer, "asked"),
        killed=_numbers(answer, "killed"),
        left=_numbers(answer, "left"),
        exit_code=_number(answer, "exit_code"),
        seconds=(_number(answer, "microseconds") or 0) / 1e6,
    )


async def list_runs(node: Node, experiment: str) -> tuple[str, ...]:
    """Names of the experiment's runs on the node, sorted."""
    answer = await node.run(
        _program("job_list"), args=(f".lab/{_name(experiment, 'experiment')}",), timeout=30
    )
    lines = answer.text.splitlines()
    return tuple(sorted(line.removeprefix("run=") for line in lines if line.startswith("run=")))


def log_path(experiment: str, run: str) -> str:
    """The run's log on any node, for `Tail`; `~` is the node's home folder."""
    return f"~/{_folder(experiment, run)}/log"


def _folder(experiment: str, run: str) -> str:
    return f".lab/{_name(experiment, 'experiment')}/{_name(run, 'run')}"


async def _ask(
    node: Node, verb: str, folder: str, args: Sequence[str] = (), *, timeout: float, stdin: bytes = b""
) -> dict[str, str]:
    answer = await node.run(_program(verb), args=(folder, *args), timeout=timeout, stdin=stdin)
    found: dict[str, str] = {}
    for line in answer.text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            found[name] = value.strip()
    if "error" in found:
        raise _refusal(node.name, folder, found["error"], found.get("detail", ""))
    if verb != "job_stop" and "run_dir" not in found:
        raise AnswerUnreadable(node.name, f"{verb} gave no answer", why=answer.error_text[-400:])
    return found


def _program(verb: str) -> str:
    library = remote.source("procs.sh") + remote.source("jobs.sh")
    return f'{library}\nfolder=$HOME/$1; shift; {verb} "$folder" "$@"\n'


def _refusal(node: str, folder: str, code: str, detail: str) -> NodeError:
    what, remedy = {
        "folder": ("the run folder can't be made", "make the home folder on the node writable"),
        "busy": ("another console is starting this run", "wait a moment and look again"),
        "disk": ("the disk is full", "free space on the node; then start the run again"),
        "program": (
            f"there is no program {detail}",
            "correct the training interpreter of this node in the profile, or install it there",
        ),
        "cwd": (f"there is no folder {detail}", "make it on the node, or correct the profile"),
        "silent": ("the job did not come up within 10 s", "read launch.sh and log in the run folder"),
        "absent": ("there is no such run", "list the runs of the experiment on this node"),
    }.get(code, (f"refused: {code}", ""))
    return NodeError(node, f"~/{folder}: {what}", why=detail, next_step=remedy)


def _detachment_note(answer: Mapping[str, str]) -> str:
    notes = [answer.get("note", "")]
    if answer.get("rung") == "setsid" and answer.get("kill_user_processes") == "true":
        notes.append(
            "logind ends all processes at logout (KillUserProcesses=yes) and lingering is off: "
            "run `loginctl enable-linger` on the node"
        )
    return "; ".join(note for note in notes if note)


def _number(answer: Mapping[str, str], name: str) -> int | None:
    value = answer.get(name, "")
    return int(value) if value.lstrip("-").isdigit() else None


def _numbers(answer: Mapping[str, str], name: str) -> tuple[int, ...]:
    return tuple(sorted({int(value) for value in answer.get(name, "").split() if value.isdigit()}))
