"""A link that is lost for a while ends neither a run nor a step: the console waits and goes on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.hosts import Host
from support.proxy import Proxy
from support.waiting import until

from console.cli.files import read_lab, read_rules
from console.core.errors import HostKeyChanged, NodeError, Unreachable
from console.core.plan.launch import Launch
from console.core.record.events import Noted
from console.engine import guarding
from console.engine.contact import with_contact
from console.engine.crew import Member
from console.engine.diagnosing import Diagnosing
from console.engine.opening import open_recorder
from console.engine.recorder import Recorder
from console.engine.running import Running, RunRequest
from console.nodes.ssh import Node

START = "[INFO:swift] Start time of running main: 2026-11-29 14:10:00.000000"
STEP = (
    "{'loss': 7.0, 'grad_norm': 3.2, 'learning_rate': 1e-05, 'epoch': 0.5, "
    "'global_step/max_steps': '%d/2', 'elapsed_time': '%ds', 'train_speed(s/it)': 1.0}"
)
END = "[INFO:swift] End time of running main: 2026-11-29 14:20:00.000000"


@dataclass
class Lab:
    recorder: Recorder
    crew: dict[str, Member]
    running: Running
    proxy: Proxy
    host: Host

    def request(self, script: str, limit: float | None = None) -> RunRequest:
        launch = Launch("node-a", 0, ("/bin/bash", "-c", script), {}, shows_log=True)
        return RunRequest("E0-1", "E0", 1, "matrix", "swift", (launch,), {}, limit)

    @property
    def steps(self) -> int:
        run = self.recorder.experiment.runs.get("E0-1")
        return len(run.steps) if run else 0

    def noted(self, words: str) -> bool:
        events = self.recorder.journal.events()
        return any(isinstance(event, Noted) and words in event.words for _, event in events)

    @property
    def down(self) -> bool:
        return self.crew["node-a"].node.link.state != "up"


@pytest.fixture
async def lab(host: Host, make_node: Callable[..., Awaitable[Node]], tmp_path: Path) -> AsyncIterator[Lab]:
    """One node behind a proxy that can go down, and what carries out runs on it."""
    recorder = open_recorder(tmp_path / "experiment", read_lab("embedded"))
    async with Proxy(host.port) as proxy:
        node = await make_node(host.through(proxy.port))
        crew = {"node-a": Member(recorder.experiment.profile.nodes[0], node, {})}
        running = Running(recorder, crew, Diagnosing(recorder, read_rules()))
        yield Lab(recorder, crew, running, proxy, host)
        await node.close()
    recorder.journal.close()


def printing(*lines: str) -> str:
    return "".join(f'echo "{line}"; ' for line in lines)


async def test_run_begun_without_a_link_starts_when_it_is_back(lab: Lab) -> None:
    lab.proxy.go_down()
    await until(lambda: lab.down, "the loss of the link")
    task = asyncio.create_task(lab.running.carry(lab.request(printing(START, STEP % (1, 1), END))))
    await until(lambda: "E0-1" in lab.recorder.experiment.runs, "the plan of the run")
    lab.proxy.come_up()
    async with asyncio.timeout(60):
        run = await task
    assert (run.outcome, len(run.steps)) == ("done", 1)


async def test_run_that_ended_in_an_outage_is_read_to_its_end(lab: Lab, tmp_path: Path) -> None:
    go = tmp_path / "go"
    wait = f"while [ ! -e {go} ]; do sleep 0.1; done; "
    script = printing(START, STEP % (1, 1)) + wait + printing(STEP % (2, 2), END)
    task = asyncio.create_task(lab.running.carry(lab.request(script)))
    await until(lambda: lab.steps == 1, "the first step")
    lab.proxy.go_down()
    await until(lambda: lab.down, "the loss of the link")
    go.touch()
    (log,) = lab.host.home.glob(".lab/*/E0-1/log")
    await until(lambda: b"End time" in log.read_bytes(), "the end of the job")
    lab.proxy.come_up()
    async with asyncio.timeout(60):
        run = await task
    assert (run.outcome, [step.step for step in run.steps]) == ("done", [1, 2])
    assert run.logs["node-a"].sha256


async def test_run_over_its_limit_in_an_outage_is_stopped_afterwards(lab: Lab, tmp_path: Path) -> None:
    script = printing(START, STEP % (1, 1)) + "exec sleep 600"
    task = asyncio.create_task(lab.running.carry(lab.request(script)))
    await until(lambda: lab.steps == 1, "the first step")
    lab.proxy.go_down()
    await until(lambda: lab.down, "the loss of the link")
    lab.running.wish_stop("E0-1", "enough")
    words = "the job could not be stopped"
    await until(lambda: lab.noted(words), words)
    lab.proxy.come_up()
    async with asyncio.timeout(60):
        run = await task
    assert (run.outcome, run.cause) == ("stopped", "enough")
    assert run.jobs["node-a"].state == "ended"


async def test_vanished_log_ends_the_run_and_not_the_lab(lab: Lab) -> None:
    script = printing(START, STEP % (1, 1), END) + 'rm -f "$HOME"/.lab/*/E0-1/log'
    run = await lab.running.carry(lab.request(script))
    assert run.outcome in ("done", "failed")
    assert "node-a" not in run.logs
    assert lab.noted("the log is not complete")


async def test_deleted_run_folder_is_a_failed_run(lab: Lab) -> None:
    script = printing(START, STEP % (1, 1)) + "sleep 1; " + 'rm -rf "$HOME"/.lab/*/E0-1'
    async with asyncio.timeout(60):
        run = await lab.running.carry(lab.request(script))
    assert run.outcome == "failed"
    assert "gone without an exit status" in run.cause


async def test_other_errors_are_not_waited_out(lab: Lab) -> None:
    async def fail(error: NodeError) -> None:
        raise error

    with pytest.raises(NodeError, match="disk"):
        await with_contact(lab.crew, lambda: fail(NodeError("node-a", "the disk is full")))
    lab.proxy.go_down()
    await until(lambda: lab.down, "the loss of the link")
    with pytest.raises(HostKeyChanged):
        await with_contact(lab.crew, lambda: fail(HostKeyChanged("node-a", "another key")))


async def test_lost_call_is_made_again(lab: Lab) -> None:
    tries = []

    async def ask() -> int:
        tries.append(1)
        if len(tries) < 2:
            raise Unreachable("node-a", "no channel for a script")
        return 7

    assert await with_contact(lab.crew, ask) == 7


async def test_an_outage_is_told_once_however_often_the_guard_is_asked(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = guarding.agent.follow_guard

    async def counted(node: Node, *args: object, **more: object) -> object:
        asked.append(node.name)
        return await ask(node, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(guarding, "SAMPLES_SECONDS", 0.4)
    monkeypatch.setattr(guarding.agent, "follow_guard", counted)
    lab.proxy.go_down()
    await until(lambda: lab.down, "the loss of the link")
    keeper = asyncio.create_task(guarding.Guarding(lab.recorder, lab.crew).keep())
    await until(lambda: len(asked) > 6, "several turns")
    keeper.cancel()
    await asyncio.wait({keeper})
    assert not lab.noted("no contact"), "the link's own change says so"
