"""A memory balloon crosses the floor: the lab's job is ended at once, and nothing else."""

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from support.local_node import LocalNode
from support.waiting import until

from console.core.plan.custody import FloorEvent, Floors, GuardSpec
from console.core.plan.service import NoService
from console.nodes.agent import follow_guard, guard_account, guard_status, start_guard

EXPERIMENT = f"floor-{os.getpid()}"  # no other worker's guard may take its jobs for its own
MIB = 1 << 20
_BALLOON = """
import time
held = []
for _ in range({count}):
    held.append(b"x" * (64 << 20))
    time.sleep(0.02)
time.sleep(600)
"""


def available() -> int:
    return int(psutil.virtual_memory().available)


@pytest.fixture
def bystander() -> Iterator["subprocess.Popen[bytes]"]:
    """Somebody else's process, larger than the lab's job at its start."""
    process = subprocess.Popen(
        [sys.executable, "-c", _BALLOON.format(count=3)], env={"PATH": os.environ["PATH"]}
    )
    yield process
    process.kill()
    process.wait()


def balloon(node: LocalNode, marker: str, count: int) -> "subprocess.Popen[bytes]":
    """A job that takes 64 MiB every 20 ms, `count` times."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(node.home), "LAB_RUN_ID": marker}
    return subprocess.Popen([sys.executable, "-c", _BALLOON.format(count=count)], env=environment)


async def guarded(node: LocalNode, **floors: float) -> int:
    spec = GuardSpec.model_validate(
        {"experiment": EXPERIMENT, "holder": "c", "lease_seconds": 120, "floors": floors}
    )
    status = await start_guard(node, spec, NoService())
    assert status.pid is not None
    return status.pid


async def test_the_job_that_eats_the_memory_is_ended_and_nothing_else(
    node: LocalNode, bystander: "subprocess.Popen[bytes]"
) -> None:
    run = node.home / ".lab" / EXPERIMENT / "e0"
    run.mkdir(parents=True)
    floor = available() - 900 * MIB
    guard = await guarded(node, training_bytes=floor)
    job = balloon(node, f"{EXPERIMENT}/e0", count=60)
    other = balloon(node, "another/e0", count=1)
    try:
        await until(lambda: job.poll() is not None, "the job was ended", seconds=60)
        assert job.returncode == -9
        assert other.poll() is None
        assert bystander.poll() is None
        assert psutil.pid_exists(guard)
    finally:
        for process in (job, other):
            process.kill()
            process.wait()
    (event,) = await events(node)
    assert event.available_bytes < event.floor_bytes == floor
    assert event.ended_pids == (job.pid,)
    assert event.runs == (f"{EXPERIMENT}/e0",)
    assert event.react_seconds < 0.3
    assert (run / "ended-by-guard.json").exists()
    samples = (await follow_guard(node, EXPERIMENT)).samples
    gaps = [after.at - before.at for before, after in pairwise(samples)]
    assert min(gaps) < 0.5, "samples come faster while memory falls"


async def events(node: LocalNode) -> tuple[FloorEvent, ...]:
    return (await guard_status(node, EXPERIMENT)).floor_events


async def test_a_short_dip_is_borne_for_the_configured_time(node: LocalNode) -> None:
    total = int(psutil.virtual_memory().total)
    guard = await guarded(node, training_bytes=total - 64 * MIB, hold_seconds=2.0)
    job = balloon(node, f"{EXPERIMENT}/e0", count=1)
    try:
        await until(lambda: job.poll() is not None, "the job was ended", seconds=30)
        assert Path(f"/proc/{guard}").exists()
    finally:
        job.kill()
        job.wait()
    stands, crossed = await guard_account(node, EXPERIMENT)
    assert crossed.what == "floor crossed"
    assert crossed.at - stands.at >= 1.9


async def test_each_phase_has_its_own_floor(node: LocalNode) -> None:
    total = int(psutil.virtual_memory().total)
    floors = Floors(training_bytes=0, restoring_bytes=total - 64 * MIB)
    await guarded(node, **floors.model_dump())
    job = balloon(node, f"{EXPERIMENT}/e0", count=1)
    try:
        samples = 0
        while samples < 3:
            samples = len((await follow_guard(node, EXPERIMENT)).samples)
        assert job.poll() is None
    finally:
        job.kill()
        job.wait()
    assert await events(node) == ()
