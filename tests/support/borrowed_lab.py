"""An embedded lab whose nodes serve something before the lab borrows them, with a stand-in for training."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from console.cli.files import shipped
from console.core.record.events import JobStarted
from console.engine import returning
from console.engine.recorder import Recorder
from support.docker_engine import Standin, free_port
from support.local_node import LocalNode
from support.processes import end_processes_of
from support.waiting import until
from support.window import ready

NODES = ("node-a", "node-b")
CHECKLIST = """
name: small
title: Small
items:
  - {number: 1, id: one, title: One, title_zh: 一, why: w, steps: [{id: do, title: Do, command: ["true"]}]}
"""
_EMBEDDED = (shipped("profiles") / "embedded.yaml").read_text(encoding="utf-8")
_NO_SERVICE, _INTERPRETER = "service:\n  kind: none\n", '"@console"'


def quick_standins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Standin]]:
    """A service for each node that is ready soon, looked at often; for a fixture, which ends them."""
    monkeypatch.setattr(returning, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr("console.nodes.service.calls._POLL_SECONDS", 0.1)
    made = {node: Standin(node, free_port(), folder / f"control-{node}") for node in NODES}
    for standin in made.values():
        standin.set(ready_seconds=0.5)
    yield made
    end_processes_of(folder)


def profile_with(standins: Mapping[str, Standin], *, trainer: Path | None = None, **more: object) -> str:
    """The text of the profile; `trainer` runs instead of a training interpreter."""
    service = {
        "kind": "command",
        "name": "stand-in",
        "start": ["true"],
        "pid_file": "~/service.pid",
        "log_file": "~/service.log",
        "settle_seconds": 0.3,
        "ready_timeout_seconds": 20,
        "drain_seconds": 1,
        "stop_seconds": 2,
        "release_seconds": 2,
        "engine_pattern": "no-such-engine-anywhere",
        "canary": {"timeout_seconds": 3},
        "overrides": {
            node: {"base_url": standin.url, "start": list(standin.process_argv())}
            for node, standin in standins.items()
        },
    }
    assert _NO_SERVICE in _EMBEDDED
    text = (
        _EMBEDDED.replace(_NO_SERVICE, f"service: {json.dumps(service | more)}\n") if standins else _EMBEDDED
    )
    return text.replace(_INTERPRETER, json.dumps(str(trainer))) if trainer else text


def home_of(folder: Path, node: str) -> Path:
    """Where an embedded node of the experiment in `folder` lives."""
    return folder / "nodes" / node / "home"


async def serving(standins: Mapping[str, Standin], folder: Path) -> None:
    """Every node's service as somebody else started it, before there was a lab."""
    for node, standin in standins.items():
        home = home_of(folder, node)
        home.mkdir(parents=True, exist_ok=True)
        await LocalNode(home).run(
            'setsid -f sh -c \'echo $$ >~/service.pid; exec "$@" >>~/service.log 2>&1\' sh "$@"',
            args=standin.process_argv(),
        )
        await ready(standin)


def started(recorder: Recorder) -> list[str]:
    """The run of every job that was started, in order."""
    events = recorder.journal.events()
    return [event.run for _, event in events if isinstance(event, JobStarted) and event.run is not None]


async def a_job_runs(recorder: Recorder) -> tuple[str, int]:
    """The first run of the matrix and the pid of its job, once it is under way."""
    await until(lambda: recorder.experiment.running_jobs, "a job runs", 60)
    ((run, node),) = recorder.experiment.running_jobs
    pid = recorder.experiment.runs[run].jobs[node].pid
    assert pid is not None
    return run, pid


async def left(conducting: "asyncio.Task[str]") -> None:
    """The console is gone, without a goodbye."""
    conducting.cancel()
    await asyncio.wait({conducting})
