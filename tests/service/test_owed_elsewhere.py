"""A service that one experiment stopped and lost is not taken for one that was down, by any other."""

import os
import signal
from collections.abc import Callable

import pytest
from support.docker_engine import Standin
from support.local_node import LocalNode
from support.processes import is_alive
from support.waiting import until
from support.window import EXPERIMENT, healthy, ready, start_by_hand

from console.core.errors import ServiceError
from console.core.plan.custody import GuardSpec, GuardStatus
from console.core.plan.service import CommandService
from console.nodes.agent import end_guard, guard_account, guard_status, start_guard
from console.nodes.service import inspect, restore, stop

Command = Callable[..., CommandService]
FIRST, SECOND = f"{EXPERIMENT}-first", f"{EXPERIMENT}-second"


async def guarded(node: LocalNode, spec: CommandService, experiment: str) -> GuardStatus:
    told = GuardSpec(experiment=experiment, holder=f"console of {experiment}", lease_seconds=120)
    return await start_guard(node, told, spec)


async def stopped_and_lost(node: LocalNode, spec: CommandService, experiment: str) -> None:
    """The experiment stops the service; then its guard is gone, as after a reboot."""
    status = await guarded(node, spec, experiment)
    record = await inspect(node, spec)
    assert (await stop(node, spec, record, experiment=experiment)).state == "stopped"
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    await until(lambda: not is_alive(status.pid or 0), "the guard is gone")


async def test_another_experiment_is_refused_until_the_service_runs_again(
    standin: Standin, node: LocalNode, command_spec: Command
) -> None:
    spec = command_spec()
    record = await start_by_hand(node, spec)
    await stopped_and_lost(node, spec, FIRST)
    with pytest.raises(ServiceError) as refused:
        await guarded(node, spec, SECOND)
    assert (
        refused.value.what
        == f"experiment {FIRST} stopped {spec.name} on this node and has not brought it back"
    )
    assert (
        f"does not run; it is noted in {node.home}/.lab/{FIRST}, held by console of {FIRST}"
        in refused.value.why
    )
    assert f"`lab service restore PROFILE --out {FIRST}`" in refused.value.next_step
    assert not (await guard_status(node, SECOND)).alive

    assert (await guarded(node, spec, FIRST)).service_touched
    assert (await restore(node, spec, record, experiment=FIRST)).state == "healthy"
    await end_guard(node, FIRST, holder=f"console of {FIRST}")
    assert (await guarded(node, spec, SECOND)).alive


async def test_an_old_debt_hinders_no_experiment_once_the_service_was_started_by_hand(
    standin: Standin, node: LocalNode, command_spec: Command
) -> None:
    spec = command_spec()
    await start_by_hand(node, spec)
    await stopped_and_lost(node, spec, FIRST)
    record = await start_by_hand(node, spec)
    await stopped_and_lost(node, spec, SECOND)
    assert "service runs again" in [line.what for line in await guard_account(node, SECOND)]

    assert (await guard_status(node, FIRST)).service_touched
    assert (await guarded(node, spec, SECOND)).service_touched
    assert (await restore(node, spec, record, experiment=SECOND)).state == "healthy"
    await ready(standin)
    assert healthy(standin)
