"""A guard that was killed is noticed, told, and replaced."""

import asyncio
import os
import signal

from support.waiting import until

from console.nodes import agent

CHECKLIST = """
name: small
title: Small
items:
  - {number: 1, id: one, title: One, title_zh: 一, why: w, steps: [{id: do, title: Do, command: ["true"]}]}
"""


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
