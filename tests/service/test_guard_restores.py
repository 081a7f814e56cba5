"""Nobody is left to bring the service back: the guard does it, once, and proves it."""

import asyncio
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable

import psutil
import pytest
from support.docker_engine import Engine, Standin
from support.local_node import LocalNode
from support.waiting import until
from support.window import EXPERIMENT, brought_back, console, guard_for, healthy, ready, start_by_hand, words

from console.core.errors import ServiceError
from console.core.plan.service import CommandService, DockerService
from console.nodes.agent import end_guard, end_jobs, guard_status, renew_lease
from console.nodes.agent.program import stopping
from console.nodes.agent.program.folder import Folder
from console.nodes.service import inspect, prove_health, restore, stop

pytestmark = pytest.mark.docker
Spec = Callable[..., DockerService]
Command = Callable[..., CommandService]


async def test_a_console_killed_after_the_stop(
    engine: Engine,
    standin: Standin,
    node: LocalNode,
    docker_spec: Spec,
    bystander: "subprocess.Popen[bytes]",
) -> None:
    engine.run_standin(standin, "--restart", "unless-stopped")
    await ready(standin)
    spec = docker_spec()
    told = {"home": str(node.home), "spec": spec.model_dump(mode="json"), "lease_seconds": 2}
    process = console(told, node.home)
    await process.says("guarded")
    await process.says("stopped")
    assert not engine.running(standin.name)
    process.kill()
    status = await brought_back(node)
    assert status.restore is not None
    assert (status.restore.state, status.restore.by) == ("healthy", "guard")
    assert status.phase == "restored"
    assert not status.service_touched
    assert healthy(standin)
    assert bystander.poll() is None
    assert engine.policy(standin.name) == "unless-stopped"
    assert (await words(node)).count("starting") == 1
    assert (await prove_health(node, spec, None)).healthy


async def test_a_console_killed_at_a_random_moment(
    engine: Engine, standin: Standin, node: LocalNode, docker_spec: Spec
) -> None:
    engine.run_standin(standin, "--restart", "always")
    await ready(standin)
    spec = docker_spec()
    told = {"home": str(node.home), "spec": spec.model_dump(mode="json"), "lease_seconds": 1.5}
    process = console(told | {"restore_after": 0.5}, node.home)
    await process.says("guarded")
    await asyncio.sleep(random.uniform(0, 2.5))
    process.kill()
    status = await brought_back(node)
    assert not status.service_touched
    assert status.operation is None
    health = await prove_health(node, spec, None)
    assert health.healthy, (status, health)
    assert engine.policy(standin.name) == "always"


async def test_the_key_is_known_to_the_guard_alone(
    engine: Engine,
    standin: Standin,
    node: LocalNode,
    docker_spec: Spec,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAB_TEST_API_KEY", "only-in-memory-77")
    standin.set(key="only-in-memory-77")
    engine.run_standin(standin)
    await ready(standin)
    spec = docker_spec(api_key_env="LAB_TEST_API_KEY")
    record = await inspect(node, spec)
    status = await guard_for(node, spec)
    await stop(node, spec, record, experiment=EXPERIMENT)
    assert status.pid is not None
    assert "only-in-memory-77" not in " ".join(psutil.Process(status.pid).cmdline())
    await renew_lease(node, EXPERIMENT, holder="tests", lease_seconds=0.1)
    after = await brought_back(node)
    assert after.restore is not None
    assert after.restore.state == "healthy"


async def test_a_service_that_answers_health_alone_is_not_called_healthy(
    engine: Engine, standin: Standin, node: LocalNode, docker_spec: Spec
) -> None:
    engine.run_standin(standin)
    await ready(standin)
    spec = docker_spec(canary={"timeout_seconds": 1})
    record = await inspect(node, spec)
    await guard_for(node, spec)
    await stop(node, spec, record, experiment=EXPERIMENT)
    standin.set(completions="hang")
    await renew_lease(node, EXPERIMENT, holder="tests", lease_seconds=0.1)
    status = await brought_back(node)
    assert healthy(standin)
    assert status.restore is not None
    assert (status.restore.state, status.restore.by) == ("not healthy", "guard")
    assert "no answer within 1 s" in status.restore.detail
    assert status.service_touched
    standin.set()
    assert (await restore(node, spec, record, experiment=EXPERIMENT)).state == "healthy"


async def test_a_container_that_comes_back_by_itself_is_told_within_five_seconds(
    engine: Engine, standin: Standin, node: LocalNode, docker_spec: Spec
) -> None:
    engine.run_standin(standin)
    await ready(standin)
    spec = docker_spec()
    record = await inspect(node, spec)
    await guard_for(node, spec)
    assert (await stop(node, spec, record, experiment=EXPERIMENT)).state == "stopped"
    started_at = time.time()
    engine("start", standin.name)
    told_at = None
    while told_at is None:
        told_at = (await guard_status(node, EXPERIMENT)).came_back_at
        assert time.time() < started_at + 60, "never told"
    assert told_at - started_at < 5
    assert "came back by itself" in await words(node)
    engine("stop", "-t", "1", standin.name)
    while "gone again" not in await words(node):
        assert time.time() < started_at + 60, "never told that it is gone"
    assert (await restore(node, spec, record, experiment=EXPERIMENT)).state == "healthy"


async def test_a_restore_interrupts_the_drain_before_anything_is_touched(
    standin: Standin, node: LocalNode, command_spec: Command
) -> None:
    spec = command_spec(drain_seconds=60)
    record = await start_by_hand(node, spec)
    standin.set(in_flight=1)
    await guard_for(node, spec)
    stopping = asyncio.create_task(stop(node, spec, record, experiment=EXPERIMENT))
    while "draining" not in await words(node):
        assert not stopping.done()
    with pytest.raises(ServiceError, match="the guard stays"):
        await end_guard(node, EXPERIMENT, holder="tests")
    restored = await restore(node, spec, record, experiment=EXPERIMENT)
    assert (restored.state, restored.by) == ("healthy", "already")
    assert (await stopping).state == "interrupted"
    assert psutil.pid_exists(record.processes[0].pid)


async def test_a_restore_whose_process_dies_is_taken_up_by_the_guard(
    standin: Standin, node: LocalNode, command_spec: Command
) -> None:
    spec = command_spec(settle_seconds=3)
    record = await start_by_hand(node, spec)
    await guard_for(node, spec)
    await stop(node, spec, record, experiment=EXPERIMENT)
    standin.set(ready_seconds=3)
    restoring = asyncio.create_task(restore(node, spec, record, experiment=EXPERIMENT))
    while "starting" not in await words(node):
        assert not restoring.done()
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "operation" in line and any(str(node.home) in word for word in line):
            os.kill(process.pid, signal.SIGKILL)
    died = await restoring
    assert died.state == "died"
    await renew_lease(node, EXPERIMENT, holder="tests", lease_seconds=0.1)
    status = await brought_back(node)
    assert status.restore is not None
    assert (status.restore.state, status.restore.by) == ("healthy", "guard")


async def test_a_new_guard_takes_over_what_a_killed_one_left(
    standin: Standin, node: LocalNode, command_spec: Command
) -> None:
    spec = command_spec()
    record = await start_by_hand(node, spec)
    first = await guard_for(node, spec)
    await stop(node, spec, record, experiment=EXPERIMENT)
    assert first.pid is not None
    os.kill(first.pid, signal.SIGKILL)
    await until(lambda: not _runs(first.pid or 0), "the guard is gone")
    assert (await guard_status(node, EXPERIMENT)).service_touched
    second = await guard_for(node, spec, lease_seconds=0.5)
    assert second.pid != first.pid
    status = await brought_back(node)
    assert status.restore is not None
    assert (status.restore.state, status.restore.by) == ("healthy", "guard")


async def test_a_service_that_was_down_stays_down(
    standin: Standin, node: LocalNode, command_spec: Command
) -> None:
    spec = command_spec()
    record = await inspect(node, spec)
    await guard_for(node, spec)
    stopped = await stop(node, spec, record, experiment=EXPERIMENT)
    assert stopped.state == "stopped"
    assert "was not running" in stopped.detail
    assert (await restore(node, spec, record, experiment=EXPERIMENT)).state == "nothing to restore"
    await renew_lease(node, EXPERIMENT, holder="tests", lease_seconds=0.1)
    assert "never touched" in (await brought_back(node)).detail
    assert not (await inspect(node, spec)).running


@pytest.mark.parametrize("came_first", ["expired", "interrupt", "closing"])
async def test_a_stop_that_comes_after_the_end_of_the_lease_touches_nothing(
    standin: Standin, node: LocalNode, command_spec: Command, came_first: str
) -> None:
    spec = command_spec()
    record = await start_by_hand(node, spec)
    await guard_for(node, spec)
    # As when the lease ends between the check of the request and the start of the stop's own process.
    folder = Folder(str(node.home / ".lab"), EXPERIMENT)
    folder.set(**{came_first: "yes"})
    request = {
        "spec": spec.model_dump(mode="json"),
        "record": record.model_dump(mode="json"),
        "answers": True,
        "force": False,
    }
    outcome = stopping.stop(folder, request)
    assert outcome["state"] == "interrupted"
    assert not folder.state().get("service_touched")
    assert healthy(standin)


async def test_the_labs_own_containers_end_with_its_jobs(
    engine: Engine, standin: Standin, node: LocalNode
) -> None:
    names = {f"{standin.name}-{which}": which for which in ("ours", "theirs")}
    for name, which in names.items():
        run = f"{EXPERIMENT}/e0" if which == "ours" else "another/e0"
        engine("run", "-d", "--name", name, "--label", f"lab.run={run}", "--network", "none",
               "stand-in", "/usr/bin/python3", "-c", "import time; time.sleep(600)")  # fmt: skip
    try:
        await end_jobs(node, EXPERIMENT, grace_seconds=0, docker=engine.docker)
        assert {which: engine.running(name) for name, which in names.items()} == {
            "ours": False,
            "theirs": True,
        }
    finally:
        engine("rm", "-f", *names)


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
