"""Stopped is not free: who still holds memory is named, and what to do about it."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from support.docker_engine import Standin
from support.local_node import LocalNode
from support.window import EXPERIMENT, guard_for, start_by_hand

from console.core.plan.service import CommandService
from console.nodes.service import inspect, prove_free, restore, stop

Spec = Callable[..., CommandService]


@pytest.fixture
def driver(tmp_path: Path, node: LocalNode) -> Callable[[str, str], None]:
    """`driver(version, apps)`: an nvidia-smi that reports a unified-memory GPU and these processes."""
    folder = tmp_path / "bin"
    folder.mkdir()
    node.environment["PATH"] = f"{folder}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

    def make(version: str, apps: str) -> None:
        tool = folder / "nvidia-smi"
        tool.write_text(
            '#!/bin/sh\ncase "$1" in\n'
            f'--query-gpu=driver_version*) echo "{version}, [N/A]";;\n'
            f'--query-compute-apps*) printf "{apps}";;\n'
            '*) while :; do echo "95, 12.61, 2418, 43"; sleep 1; done;;\nesac\n'
        )
        tool.chmod(0o755)

    return make


@pytest.fixture
def ballast_ended(standin: Standin) -> Iterator[None]:
    yield
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] and process.info["cmdline"][-1] == "37":
            process.kill()


@pytest.mark.usefixtures("ballast_ended")
async def test_a_process_that_outlives_the_stop_is_named(
    standin: Standin, node: LocalNode, command_spec: Spec
) -> None:
    standin.set(ballast_mb=37)
    spec = command_spec(release_seconds=0.5)
    record = await start_by_hand(node, spec)
    assert len(record.processes) == 2
    await guard_for(node, spec)
    outcome = await stop(node, spec, record, experiment=EXPERIMENT)
    assert outcome.state == "stopped but not released"
    assert outcome.proof is not None
    assert [left.command.split()[-1] for left in outcome.proof.processes_left] == ["37"]
    assert outcome.next_step

    gated = await restore(node, spec, record, experiment=EXPERIMENT)
    assert gated.state == "memory not free"
    standin.set()
    overridden = await restore(node, spec, record, experiment=EXPERIMENT, accept_held_memory=True)
    assert overridden.state == "healthy"


async def test_memory_that_is_missing_names_the_largest(
    standin: Standin, node: LocalNode, command_spec: Spec
) -> None:
    spec = command_spec(needed_memory_bytes=1 << 50, release_seconds=0)
    record = await start_by_hand(node, spec)
    await guard_for(node, spec)
    outcome = await stop(node, spec, record, experiment=EXPERIMENT)
    assert outcome.state == "stopped but not released"
    assert "1048576.0 needed; largest:" in outcome.detail
    enough = command_spec(needed_memory_bytes=1)
    assert (await prove_free(node, enough, record)).state == "stopped"


async def test_a_pid_that_only_the_driver_knows_is_an_orphan(
    standin: Standin, node: LocalNode, command_spec: Spec, driver: Callable[[str, str], None]
) -> None:
    driver("580.95.05", "4194301, VLLM::EngineCore, 96581\\n")
    spec = command_spec(driver_held_limit_bytes=1 << 50)
    record = await inspect(node, spec)
    assert record.driver_version == "580.95.05"
    proof = await prove_free(node, spec, record)
    assert proof.state == "stopped but not released"
    assert proof.orphan_pids == (4194301,)


@pytest.mark.parametrize(
    ("version", "state"),
    [("595.91.07", "held by driver, perhaps reusable"), ("580.95.05", "stopped but not released")],
)
async def test_memory_in_no_category_is_the_drivers(
    standin: Standin,
    node: LocalNode,
    command_spec: Spec,
    driver: Callable[[str, str], None],
    version: str,
    state: str,
) -> None:
    driver(version, "")
    spec = command_spec(driver_held_limit_bytes=0)
    proof = await prove_free(node, spec, await inspect(node, spec))
    assert proof.state == state
    assert "in no kernel category" in proof.detail
    assert proof.next_step


async def test_a_service_that_came_back_is_a_state_of_its_own(
    standin: Standin, node: LocalNode, command_spec: Spec
) -> None:
    spec = command_spec()
    record = await start_by_hand(node, spec)
    assert (await prove_free(node, spec, record)).state == "stopped but not released"
    os.kill(record.processes[0].pid, signal.SIGKILL)
    await start_by_hand(node, spec)
    assert (await prove_free(node, spec, record)).state == "came back by itself"
