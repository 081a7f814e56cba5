"""A short run that nobody waits for any longer has an end in the journal, and its job ends later."""

import asyncio
from pathlib import Path

import pytest
from support.processes import is_alive
from support.waiting import until

from console.core.plan.checklist import ItemState
from console.core.record import events as ev
from console.engine import walking
from console.engine.decisions import Decisions
from console.engine.jobs_of_run import JobsOfRun
from console.engine.steps import StepRunner
from console.engine.walking import Walk

SMOKE = """
name: small
title: Small
items:
  - number: 1
    id: short
    title: Short run
    title_zh: 短
    why: w
    box_seconds: 60
    steps: [{id: train, title: Train, train: ordinary, on: first, timeout_seconds: 2}]
"""


def planned(lab, run: str, config: str, purpose: str) -> JobsOfRun:
    launch = ev.NodeLaunch(node="node-a", rank=0, argv=("sleep", "600"), env={})
    lab.recorder.record(
        ev.RunPlanned.model_validate(
            {"at": lab.recorder.now(), "run": run, "config": config, "attempt": 1, "purpose": purpose}
            | {"launches": [launch], "log_node": "node-a", "settings": {}}
        )
    )
    return JobsOfRun(lab.recorder, lab.crew, run, [launch])


async def test_a_step_out_of_time_ends_its_run_in_the_journal(
    small_lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "OVERRUN_SECONDS", 0.5)
    async with small_lab(SMOKE) as lab:
        steps = StepRunner(lab.recorder, lab.crew, lab.conductor.running)

        async def out_of_contact(*_: object) -> None:
            planned(lab, "smoke-ordinary-1", "smoke-ordinary", "smoke")
            await asyncio.Event().wait()

        monkeypatch.setattr(StepRunner, "_train", out_of_contact)
        await Walk(lab.recorder, steps, Decisions(lab.recorder, headless=True)).walk()
        run = lab.recorder.experiment.runs["smoke-ordinary-1"]
        assert run.outcome == "timed out"
        assert "whether its job still runs there is not known" in run.cause
        assert lab.recorder.experiment.current_run is None
        assert lab.recorder.experiment.items["short"].state in (ItemState.TIMED_OUT, ItemState.FAILED)


@pytest.mark.parametrize("recorded", [True, False], ids=["start recorded", "start not recorded"])
async def test_the_next_start_ends_a_job_that_was_given_up(small_lab, recorded: bool) -> None:
    async with small_lab(SMOKE) as lab:
        first = planned(lab, "smoke-ordinary-1", "smoke-ordinary", "smoke")
        await first.start()
        pid = lab.recorder.experiment.runs["smoke-ordinary-1"].jobs["node-a"].pid
        assert pid is not None
        if not recorded:
            planned(lab, "smoke-ordinary-1", "smoke-ordinary", "smoke")
        lab.conductor.running.abandon("smoke-ordinary-1", "no contact")
        assert is_alive(pid)
        second = planned(lab, "E0-1", "E0", "matrix")
        try:
            await second.start()
            await until(lambda: not is_alive(pid), "the job that was given up is gone")
            jobs = {run: view.jobs["node-a"].state for run, view in lab.recorder.experiment.runs.items()}
            assert jobs == {"smoke-ordinary-1": "ended", "E0-1": "running"}
        finally:
            await second.stop(grace_seconds=1)


async def test_an_interpreter_that_is_not_there_is_one_clear_cause(small_lab) -> None:
    async with small_lab(SMOKE) as lab:
        launch = ev.NodeLaunch(node="node-a", rank=0, argv=("/no/such/python", "-m", "swift"), env={})
        with pytest.raises(Exception, match="/no/such/python") as told:
            await JobsOfRun(lab.recorder, lab.crew, "E0-1", [launch])._start(launch)
        assert "Traceback" not in str(told.value)
        assert Path(lab.crew["node-a"].places["home"]).is_dir()
