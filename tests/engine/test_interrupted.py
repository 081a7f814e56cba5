"""Ctrl-C while a run trains: the console leaves in order, and what it says of the nodes is true."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from support.borrowed_lab import CHECKLIST, home_of, profile_with, serving
from support.docker_engine import Standin
from support.local_node import LocalNode
from support.processes import is_alive, processes_with
from support.waiting import until
from support.window import brought_back, healthy

from console.core.errors import JournalError
from console.core.record.experiment import Experiment
from console.core.record.folding import fold
from console.journal import read_journal
from console.nodes.agent import guard_status, renew_lease

ROOT = Path(__file__).parents[2]


def state(folder: Path) -> Experiment | None:
    try:
        return fold(read_journal(folder))
    except JournalError:
        return None


def console(folder: Path, profile: str) -> "subprocess.Popen[str]":
    told = folder.with_suffix(".json")
    told.write_text(json.dumps({"folder": str(folder), "profile": profile, "checklist": CHECKLIST}))
    return subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "support" / "lab_process.py"), str(told)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


async def test_jobs_go_on_under_guard_and_the_words_say_until_when(
    folder: Path, standin: Standin, trainer: Path
) -> None:
    profile = profile_with({"node-a": standin}, trainer=trainer, nodes=["node-a"])
    await serving({"node-a": standin}, folder)
    process = console(folder, profile)
    await until(lambda: (now := state(folder)) and now.running_jobs, "a job runs", seconds=90)
    assert not healthy(standin)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    left = state(folder)
    assert left is not None
    ((run, where),) = left.running_jobs
    assert f"{run} on {where}" in errors
    assert "return with:  lab run test" in errors
    assert "jobs go on; without a console the nodes end them at" in said
    assert "the service is not back; without a console the guards bring it back at" in said
    job = left.runs[run].jobs[where].pid
    assert job is not None
    assert is_alive(job)

    node = LocalNode(home_of(folder, "node-a"))
    assert (await guard_status(node, folder.name)).lease.state == "held"
    await renew_lease(node, folder.name, holder=left.holder, lease_seconds=0.2)
    await until(lambda: healthy(standin), "the guard brought the service back", seconds=60)
    assert not is_alive(job)


async def test_before_any_job_nothing_is_said_to_run(folder: Path, standin: Standin) -> None:
    """Interrupted while requests drain: nothing was touched, nothing runs."""
    profile = profile_with({"node-a": standin}, nodes=["node-a"], drain_seconds=60)
    await serving({"node-a": standin}, folder)
    standin.set(in_flight=1)
    process = console(folder, profile)
    await until(
        lambda: (now := state(folder)) and any("draining" in line.words for line in now.timeline),
        "requests drain",
        seconds=90,
    )
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "no job is running" in errors
    assert "the service is not back; without a console the guards bring it back at" in said
    left = state(folder)
    assert left is not None
    assert not left.running_jobs
    assert healthy(standin)


async def test_a_laptop_that_sleeps_past_its_lease_starts_no_job_when_it_wakes(
    folder: Path, standin: Standin, trainer: Path
) -> None:
    profile = profile_with({"node-a": standin}, trainer=trainer, nodes=["node-a"])
    await serving({"node-a": standin}, folder)
    node = LocalNode(home_of(folder, "node-a"))
    process = console(folder, profile)
    await until(lambda: (now := state(folder)) and now.running_jobs, "a job runs", seconds=90)
    process.send_signal(signal.SIGSTOP)
    asleep = state(folder)
    assert asleep is not None
    await renew_lease(node, folder.name, holder=asleep.holder, lease_seconds=0.2)
    assert not (await brought_back(node, experiment=folder.name)).service_touched
    process.send_signal(signal.SIGCONT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "node-a: the lab's time on this node is over (expired)" in errors
    awake = state(folder)
    assert awake is not None
    started = [run.id for run in awake.runs.values() if run.jobs]
    assert started == [run for run, _ in asleep.running_jobs]
    assert not processes_with(f"LAB_RUN_DIR={folder}")
    assert healthy(standin)
    assert awake.service.state == "healthy"
