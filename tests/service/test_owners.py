"""Services that belong to compose or systemd are stopped and started by their owner."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.docker_engine import Engine, Standin
from support.local_node import LocalNode
from support.window import EXPERIMENT, FAST, guard_for, ready, start_by_hand

from console.core.errors import InputError
from console.core.plan.service import CommandService, ComposeService, SystemdService
from console.nodes.service import inspect, restore, service_log, stop


def compose_spec(engine: Engine, standin: Standin, **more: object) -> ComposeService:
    told = {"kind": "compose", "name": standin.name, "base_url": standin.url, "docker": engine.docker}
    return ComposeService.model_validate(told | {"project": "prod", "service": "vllm"} | FAST | more)


@pytest.mark.docker
async def test_a_compose_service(engine: Engine, standin: Standin, node: LocalNode, tmp_path: Path) -> None:
    if shutil.which("docker-compose") is None:
        pytest.skip("no docker-compose here: apt-get install docker-compose")
    file = tmp_path / "docker-compose.yml"
    file.write_text(
        f"""\
version: "3"
services:
  vllm:
    image: stand-in
    network_mode: host
    restart: unless-stopped
    volumes: ["{standin.control}:/control"]
    command: ["/usr/bin/python3", "/service.py", "--port", "{standin.port}", "--control", "/control"]
"""
    )
    address = engine.docker[2]
    await node.run('docker-compose -H "$1" -p prod -f "$2" up -d', args=(address, str(file)), timeout=60)
    try:
        await ready(standin)
        spec = compose_spec(engine, standin)
        record = await inspect(node, spec)
        assert record.can_be_restored, record.refusal
        assert record.owner.kind == "compose"
        assert record.compose_labels["com.docker.compose.project.config_files"].endswith(file.name)
        (name,) = record.inspect["restart_policies"]
        await guard_for(node, spec)
        assert (await stop(node, spec, record, experiment=EXPERIMENT)).state == "stopped"
        assert engine.policy(name) == "no"
        restored = await restore(node, spec, record, experiment=EXPERIMENT)
        assert restored.state == "healthy", restored
        assert engine.policy(name) == "unless-stopped"
        assert "docker-compose" in " ".join(record.commands["start"][0])

        file.rename(tmp_path / "elsewhere.yml")
        moved = await inspect(node, spec)
        assert "no longer where it was" in (moved.refusal or "")
    finally:
        engine("rm", "-f", *engine("ps", "-aq").split(), check=False)


@pytest.mark.docker
async def test_a_compose_service_without_compose_needs_its_commands(
    engine: Engine, standin: Standin, node: LocalNode, tmp_path: Path
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("docker", "python3", "bash", "sh", "mkdir", "cat", "mv", "rm", "wc"):
        found = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
        assert found is not None
        (tools / name).symlink_to(found)
    node.environment["PATH"] = str(tools)
    labels = ("project=prod", "service=vllm", "oneoff=False")
    engine.run_standin(
        standin, *(word for label in labels for word in ("--label", f"com.docker.compose.{label}"))
    )
    try:
        await ready(standin)
        refused = await inspect(node, compose_spec(engine, standin))
        assert not refused.can_be_restored
        assert "neither the compose plugin nor docker-compose" in (refused.refusal or "")
        own = {
            "start_command": (*engine.docker, "start", standin.name),
            "stop_command": (*engine.docker, "stop", "-t", "2", standin.name),
        }
        spec = compose_spec(engine, standin, **own)
        record = await inspect(node, spec)
        assert record.can_be_restored
        await guard_for(node, spec)
        assert (await stop(node, spec, record, experiment=EXPERIMENT)).state == "stopped"
        assert not engine.running(standin.name)
        assert (await restore(node, spec, record, experiment=EXPERIMENT)).state == "healthy"
    finally:
        engine("rm", "-f", standin.name, check=False)


SYSTEMCTL = """#!/bin/bash
# Knows one unit, vllm.service, kept by a pid file; answers as systemctl does.
pid=$(cat {pid_file} 2>/dev/null)
alive() {{ [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$pid/status"; }}
case $1 in
show)
  [ "$2" = vllm.service ] || {{ echo LoadState=not-found; exit 0; }}
  if alive; then printf 'ActiveState=active\\nSubState=running\\nMainPID=%s\\n' "$pid"
  else printf 'ActiveState=inactive\\nSubState=dead\\nMainPID=0\\n'; fi
  printf 'LoadState=loaded\\nNRestarts=0\\nRestart=always\\nExecMainStatus=0\\n'
  printf 'FragmentPath=/etc/vllm.service\\nInvocationID=%s\\nControlGroup=\\n' "$pid" ;;
stop) kill "$pid"; while alive; do sleep 0.05; done ;;
start) setsid -f sh -c 'echo $$ >"$1"; shift; exec "$@"' sh {pid_file} {argv} >/dev/null 2>&1 ;;
esac
echo "$*" >>{calls}
"""


async def test_a_systemd_unit_through_a_stand_in_of_systemctl(
    standin: Standin, node: LocalNode, tmp_path: Path, command_spec: Callable[..., CommandService]
) -> None:
    calls = tmp_path / "calls"
    tool = tmp_path / "systemctl"
    pid_file = node.home / "service.pid"
    argv = " ".join(standin.process_argv())
    tool.write_text(SYSTEMCTL.format(pid_file=pid_file, argv=argv, calls=calls))
    tool.chmod(0o755)
    told = {"kind": "systemd", "name": standin.name, "base_url": standin.url, "unit": "vllm"}
    spec = SystemdService.model_validate(told | FAST | {"systemctl": [str(tool)]})
    plain = command_spec()
    await start_by_hand(node, plain)
    record = await inspect(node, spec)
    assert record.owner.name == "vllm.service"
    assert record.restart_policy == "always"
    assert [who.pid for who in record.processes] == [int(pid_file.read_text())]
    await guard_for(node, spec)
    assert (await stop(node, spec, record, experiment=EXPERIMENT)).state == "stopped"
    restored = await restore(node, spec, record, experiment=EXPERIMENT)
    assert restored.state == "healthy"
    asked = calls.read_text().splitlines()
    assert asked.count("stop vllm.service") == 1
    assert asked.count("start --no-block vllm.service") == 1
    assert "startup complete" in await service_log(node, plain, since=0)

    with pytest.raises(InputError, match="no unit other"):
        await inspect(node, spec.model_copy(update={"unit": "other"}))
