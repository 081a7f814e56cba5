"""The walk through the matrix taken up again: what was decided or asked stands."""

import asyncio
from typing import Any

import pytest
from support.borrowed_lab import CHECKLIST, profile_with
from support.waiting import until

from console.core.record import events as ev
from console.engine.decisions import Decisions
from console.engine.matrix_walk import MatrixWalk
from console.engine.walking import WalkStopped

STOPS = profile_with({}).replace("run_failed: retry", "run_failed: stop")


def matrix_of(lab: Any, *, headless: bool) -> MatrixWalk:
    decisions = Decisions(lab.recorder, headless=headless)
    return MatrixWalk(lab.recorder, lab.crew, lab.conductor.running, decisions)


async def test_an_open_decision_after_a_run_is_asked_again_and_the_run_not_repeated(small_lab) -> None:
    assert "run_failed: stop" in STOPS
    async with small_lab(CHECKLIST, profile=STOPS) as lab:
        at = lab.recorder.now()
        launch = ev.NodeLaunch(node="node-a", rank=0, argv=("true",), env={})
        first = lab.recorder.experiment.configurations[0]
        planned = {"at": at, "run": f"{first}-1", "config": first, "attempt": 1, "purpose": "matrix"}
        planned |= {"launches": [launch], "log_node": "node-a", "settings": {}}
        lab.recorder.record(ev.RunPlanned.model_validate(planned))
        lab.recorder.record(ev.RunEnded(at=at, run=f"{first}-1", outcome="failed", cause="broken"))
        task = asyncio.create_task(matrix_of(lab, headless=False).walk())
        await until(lambda: lab.recorder.experiment.open_decision is not None, "a decision")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with small_lab(CHECKLIST, profile=STOPS) as lab:
        with pytest.raises(WalkStopped, match=f"stopped after {first}-1"):
            await matrix_of(lab, headless=True).walk()
        events = [event for _, event in lab.recorder.journal.events()]
        assert [event.run for event in events if isinstance(event, ev.DecisionAsked)] == [f"{first}-1"]
        assert [event.by for event in events if isinstance(event, ev.DecisionMade)] == ["policy"]
        assert list(lab.recorder.experiment.runs) == [f"{first}-1"]
