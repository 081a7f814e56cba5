"""Guards as the console keeps them: started together, held by one experiment, replaced, listened to."""

import asyncio
import gc
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.borrowed_lab import profile_with, serving
from support.docker_engine import Standin
from support.processes import is_alive
from support.waiting import until
from support.window import brought_back, healthy

from console.cli.files import shipped
from console.core.errors import LabError, ServiceError
from console.engine.guarding import Guarding
from console.engine.opening import LabFiles, open_recorder
from console.nodes import agent
from console.nodes.agent.program.folder import Folder

CHECKLIST = """
name: small
title: Small
items:
  - {number: 1, id: one, title: One, title_zh: 一, why: w, steps: [{id: do, title: Do, command: ["true"]}]}
"""


def files(checklist: str) -> LabFiles:
    profile = (shipped("profiles") / "embedded.yaml").read_text(encoding="utf-8")
    return LabFiles(profile, "small.yaml", checklist)


async def test_killed_guard_is_started_again(small_lab) -> None:
    async with small_lab(CHECKLIST) as lab:
        guarding = lab.conductor.guarding
        await guarding.start()
        node, name = lab.crew["node-a"].node, lab.recorder.experiment.name
        first = (await agent.guard_status(node, name)).pid
        assert first is not None
        keeper = asyncio.create_task(guarding.keep())
        try:
            os.kill(first, signal.SIGKILL)
            await until(
                lambda: _told(lab, "gone") and _told(lab, "started again"), "gone and started again", 60
            )
            status = await agent.guard_status(node, name)
            assert status.alive
            assert status.pid != first
        finally:
            keeper.cancel()
            await asyncio.wait({keeper})
            await guarding.end()


def _told(lab, words: str) -> bool:
    return any(
        words in str(event) for _, event in lab.recorder.journal.events() if event.kind == "guard seen"
    )


async def test_one_node_that_refuses_ends_the_other_nodes_call(small_lab, caplog) -> None:
    """The event loop warns of nothing: no task destroyed while pending, no exception never retrieved."""
    async with small_lab(CHECKLIST) as lab:
        (Path(lab.crew["node-b"].places["home"]) / ".lab").write_text("no folder can be made here")
        with pytest.raises(LabError) as told:
            await lab.conductor.guarding.start()
        assert told.value.node == "node-b"
        here = asyncio.current_task()
        assert not [task for task in asyncio.all_tasks() if task is not here and "_start" in repr(task)]
        gc.collect()
        await agent.end_guard(
            lab.crew["node-a"].node, lab.recorder.experiment.name, holder=lab.conductor.guarding.holder
        )
    assert not [record for record in caplog.records if record.name == "asyncio"]


async def test_a_guard_that_refuses_is_not_called_gone(small_lab) -> None:
    async with small_lab(CHECKLIST) as lab:
        guarding, node = lab.conductor.guarding, lab.crew["node-a"].node
        await guarding.start()
        lease = Folder(f"{lab.crew['node-a'].places['home']}/.lab", lab.recorder.experiment.name)
        with lease.lease_change() as document:
            document["holder"] = "somebody else"
        keeper = asyncio.create_task(guarding.keep())
        try:
            await until(
                lambda: "somebody else holds this node" in str(lab.recorder.experiment.timeline),
                "refusal",
                60,
            )
        finally:
            keeper.cancel()
            await asyncio.wait({keeper})
        assert not _told(lab, "gone")
        for name, holder in (("node-a", "somebody else"), ("node-b", guarding.holder)):
            await agent.end_guard(lab.crew[name].node, lab.recorder.experiment.name, holder=holder)
        assert not (await agent.guard_status(node, lab.recorder.experiment.name)).alive


async def test_two_experiments_of_one_user_are_two_holders(small_lab, tmp_path: Path) -> None:
    """Both are named alike and reach the same nodes; only the one that came first holds them."""
    async with small_lab(CHECKLIST) as first:
        await first.conductor.guarding.start()
        (tmp_path / "elsewhere" / "small").mkdir(parents=True)
        other = open_recorder(tmp_path / "elsewhere" / "small", files(CHECKLIST))
        second = Guarding(other, first.crew)
        with pytest.raises(ServiceError, match=f"{first.conductor.guarding.holder} holds this node"):
            await second.start()
        with pytest.raises(ServiceError, match="holds this node"):
            await second.phase("training")
        with pytest.raises(ServiceError, match="holds this node"):
            await second.end()
        again = open_recorder(tmp_path / "small", files(CHECKLIST))
        resumed = Guarding(again, first.crew)
        await resumed.start()
        await resumed.end()
        for recorder in (other, again):
            recorder.journal.close()


async def test_what_a_guard_remarks_on_reaches_the_state(small_lab) -> None:
    async with small_lab(CHECKLIST) as lab:
        guarding, recorder = lab.conductor.guarding, lab.recorder
        await guarding.start()
        name = recorder.experiment.name
        folder = Folder(f"{lab.crew['node-a'].places['home']}/.lab", name)
        back = recorder.now() - timedelta(seconds=40)
        folder.set(risk="logind ends it", came_back_at=back.timestamp())
        keeper = asyncio.create_task(guarding.keep())
        try:
            await until(lambda: recorder.experiment.nodes["node-a"].came_back_at, "the return is told", 60)
            node = recorder.experiment.nodes["node-a"]
            assert node.risk == "logind ends it"
            assert abs(node.came_back_at - back) < timedelta(seconds=5)
            assert "came back by itself" in str(recorder.experiment.timeline)
            folder.set(came_back_at=None)
            await until(lambda: not recorder.experiment.nodes["node-a"].came_back_at, "it is gone again", 60)
        finally:
            keeper.cancel()
            await asyncio.wait({keeper})
            await guarding.end()


@pytest.mark.parametrize("rebooted", [False, True], ids=["killed", "rebooted"])
async def test_a_guard_lost_while_its_lease_ran_out_is_replaced(
    small_lab, folder: Path, standin: Standin, rebooted: bool
) -> None:
    """The laptop slept: nobody but a new guard would bring the service back when it is gone again."""
    profile, slept = profile_with({"node-a": standin}, nodes=["node-a"]), timedelta()
    await serving({"node-a": standin}, folder)

    def now() -> datetime:
        return datetime.now(UTC) + slept

    async with small_lab(CHECKLIST, profile=profile, folder=folder.name, now=now) as lab:
        guarding, node = lab.conductor.guarding, lab.crew["node-a"].node
        await guarding.start()
        await lab.conductor.lending.borrow()
        first = (await agent.guard_status(node, folder.name)).pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: not is_alive(first), "the guard is gone")
        there = Folder(f"{lab.crew['node-a'].places['home']}/.lab", folder.name)
        with there.lease_change() as lease:
            lease["expires"] = 0.0
            lease["boot_id"] = "another boot" if rebooted else lease["boot_id"]
        if rebooted:
            there.set(guard={**there.state()["guard"], "boot_id": "another boot"})
        slept = timedelta(hours=1)
        lost = await agent.guard_status(node, folder.name)
        assert (lost.alive, lost.service_touched, lost.rebooted) == (False, True, rebooted)
        keeper = asyncio.create_task(guarding.keep())
        try:
            await until(lambda: _told(lab, "started again"), "it is replaced", 60)
        finally:
            keeper.cancel()
            await asyncio.wait({keeper})
        await agent.renew_lease(node, folder.name, holder=guarding.holder, lease_seconds=0.2)
        assert not (await brought_back(node, experiment=folder.name)).service_touched
        assert healthy(standin)
