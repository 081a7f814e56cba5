""" "Restore now", and a way back that was begun: kept whatever becomes of the console that began it."""

import asyncio
from pathlib import Path

import pytest
from support.borrowed_lab import CHECKLIST, a_job_runs, home_of, left, profile_with, serving, started
from support.docker_engine import Standin
from support.local_node import LocalNode
from support.processes import is_alive, processes_with
from support.waiting import until
from support.window import brought_back, healthy

from console.engine.live import LiveSession
from console.nodes.agent.program.folder import Folder

WISH = "production needs it back at once"


@pytest.fixture
def training(standin: Standin, trainer: Path) -> str:
    return profile_with({"node-a": standin}, trainer=trainer, nodes=["node-a"])


@pytest.fixture
def failing(standin: Standin, trainer: Path) -> str:
    """Its runs end at once, and the lab goes on to its end."""
    trainer.write_text("#!/bin/sh\nexit 1\n")
    profile = profile_with({"node-a": standin}, trainer=trainer, nodes=["node-a"])
    assert "run_failed: retry" in profile
    return profile.replace("run_failed: retry", "run_failed: go on")


async def test_a_console_killed_after_the_wish_is_followed_by_one_that_grants_it(
    small_lab, folder: Path, standin: Standin, training: str
) -> None:
    await serving({"node-a": standin}, folder)
    async with small_lab(CHECKLIST, profile=training, folder=folder.name) as lab:
        conducting = asyncio.create_task(lab.conductor.conduct())
        run, job = await a_job_runs(lab.recorder)
        await LiveSession(lab.conductor).restore_now(WISH)
        await left(conducting)
        assert conducting.cancelled()
        assert is_alive(job)
    async with small_lab(CHECKLIST, profile=training, folder=folder.name) as lab:
        assert await lab.conductor.conduct() == "stopped"
        assert not is_alive(job)
        assert started(lab.recorder) == [run]
        assert (lab.recorder.experiment.runs[run].outcome, lab.recorder.experiment.runs[run].cause) == (
            "stopped",
            WISH,
        )
        assert healthy(standin)


async def test_whoever_leaves_after_the_wish_leaves_it_to_the_guards(
    small_lab, folder: Path, standin: Standin, training: str
) -> None:
    await serving({"node-a": standin}, folder)
    async with small_lab(CHECKLIST, profile=training, folder=folder.name) as lab:
        conducting = asyncio.create_task(lab.conductor.conduct())
        await a_job_runs(lab.recorder)
        await LiveSession(lab.conductor).restore_now(WISH)
        await left(conducting)
        assert conducting.cancelled()
        await lab.conductor.leave()
    status = await brought_back(LocalNode(home_of(folder, "node-a")), experiment=folder.name)
    assert not status.service_touched
    assert healthy(standin)
    assert not processes_with(f"LAB_RUN_DIR={folder}")


async def test_the_wish_is_granted_after_the_end_of_the_lab(
    small_lab, folder: Path, standin: Standin, failing: str
) -> None:
    """The service did not start, the lab ended without it, the screens are still open."""
    await serving({"node-a": standin}, folder)
    async with small_lab(CHECKLIST, profile=failing, folder=folder.name, only=("E0",)) as lab:
        conducting = asyncio.create_task(lab.conductor.conduct())
        await until(lambda: lab.recorder.experiment.service.state == "memory free", "it is stopped", 60)
        standin.set(crash=True)
        assert await conducting == "fell short"
        assert lab.conductor.lending.owed
        standin.set()
        await LiveSession(lab.conductor).restore_now(WISH)
        assert healthy(standin)
        assert lab.recorder.experiment.service.state == "healthy"
        assert not any(status.alive for status in (await lab.conductor.guarding.statuses()).values())


async def test_a_service_that_came_back_without_the_console_is_not_stopped_again(
    small_lab, folder: Path, standin: Standin, failing: str
) -> None:
    """The console was killed while the service started after the lab."""
    await serving({"node-a": standin}, folder)
    node = LocalNode(home_of(folder, "node-a"))
    async with small_lab(CHECKLIST, profile=failing, folder=folder.name, only=("E0",)) as lab:
        conducting = asyncio.create_task(lab.conductor.conduct())
        await until(lambda: lab.recorder.experiment.service.state == "memory free", "it is stopped", 60)
        standin.set(ready_seconds=2)
        await until(lambda: "'starting stand-in'" in str(lab.recorder.experiment.timeline), "it starts", 60)
        await left(conducting)
    there = Folder(str(node.home / ".lab"), folder.name)
    await until(lambda: not there.state()["service_touched"], "the node brought it back", 60)
    pid = (node.home / "service.pid").read_text()
    async with small_lab(CHECKLIST, profile=failing, folder=folder.name, only=("E0",)) as lab:
        assert await lab.conductor.conduct() == "fell short"
        assert lab.recorder.experiment.service.state == "healthy"
    assert (node.home / "service.pid").read_text() == pid
    assert healthy(standin)
