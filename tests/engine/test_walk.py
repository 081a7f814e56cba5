"""The walk: boxes of time that end their processes, evidence that stays, decisions that are journalled."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.waiting import until

from console.core.plan.checklist import ItemState, Verdict
from console.core.record import events as ev
from console.engine.decisions import Decisions
from console.engine.steps import StepRunner
from console.engine.walking import Walk, WalkStopped

HEAD = "name: small\ntitle: Small\nbox_seconds: {walk}\nitems:\n"
ITEM = """\
  - number: {number}
    id: item{number}
    title: Item {number}
    title_zh: 第 {number} 项
    why: because
    box_seconds: {box}
    steps:
      - id: do
        title: Do it
        command: {command}
        on: {on}
        timeout_seconds: 60
"""


def checklist(*commands: list[str], walk: float = 60, box: float = 30, on: str = "first") -> str:
    items = [
        ITEM.format(number=number, command=json.dumps(command), box=box, on=on)
        for number, command in enumerate(commands, 1)
    ]
    return HEAD.format(walk=walk) + "".join(items)


def walk_of(lab: Any) -> Walk:
    steps = StepRunner(lab.recorder, lab.crew, lab.conductor.running)
    return Walk(lab.recorder, steps, Decisions(lab.recorder, headless=True))


def ended(lab: Any) -> list[ev.StepEnded]:
    return [e for _, e in lab.recorder.journal.events() if isinstance(e, ev.StepEnded)]


async def test_items_in_order_on_every_node(small_lab) -> None:
    async with small_lab(checklist(["true"], ["printf", "%s", "hello"], on="every")) as lab:
        assert await walk_of(lab).walk() is Verdict.ALL_THROUGH
        second = sorted((e.item, e.node) for e in ended(lab)[2:])
        assert second == [("item2", "node-a"), ("item2", "node-b")]
        evidence = json.loads((lab.recorder.journal.folder / str(ended(lab)[2].evidence)).read_text())
        assert evidence["output"] == "hello"


async def test_box_ends_the_processes(small_lab, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    command = ["bash", "-c", f"echo $$ > {pid_file}; exec sleep 600"]
    async with small_lab(checklist(command, ["true"], box=2)) as lab:
        assert await walk_of(lab).walk() is Verdict.DOWN
        items = lab.recorder.experiment.items
        assert items["item1"].state in (ItemState.TIMED_OUT, ItemState.FAILED)
        assert items["item2"].state is ItemState.PASSED
        assert items["item1"].reason
    pid = int(pid_file.read_text())
    command_line = Path(f"/proc/{pid}/cmdline")
    assert not command_line.exists() or b"sleep" not in command_line.read_bytes()


async def test_walk_box_closes_what_was_not_reached(small_lab) -> None:
    async with small_lab(checklist(["sleep", "3"], ["true"], ["true"], walk=2, box=20)) as lab:
        assert await walk_of(lab).walk() is Verdict.DOWN
        states = [lab.recorder.experiment.items[f"item{n}"].state for n in (1, 2, 3)]
        assert states[1:] == [ItemState.TIMED_OUT, ItemState.TIMED_OUT]
        assert "the walk's box ended" in lab.recorder.experiment.items["item3"].reason


async def test_failure_keeps_the_raw_error_and_asks(small_lab) -> None:
    command = ["bash", "-c", "echo 'disk on fire' >&2; exit 3"]
    async with small_lab(checklist(command)) as lab:
        await walk_of(lab).walk()
        (step,) = ended(lab)
        assert (step.outcome, step.exit_status) == ("failed", 3)
        assert "disk on fire" in step.error
        (decision,) = lab.recorder.experiment.decisions.values()
        assert "disk on fire" in decision.raw_error
        assert (decision.choice, decision.by) == ("go on", "policy")


async def test_retry_within_the_box(small_lab, tmp_path: Path) -> None:
    flag = tmp_path / "second"
    command = ["bash", "-c", f"test -e {flag} || {{ touch {flag}; exit 1; }}"]
    async with small_lab(checklist(command, box=300, walk=600)) as lab:
        profile = lab.recorder.experiment.profile
        assert profile.policies.item_failed == "go on"
        decisions = Decisions(lab.recorder, headless=False)
        walk = walk_of(lab)
        walk.decisions = decisions
        task = asyncio.create_task(walk.walk())
        await until(lambda: lab.recorder.experiment.open_decision is not None, "a decision")
        asked = lab.recorder.experiment.open_decision
        assert asked.recommended == "retry"
        await decisions.answer(asked.id, "retry", "it was the first time")
        async with asyncio.timeout(30):
            assert await task is Verdict.ALL_THROUGH
        assert lab.recorder.experiment.items["item1"].attempt == 2
        assert lab.recorder.experiment.decisions[asked.id].by == "person"


@pytest.mark.parametrize(
    ("error", "recommended"),
    [
        ("ModuleNotFoundError: No module named 'transformer_engine'", "go on"),
        ("sftp: Connection reset by peer", "retry"),
    ],
)
async def test_recommended_choice_follows_the_cause(small_lab, error: str, recommended: str) -> None:
    command = ["bash", "-c", f'echo "{error}" >&2; exit 1']
    async with small_lab(checklist(command, box=300, walk=600)) as lab:
        await walk_of(lab).walk()
        (decision,) = lab.recorder.experiment.decisions.values()
        assert decision.recommended == recommended
        assert {choice.id for choice in decision.choices} == {"go on", "retry", "stop"}


async def test_nothing_is_brought_back_where_nothing_was_borrowed(small_lab) -> None:
    async with small_lab(checklist(["false"])) as lab:
        await walk_of(lab).walk()
        (decision,) = lab.recorder.experiment.decisions.values()
        assert not any("service" in choice.leads_to for choice in decision.choices)


async def test_stop_ends_the_walk(small_lab) -> None:
    async with small_lab(checklist(["false"], ["true"])) as lab:
        decisions = Decisions(lab.recorder, headless=False)
        walk = walk_of(lab)
        walk.decisions = decisions
        task = asyncio.create_task(walk.walk())
        await until(lambda: lab.recorder.experiment.open_decision is not None, "a decision")
        await decisions.answer(lab.recorder.experiment.open_decision.id, "stop", "enough")
        with pytest.raises(WalkStopped, match="item 1"):
            await task
        assert lab.recorder.experiment.items["item2"].state is ItemState.WAITING


async def test_interrupted_walk_goes_on_at_the_same_item(small_lab, tmp_path: Path) -> None:
    log = tmp_path / "did"
    first = ["bash", "-c", f"echo 1 >> {log}"]
    text = checklist(first, ["sleep", "600"], ["true"], walk=900, box=600)
    async with small_lab(text) as lab:
        task = asyncio.create_task(walk_of(lab).walk())
        await until(lambda: lab.recorder.experiment.items["item2"].state is ItemState.RUNNING, "item2")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with small_lab(text) as lab:
        items = lab.recorder.experiment.items
        assert items["item1"].state is ItemState.PASSED
        task = asyncio.create_task(walk_of(lab).walk())
        await until(lambda: lab.recorder.experiment.items["item2"].attempt == 2, "a second attempt")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert log.read_text() == "1\n"


async def test_an_item_that_was_interrupted_took_all_its_time(small_lab, tmp_path: Path) -> None:
    done = tmp_path / "done"
    text = checklist(
        ["bash", "-c", f"until [ -e {done} ]; do read -rt 0.05 <> <(:); done"], walk=900, box=600
    )

    def begun(lab: Any) -> Any:
        return lab.recorder.experiment.items["item1"].started_at

    async with small_lab(text) as lab:
        task = asyncio.create_task(walk_of(lab).walk())
        await until(lambda: begun(lab) and (lab.recorder.now() - begun(lab)).total_seconds() > 1, "a second")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    done.touch()
    async with small_lab(text) as lab:
        await walk_of(lab).walk()
        first, _ = events_of(lab, ev.ItemStarted)
        (end,) = events_of(lab, ev.ItemEnded)
        took = (end.at - first.at).total_seconds()
        assert took > 1
        assert lab.recorder.experiment.items["item1"].seconds == pytest.approx(took, abs=0.2)


async def left_open(small_lab: Any, text: str) -> ev.DecisionAsked:
    """The decision that a console left open when it ended."""
    async with small_lab(text) as lab:
        walk = walk_of(lab)
        walk.decisions = Decisions(lab.recorder, headless=False)
        task = asyncio.create_task(walk.walk())
        await until(lambda: lab.recorder.experiment.open_decision is not None, "a decision")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (asked,) = events_of(lab, ev.DecisionAsked)
        return asked


def events_of(lab: Any, kind: type[Any]) -> list[Any]:
    return [event for _, event in lab.recorder.journal.events() if isinstance(event, kind)]


@pytest.mark.parametrize("choice", ["go on", "retry", "stop"])
async def test_an_open_decision_is_taken_up_again(small_lab, tmp_path: Path, choice: str) -> None:
    log = tmp_path / "did"
    text = checklist(["bash", "-c", f"echo 1 >> {log}; echo broken >&2; exit 3"], walk=900, box=600)
    asked = await left_open(small_lab, text)
    async with small_lab(text) as lab:
        walk = walk_of(lab)
        walk.decisions = Decisions(lab.recorder, headless=False)
        task = asyncio.create_task(walk.walk())
        await walk.decisions.answer(asked.decision, choice, "thought it over")
        if choice == "retry":
            await until(lambda: log.read_text() == "1\n1\n", "a second attempt")
            task.cancel()
        async with asyncio.timeout(30):
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
        view = lab.recorder.experiment.items["item1"]
        if choice == "retry":
            assert view.attempt == 2
            return
        assert log.read_text() == "1\n"
        assert events_of(lab, ev.DecisionAsked) == [asked]
        assert (view.state, view.reason) == (ItemState.FAILED, asked.raw_error)
        assert isinstance(outcome, WalkStopped) if choice == "stop" else outcome is Verdict.DOWN
    if choice == "stop":
        async with small_lab(text) as lab:
            with pytest.raises(WalkStopped, match="item 1"):
                await walk_of(lab).walk()


async def test_without_a_screen_the_policy_answers_what_was_left_open(small_lab) -> None:
    text = checklist(["false"], walk=900, box=600)
    asked = await left_open(small_lab, text)
    async with small_lab(text) as lab:
        assert await walk_of(lab).walk() is Verdict.DOWN
        (made,) = events_of(lab, ev.DecisionMade)
        assert (made.decision, made.choice, made.by) == (asked.decision, "go on", "policy")
        assert events_of(lab, ev.DecisionAsked) == [asked]
        assert len(ended(lab)) == 1
