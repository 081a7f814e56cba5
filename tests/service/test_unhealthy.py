"""A service that came back wrong is never called healthy, and a failed start is not tried again by itself."""

from collections.abc import Callable
from typing import Any

import pytest
from support.docker_engine import Engine, Standin
from support.local_node import LocalNode
from support.window import EXPERIMENT, guard_for, ready, start_by_hand

from console.core.errors import ServiceError
from console.core.plan.custody import Health, RestoreOutcome, ServiceRecord
from console.core.plan.service import CommandService, DockerService
from console.nodes.agent import end_guard, guard_status
from console.nodes.service import inspect, restore, stop

Spec = Callable[..., DockerService]


def failed_at(health: Health | None) -> str:
    assert health is not None
    assert not health.healthy
    failed = [rung for rung in health.rungs if rung.state == "failed"]
    assert len(failed) == 1
    after = health.rungs[health.rungs.index(failed[0]) + 1 :]
    assert all(rung.state == "not reached" for rung in after)
    return failed[0].name


async def taken(node: LocalNode, spec: DockerService | CommandService) -> ServiceRecord:
    record = await inspect(node, spec)
    await guard_for(node, spec)
    assert (await stop(node, spec, record, experiment=EXPERIMENT)).state == "stopped"
    return record


async def brought_back(
    node: LocalNode, spec: DockerService | CommandService, record: ServiceRecord, **more: Any
) -> RestoreOutcome:
    return await restore(node, spec, record, experiment=EXPERIMENT, **more)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("mode", "rung", "words"),
    [
        ({"completions": "hang"}, "completion", "no answer within 1 s"),
        ({"completions": "wrong"}, "completion", "expected '204'"),
        ({"completions": "slow"}, "speed", "of the reference"),
        ({"everything": "hang"}, "health", "not ready in time"),
    ],
)
async def test_green_health_is_not_enough(
    engine: Engine,
    standin: Standin,
    node: LocalNode,
    docker_spec: Spec,
    mode: dict[str, Any],
    rung: str,
    words: str,
) -> None:
    engine.run_standin(standin)
    await ready(standin)
    limits = {"timeout_seconds": 1, "speed_tokens": 16}
    spec = docker_spec(canary=limits, ready_timeout_seconds=2)
    record = await taken(node, spec)
    standin.set(**mode)
    outcome = await brought_back(node, spec, record)
    assert outcome.state == "not healthy"
    assert failed_at(outcome.health) == rung
    assert words in outcome.detail
    assert outcome.next_step
    status = await guard_status(node, EXPERIMENT)
    assert status.service_touched
    with pytest.raises(ServiceError):
        await end_guard(node, EXPERIMENT, holder="tests")

    if rung == "completion":
        standin.set()
        assert (await brought_back(node, spec, record)).state == "healthy"


@pytest.mark.docker
async def test_a_start_that_fails_is_a_decision(
    engine: Engine, standin: Standin, node: LocalNode, docker_spec: Spec
) -> None:
    engine.run_standin(standin, "--restart", "always")
    await ready(standin)
    spec = docker_spec()
    record = await taken(node, spec)
    standin.set(crash=True)
    outcome = await brought_back(node, spec, record)
    assert outcome.state == "not healthy"
    assert "exit code 1" in outcome.detail
    assert "Free memory on device" in outcome.detail
    assert outcome.restart_policy_back is False
    assert engine.policy(standin.name) == "no"

    standin.set()
    again = await brought_back(node, spec, record)
    assert again.state == "start failed"
    assert not engine.running(standin.name)

    decided = await brought_back(node, spec, record, again=True)
    assert decided.state == "healthy"
    assert engine.policy(standin.name) == "always"


async def test_a_plain_process_makes_the_same_round(
    standin: Standin, node: LocalNode, command_spec: Callable[..., CommandService]
) -> None:
    spec = command_spec()
    before = await inspect(node, spec)
    assert not before.running
    await guard_for(node, spec)
    assert (await brought_back(node, spec, before)).state == "nothing to restore"
    started = await start_by_hand(node, spec)
    assert started.running
    record = await taken(node, spec)
    assert record.processes[0].command.endswith(f"--control {standin.control}")
    assert (await brought_back(node, spec, record)).state == "healthy"


async def test_an_unknown_start_command_is_refused(
    standin: Standin, node: LocalNode, command_spec: Callable[..., CommandService]
) -> None:
    record = await inspect(node, command_spec(start=("no-such-program-here", "--serve")))
    assert not record.can_be_restored
    assert "no-such-program-here" in (record.refusal or "")
