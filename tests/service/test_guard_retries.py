"""An obstacle on the way back is waited out: no guard ends while the service is owed and no start failed."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.docker_engine import Standin
from support.local_node import LocalNode
from support.processes import is_alive
from support.waiting import until
from support.window import (
    EXPERIMENT,
    FAST,
    ROOT,
    brought_back,
    healthy,
    start_by_hand,
    words,
)

from console.core.plan.custody import GuardSpec, GuardStatus, ServiceRecord
from console.core.plan.service import CommandService, DockerService, NoService
from console.nodes.agent import end_guard, guard_account, guard_status, renew_lease, start_guard
from console.nodes.service import inspect, restore, stop

Command = Callable[..., CommandService]

# As `docker` answers for one container, whose state is in a file; with a file `down` there is no daemon.
DOCKER = """#!/bin/sh
[ -e {folder}/down ] && {{ echo "Cannot connect to the Docker daemon" >&2; exit 1; }}
case "$1" in
image) echo '[{{"Id": "sha256:1", "RepoDigests": ["vllm@sha256:1"]}}]' ;;
inspect) echo '[{{"Id": "abc", "Name": "/vllm", "Image": "sha256:1", "RestartCount": 0,
  "Config": {{"Image": "vllm", "Labels": {{}}}}, "HostConfig": {{"RestartPolicy": {{"Name": "no"}}}},
  "State": {{"Running": '$(cat {folder}/running)', "Pid": 0, "ExitCode": 0, "StartedAt": "1"}}}}]' ;;
stop) echo false >{folder}/running ;;
start) echo true >{folder}/running ;;
esac
"""
# As `docker` with one container of the lab; it can't be run any more when that container is to be stopped.
DOCKER_OF_A_JOB = """#!/bin/sh
case "$1" in
ps) echo abc ;;
inspect) echo '[{{"Id": "abc", "Config": {{"Labels": {{"lab.run": "{experiment}/e0"}}}}}}]'; chmod -x "$0" ;;
esac
"""
# The guard as its command runs it, on a node that refuses the thread of its finale once.
GUARD_WITHOUT_THREADS = """
import sys, threading
handle, sys.argv[0] = int(sys.argv[1]), sys.argv[2]
from console.nodes.agent.program import guard
start, refused = threading.Thread.start, []
def refusing(thread):
    if thread.name == "finale" and not refused:
        refused.append(thread)
        raise RuntimeError("can't start new thread")
    start(thread)
threading.Thread.start = refusing
sys.exit(guard.run(handle))
"""


def spec_of(**more: object) -> GuardSpec:
    told = {"experiment": EXPERIMENT, "holder": "tests", "lease_seconds": 120, "job_grace_seconds": 0.5}
    return GuardSpec.model_validate(told | {"retry_seconds": 0.5} | more)


@contextmanager
def stubborn_guard(node: LocalNode, request: dict[str, object]) -> Iterator["subprocess.Popen[bytes]"]:
    """A guard whose finale's thread is refused once."""
    reader, writer = os.pipe()
    (program,) = (path for path in (node.home / ".lab" / "agent").iterdir() if path.is_dir())
    guard = subprocess.Popen(
        [sys.executable, "-c", GUARD_WITHOUT_THREADS, str(writer), str(program)],
        stdin=subprocess.PIPE,
        pass_fds=(writer,),
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(node.home)},
    )
    os.close(writer)
    try:
        assert guard.stdin is not None
        with guard.stdin:
            guard.stdin.write(json.dumps(request).encode())
        with os.fdopen(reader) as said:
            assert json.loads(said.readline()) == {"pid": guard.pid}
        yield guard
    finally:
        guard.kill()
        guard.wait()


@contextmanager
def held_memory(mark: str) -> Iterator[None]:
    """A process that counts as one of the engine's, left over."""
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", mark])
    try:
        yield
    finally:
        left.kill()
        left.wait()


async def stopped_service(node: LocalNode, spec: CommandService, **more: object) -> GuardStatus:
    record = await start_by_hand(node, spec)
    status = await start_guard(node, spec_of(**more), spec)
    assert (await stop(node, spec, record, experiment=EXPERIMENT)).state == "stopped"
    return status


async def end_lease(node: LocalNode) -> None:
    await renew_lease(node, EXPERIMENT, holder="tests", lease_seconds=0.1)


async def until_told(node: LocalNode, word: str) -> None:
    for _ in range(100):
        if word in await words(node):
            return
    raise AssertionError(f"never told: {word}, but {await words(node)}")


async def test_a_docker_daemon_that_is_down_when_the_lease_ends(node: LocalNode, tmp_path: Path) -> None:
    docker, down, running = tmp_path / "docker", tmp_path / "down", tmp_path / "running"
    docker.write_text(DOCKER.format(folder=tmp_path))
    docker.chmod(0o755)
    running.write_text("true\n")
    service = {"kind": "docker", "name": "vllm", "container": "vllm", "docker": (str(docker),)}
    spec = DockerService.model_validate(service | FAST)
    record = await inspect(node, spec, answers=False)
    await start_guard(node, spec_of(answers=False), spec)
    stopped = await stop(node, spec, record, experiment=EXPERIMENT, answers=False)
    assert (stopped.state, running.read_text()) == ("stopped", "false\n")

    down.touch()
    await end_lease(node)
    await until_told(node, "the service is not back yet")
    status = await guard_status(node, EXPERIMENT)
    assert status.alive
    assert status.service_touched
    account = await guard_account(node, EXPERIMENT)
    (told,) = {line.detail.split(";")[0] for line in account if line.what == "the service is not back yet"}
    assert "Cannot connect to the Docker daemon" in told
    down.unlink()
    after = await brought_back(node)
    assert after.restore is not None
    assert (after.restore.state, after.restore.by) == ("healthy", "guard")
    assert not after.service_touched
    assert running.read_text() == "true\n"


async def test_a_container_of_the_lab_that_does_not_end(
    standin: Standin, node: LocalNode, command_spec: Command, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("python3", "bash", "sh", "mkdir", "cat", "chmod", "mv", "rm", "wc", "setsid"):
        (tools / name).symlink_to(shutil.which(name, path="/usr/local/bin:/usr/bin:/bin") or name)
    docker = tools / "docker"
    docker.write_text(DOCKER_OF_A_JOB.format(experiment=EXPERIMENT))
    docker.chmod(0o755)
    node.environment["PATH"] = str(tools)
    await stopped_service(node, command_spec())
    await end_lease(node)
    status = await brought_back(node)
    assert status.restore is not None
    assert status.restore.state == "healthy"
    assert "a container of the lab does not end" in await words(node)


async def test_a_restore_of_the_console_that_memory_held_up_is_not_the_last_word(
    standin: Standin, node: LocalNode, command_spec: Command, tmp_path: Path
) -> None:
    mark = f"engine-left-{os.getpid()}"
    spec = command_spec(engine_pattern=mark, release_seconds=1)
    record = await start_by_hand(node, spec)
    await start_guard(node, spec_of(), spec)
    assert (await stop(node, spec, record, experiment=EXPERIMENT)).state == "stopped"
    with held_memory(mark):
        outcome = await restore(node, spec, record, experiment=EXPERIMENT)
        assert outcome.state == "memory not free"
        await end_lease(node)
        status = await brought_back(node)
    assert status.restore is not None
    assert (status.restore.state, status.restore.by) == ("healthy", "guard")
    assert "starting although memory is not free" in await words(node)


async def test_a_start_that_failed_is_the_end_of_it(
    standin: Standin, node: LocalNode, command_spec: Command
) -> None:
    spec = command_spec()
    await stopped_service(node, spec)
    standin.set(crash=True)
    await end_lease(node)
    status = await brought_back(node)
    assert "restore: not healthy" in status.detail
    assert status.service_touched
    assert (await words(node)).count("starting") == 1


async def waiting_for_hours(node: LocalNode, spec: CommandService) -> tuple[GuardStatus, ServiceRecord]:
    """A guard whose lease is over, and whose way back was blocked at its first try."""
    record = await start_by_hand(node, spec)
    status = await start_guard(node, spec_of(retry_seconds=600), spec)
    await stop(node, spec, record, experiment=EXPERIMENT)
    noted = node.home / ".lab" / EXPERIMENT / "guard" / "service.json"
    aside = noted.rename(noted.with_suffix(".aside"))
    await end_lease(node)
    await until_told(node, "the service is not back yet")
    aside.rename(noted)
    return status, record


async def test_a_console_relieves_a_guard_that_waits_for_its_next_try(
    standin: Standin, node: LocalNode, command_spec: Command
) -> None:
    spec = command_spec()
    first, record = await waiting_for_hours(node, spec)
    second = await start_guard(node, spec_of(), spec)
    assert second.alive
    assert second.pid != first.pid
    assert second.lease.state == "held"
    assert (await restore(node, spec, record, experiment=EXPERIMENT)).state == "healthy"
    assert not (await end_guard(node, EXPERIMENT, holder="tests")).alive


async def test_a_guard_that_waits_ends_when_a_console_proves_the_service(
    standin: Standin, node: LocalNode, command_spec: Command
) -> None:
    spec = command_spec()
    _, record = await waiting_for_hours(node, spec)
    assert (await restore(node, spec, record, experiment=EXPERIMENT)).state == "healthy"
    assert "restore: healthy" in (await brought_back(node)).detail


async def test_a_thread_that_cannot_be_started_is_tried_again(
    standin: Standin, node: LocalNode, command_spec: Command
) -> None:
    spec = command_spec()
    killed = await stopped_service(node, spec)
    assert killed.pid is not None
    os.kill(killed.pid, signal.SIGKILL)
    await until(lambda: not is_alive(killed.pid or 0), "the guard is gone")
    request = {
        "root": str(node.home / ".lab"),
        "experiment": EXPERIMENT,
        "guard": spec_of().model_dump(mode="json"),
        "spec": None,
    }
    with stubborn_guard(node, request) as guard:
        await end_lease(node)
        await until(lambda: guard.poll() is not None, "the guard has done its work")
    told = await words(node)
    assert told.count("lease ran out") == 1
    assert "guard stumbled" in told
    assert healthy(standin)


async def test_nothing_to_bring_back_needs_no_second_try(node: LocalNode) -> None:
    await start_guard(node, spec_of(), NoService())
    await end_lease(node)
    assert "never touched" in (await brought_back(node)).detail
    assert "the service is not back yet" not in await words(node)
