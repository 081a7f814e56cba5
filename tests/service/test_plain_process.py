"""A plain process: found whatever the clock does, and stopped only when it can be started again."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError
from support.docker_engine import Standin
from support.local_node import LocalNode
from support.window import EXPERIMENT, guard_for, healthy, start_by_hand

from console.core.errors import InputError
from console.core.plan.service import CommandService
from console.nodes.service import inspect, prove_health, restore, stop

Command = Callable[..., CommandService]


def set_clock_forward(pid_file: Path, seconds: float = 60) -> None:
    """As seen afterwards: the file was written that much before its process began."""
    written = pid_file.stat().st_mtime - seconds
    os.utime(pid_file, (written, written))


async def test_a_clock_that_was_set_forward_hides_no_running_service(
    standin: Standin, node: LocalNode, command_spec: Command
) -> None:
    spec, pid_file = command_spec(), node.home / "service.pid"
    await start_by_hand(node, spec)
    set_clock_forward(pid_file)
    record = await inspect(node, spec)
    assert record.running
    await guard_for(node, spec)
    stopped = await stop(node, spec, record, experiment=EXPERIMENT)
    assert (stopped.state, healthy(standin)) == ("stopped", False)
    assert "was not running" not in stopped.detail

    assert (await restore(node, spec, record, experiment=EXPERIMENT)).state == "healthy"
    set_clock_forward(pid_file)
    assert (await prove_health(node, spec, record)).healthy


async def test_a_number_that_was_given_to_another_process_is_not_the_service(
    node: LocalNode, command_spec: Command, bystander: "subprocess.Popen[bytes]"
) -> None:
    pid_file = node.home / "service.pid"
    pid_file.write_text(f"{bystander.pid}\n")
    set_clock_forward(pid_file)
    assert not (await inspect(node, command_spec())).running


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("cwd", "/srv/not-there"),
        ("start", ("~/not-expanded-by-any-shell",)),
        ("log_file", "~/service.pid/service.log"),
    ],
)
async def test_what_only_the_start_needs_is_looked_at_before_the_stop(
    standin: Standin, node: LocalNode, command_spec: Command, setting: str, value: str | tuple[str, ...]
) -> None:
    await start_by_hand(node, command_spec())
    spec = command_spec(**{setting: value})
    record = await inspect(node, spec)
    assert not record.can_be_restored
    assert "could not be started again" in (record.refusal or "")
    assert record.refusal_next_step == f"correct service.{setting} in the profile"
    await guard_for(node, spec)
    assert (await stop(node, spec, record, experiment=EXPERIMENT)).state == "refused"
    assert healthy(standin)


async def test_a_pattern_that_is_no_regular_expression(node: LocalNode, command_spec: Command) -> None:
    with pytest.raises(
        ValidationError, match=re.escape("engine_pattern '*vllm' is not a regular expression")
    ):
        command_spec(engine_pattern="*vllm")
    passed_on = command_spec().model_copy(update={"engine_pattern": "*vllm"})
    with pytest.raises(InputError, match="not a regular expression on this node") as refused:
        await inspect(node, passed_on)
    assert "nothing to repeat" in refused.value.why
