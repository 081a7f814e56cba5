"""One error inside the lab: its other half ends before the service comes back, and a lost link is none."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from support.borrowed_lab import CHECKLIST, a_job_runs, home_of, profile_with, serving
from support.docker_engine import Standin
from support.processes import is_alive
from support.waiting import until
from support.window import healthy

from console.core.errors import JournalError
from console.core.record.events import Event, Noted
from console.core.record.experiment import Experiment
from console.nodes.ssh import Node

HALVES = """
name: small
title: Small
items:
  - number: 1
    id: one
    title: One
    title_zh: 一
    why: w
    steps:
      - id: do
        title: Do
        timeout_seconds: 100
        command:
          - sh
          - -c
          - |
            [ -e ~/service.pid ] && echo $$ >~/step.pid && exec sleep 600
            until [ -s ~/../../node-a/home/step.pid ]; do sleep 0.05; done
"""


async def test_an_error_at_one_node_ends_the_step_on_the_other_before_the_service_starts(
    small_lab, folder: Path, standin: Standin
) -> None:
    """The laptop can't keep node-b's evidence while the step on node-a, which lent its service, goes on."""
    await serving({"node-a": standin}, folder)
    (folder / "evidence" / "1-one" / "do-node-b-1.json").mkdir(parents=True)
    alive_at_the_start: list[bool] = []

    def watch(_: Experiment, event: Event) -> None:
        if isinstance(event, Noted) and event.words.startswith("starting"):
            alive_at_the_start.append(is_alive(int((home_of(folder, "node-a") / "step.pid").read_text())))

    profile = profile_with({"node-a": standin}, nodes=["node-a"])
    async with small_lab(HALVES, profile=profile, folder=folder.name) as lab:
        lab.recorder.listen(watch)
        with pytest.raises(JournalError, match="can't be written"):
            await lab.conductor.conduct()
        assert alive_at_the_start == [False]
        assert healthy(standin)
        assert lab.recorder.experiment.service.state == "healthy"


def reconnected(node: Node, before: object) -> bool:
    return node.link.state == "up" and node._connection is not before


async def test_a_link_lost_while_the_service_is_stopped_is_waited_for(
    small_lab, folder: Path, standin: Standin, trainer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.nodes.service.calls._POLL_SECONDS", 0.05)
    profile = profile_with(
        {"node-a": standin}, trainer=trainer, nodes=["node-a"], drain_seconds=3, when_not_drained="stop"
    )
    await serving({"node-a": standin}, folder)
    standin.set(in_flight=1)
    async with small_lab(CHECKLIST, profile=profile, folder=folder.name) as lab:
        conducting = asyncio.create_task(lab.conductor.conduct())
        node = lab.crew["node-a"].node
        await until(lambda: "draining" in str(lab.recorder.experiment.timeline), "requests drain", 60)
        for _ in range(5):
            connection = node._connection
            connection._transport.abort()
            await until(partial(reconnected, node, connection), "the link is back", 60)
        await a_job_runs(lab.recorder)
        assert lab.recorder.experiment.service.state == "memory free"
        assert not healthy(standin)
        await lab.conductor.restore_now("the test is over")
        assert await conducting == "stopped"
        assert healthy(standin)
