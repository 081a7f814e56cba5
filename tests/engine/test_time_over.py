"""The lab's time on a node ends: no job goes on or begins beside the service, and the service comes back."""

import asyncio
from pathlib import Path

import pytest
from support.borrowed_lab import CHECKLIST, a_job_runs, home_of, left, profile_with, serving, started
from support.docker_engine import Standin
from support.local_node import LocalNode
from support.processes import is_alive, processes_with
from support.window import brought_back, healthy

from console.cli import service
from console.core.errors import LeaseOver, ServiceError
from console.core.plan.launch import Launch
from console.engine.running import RunRequest
from console.nodes.agent import guard_account, renew_lease


async def test_the_lease_ends_while_the_console_is_awake_and_connected(
    small_lab, folder: Path, standin: Standin, trainer: Path
) -> None:
    profile = profile_with({"node-a": standin}, trainer=trainer, nodes=["node-a"])
    await serving({"node-a": standin}, folder)
    async with small_lab(CHECKLIST, profile=profile, folder=folder.name) as lab:
        recorder, guarding = lab.recorder, lab.conductor.guarding
        conducting = asyncio.create_task(lab.conductor.conduct())
        run, _ = await a_job_runs(recorder)
        standin.set(ready_seconds=3)
        await renew_lease(lab.crew["node-a"].node, folder.name, holder=guarding.holder, lease_seconds=0.2)
        with pytest.raises(LeaseOver, match=r"node-a: the lab's time on this node is over \(expired\)"):
            await conducting
        assert healthy(standin)
        assert recorder.experiment.service.state == "healthy"
        assert started(recorder) == [run]
        assert not processes_with(f"LAB_RUN_DIR={folder}")
        assert not recorder.experiment.running_jobs
        assert not any(status.alive for status in (await guarding.statuses()).values())


async def test_the_console_comes_back_after_the_guard_gave_the_machines_back(
    small_lab, folder: Path, standin: Standin, trainer: Path
) -> None:
    profile = profile_with({"node-a": standin}, trainer=trainer, nodes=["node-a"])
    await serving({"node-a": standin}, folder)
    node = LocalNode(home_of(folder, "node-a"))
    async with small_lab(CHECKLIST, profile=profile, folder=folder.name) as lab:
        conducting = asyncio.create_task(lab.conductor.conduct())
        run, job = await a_job_runs(lab.recorder)
        await left(conducting)
        holder = lab.conductor.guarding.holder
    await renew_lease(node, folder.name, holder=holder, lease_seconds=0.2)
    assert not (await brought_back(node, experiment=folder.name)).service_touched
    assert not is_alive(job)
    async with small_lab(CHECKLIST, profile=profile, folder=folder.name) as lab:
        with pytest.raises(ServiceError, match="node-a: the service was brought back while no console"):
            await lab.conductor.conduct()
        assert started(lab.recorder) == [run]
        assert healthy(standin)
        assert lab.recorder.experiment.service.state == "healthy"
        assert not processes_with(f"LAB_RUN_DIR={folder}")


async def test_no_job_begins_where_the_guard_has_begun_the_way_back(small_lab) -> None:
    async with small_lab(CHECKLIST) as lab:
        node, guarding = lab.crew["node-a"].node, lab.conductor.guarding
        await guarding.start()
        name = lab.recorder.experiment.name
        await renew_lease(node, name, holder=guarding.holder, lease_seconds=0.1)
        assert (await brought_back(node, experiment=name)).expired == "lease ran out"
        launch = Launch("node-a", 0, ("/bin/sleep", "600"), {}, shows_log=True)
        with pytest.raises(LeaseOver):
            await lab.conductor.running.carry(
                RunRequest("E0-1", "E0", 1, "matrix", "swift", (launch,), settings={})
            )
        assert started(lab.recorder) == []
        await guarding.end()


async def test_a_restore_that_is_asked_for_ends_the_jobs_first(
    small_lab, folder: Path, standin: Standin, trainer: Path
) -> None:
    """`lab service restore` after a goodbye that left a job at work."""
    profile = profile_with({"node-a": standin}, trainer=trainer, nodes=["node-a"])
    await serving({"node-a": standin}, folder)
    async with small_lab(CHECKLIST, profile=profile, folder=folder.name) as lab:
        conducting = asyncio.create_task(lab.conductor.conduct())
        _, job = await a_job_runs(lab.recorder)
        await left(conducting)
        await lab.conductor.leave()
        assert is_alive(job)
        assert await service._restore(service.Hands(lab.recorder, lab.crew)) == 0
        assert healthy(standin)
        assert not is_alive(job)
        account = [line.what for line in await guard_account(lab.crew["node-a"].node, folder.name)]
        assert account.index("jobs ended") < account.index("starting")
