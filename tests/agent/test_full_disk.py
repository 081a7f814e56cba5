"""A node whose disk is full: told before anything starts, and no obstacle to what a guard is for."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.local_node import LocalNode
from support.processes import end_processes_of
from support.waiting import until

from console.core.errors import ScriptFailed, ServiceError
from console.core.plan.custody import GuardSpec
from console.core.plan.service import NoService
from console.nodes.agent import follow_guard, guard_account, guard_status, renew_lease, start_guard

EXPERIMENT = f"full-{os.getpid()}"
SPEC = GuardSpec(experiment=EXPERIMENT, holder="tests", lease_seconds=60, job_grace_seconds=0.5)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A home folder on a disk of 4 MiB of its own."""
    home = tmp_path / "home"
    home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(home)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk can only be mounted by root")
    yield home
    end_processes_of(tmp_path)
    subprocess.run(["umount", "-l", str(home)], check=True)


def fill(home: Path) -> None:
    """Take all room there is, to the last byte."""
    with (home / f"ballast-{len(list(home.iterdir()))}").open("wb", buffering=0) as file:
        for size in (1 << 16, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue


async def test_a_guard_that_cannot_be_unpacked(small_disk: Path) -> None:
    fill(small_disk)
    node = LocalNode(small_disk)
    with pytest.raises(ScriptFailed) as told:
        await start_guard(node, SPEC, NoService())
    said = told.value.render()
    assert said.startswith("node-a: no space left on the disk of ~/.lab/agent")
    assert "free disk space" in said
    assert "Traceback" not in said
    assert "zip" not in said
    assert len(said.splitlines()) == 3
    assert not list(small_disk.glob(".lab/agent/*"))


async def test_a_guard_that_cannot_write_its_state(small_disk: Path) -> None:
    node = LocalNode(small_disk)
    assert not (await guard_status(node, EXPERIMENT)).alive
    fill(small_disk)
    with pytest.raises(ServiceError) as told:
        await start_guard(node, SPEC, NoService())
    assert "no space left on" in told.value.render().lower()
    assert told.value.node == "node-a"
    assert not (await guard_status(node, EXPERIMENT)).alive


@pytest.fixture
def job() -> Iterator["subprocess.Popen[bytes]"]:
    """A job of the lab."""
    environment = {"LAB_RUN_ID": f"{EXPERIMENT}/e0", "PATH": os.environ["PATH"]}
    with subprocess.Popen(["sleep", "600"], env=environment) as process:
        yield process
        process.kill()


async def test_a_disk_that_fills_up_hinders_neither_the_lease_nor_its_end(
    small_disk: Path, job: "subprocess.Popen[bytes]"
) -> None:
    node = LocalNode(small_disk)
    guard = await start_guard(node, SPEC, NoService())
    reserve = small_disk / ".lab" / EXPERIMENT / "guard" / "reserve"
    await until(lambda: len(list(reserve.glob("*"))) == 16, "room is set aside")
    (small_disk / ".lab" / EXPERIMENT / "e0").mkdir()
    fill(small_disk)
    assert (await renew_lease(node, EXPERIMENT, holder="tests", lease_seconds=60)).state == "held"
    fill(small_disk)
    assert (await renew_lease(node, EXPERIMENT, holder="tests", lease_seconds=60)).state == "held"
    deadline = time.monotonic() + 60
    while "the disk is full" not in (await follow_guard(node, EXPERIMENT)).status.risk:
        assert time.monotonic() < deadline, "the full disk is never told"
        fill(small_disk)
    fill(small_disk)
    assert (await renew_lease(node, EXPERIMENT, holder="tests", lease_seconds=0.2)).seconds_left is not None
    assert guard.pid is not None
    await until(lambda: not _runs(guard.pid or 0), "the guard has ended", seconds=60)
    job.wait(30)
    words = [line.what for line in await guard_account(node, EXPERIMENT)]
    assert words[-3:] == ["lease ran out", "jobs ended", "guard ended"]
    assert (await guard_status(node, EXPERIMENT)).lease.state == "expired"


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
