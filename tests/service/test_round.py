"""A container is stopped and brought back, exactly as it was."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.docker_engine import Engine, Standin
from support.local_node import LocalNode
from support.window import EXPERIMENT, guard_for, ready

from console.core.errors import InputError, ServiceError
from console.core.plan.custody import AccountLine
from console.core.plan.service import DockerService
from console.nodes.agent import end_guard, guard_status
from console.nodes.service import inspect, prove_free, prove_health, restore, service_log, stop

pytestmark = pytest.mark.docker
Spec = Callable[..., DockerService]


async def test_a_container_is_stopped_and_restored(
    engine: Engine, standin: Standin, node: LocalNode, docker_spec: Spec
) -> None:
    engine.run_standin(standin, "--restart", "unless-stopped", "-e", "API_TOKEN=topsecret-value")
    await ready(standin)
    identity = engine("inspect", "-f", "{{.Id}}", standin.name)
    spec = docker_spec()

    record = await inspect(node, spec)
    assert record.can_be_restored
    assert record.restart_policy == "unless-stopped"
    assert record.image_digest is not None
    assert record.image_digest.startswith("sha256:")
    assert record.model_ids == ("stand-in-7b",)
    assert record.reference is not None
    assert record.reference.tokens_per_second is not None
    assert record.processes
    assert record.inspect["HostConfig"]["Binds"] == [f"{standin.control}:/control"]
    assert "topsecret-value" not in record.model_dump_json()

    await guard_for(node, spec)
    told: list[AccountLine] = []
    stopped = await stop(node, spec, record, experiment=EXPERIMENT, on_progress=told.append)
    assert stopped.state == "stopped", stopped
    assert stopped.drained is True
    assert stopped.proof is not None
    assert not engine.running(standin.name)
    assert engine.policy(standin.name) == "no"
    assert [line.what for line in told if line.what == "auto-restart off"]
    assert (await prove_free(node, spec, record)).state == "stopped"
    assert (await guard_status(node, EXPERIMENT)).phase == "stopped"
    with pytest.raises(ServiceError, match="not proven healthy"):
        await end_guard(node, EXPERIMENT, holder="tests")

    restored = await restore(node, spec, record, experiment=EXPERIMENT)
    assert restored.state == "healthy", restored
    assert restored.by == "console"
    assert restored.restart_policy_back is True
    assert restored.health is not None
    assert [rung.state for rung in restored.health.rungs] == ["passed"] * 6
    assert engine.policy(standin.name) == "unless-stopped"
    assert engine("inspect", "-f", "{{.Id}}", standin.name) == identity

    again = await restore(node, spec, record, experiment=EXPERIMENT)
    assert (again.state, again.by) == ("healthy", "already")
    assert (await end_guard(node, EXPERIMENT, holder="tests")).alive is False


async def test_secrets_reach_no_file_of_the_guard(
    engine: Engine,
    standin: Standin,
    node: LocalNode,
    docker_spec: Spec,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = "canary-4f1e2d3c"
    monkeypatch.setenv("LAB_TEST_API_KEY", secret)
    standin.set(key=secret)
    engine.run_standin(standin, "-e", f"VLLM_API_KEY={secret}")
    await ready(standin)
    spec = docker_spec(api_key_env="LAB_TEST_API_KEY")
    record = await inspect(node, spec)
    await guard_for(node, spec)
    await stop(node, spec, record, experiment=EXPERIMENT)
    assert (await restore(node, spec, record, experiment=EXPERIMENT)).state == "healthy"
    written = [path for path in (node.home / ".lab").rglob("*") if path.is_file()]
    assert len(written) >= 6
    assert [path.name for path in written if secret.encode() in path.read_bytes()] == []
    assert secret not in record.model_dump_json()


async def test_a_missing_key_is_told(
    engine: Engine, standin: Standin, node: LocalNode, docker_spec: Spec, tmp_path: Path
) -> None:
    standin.set(key="right")
    engine.run_standin(standin)
    await ready(standin)
    with pytest.raises(ServiceError, match="401"):
        await inspect(node, docker_spec())
    (node.home / "key").write_text("right\n")
    assert (await inspect(node, docker_spec(api_key_file="~/key"))).model_ids == ("stand-in-7b",)


async def test_nothing_is_touched_when_it_must_not_be(
    engine: Engine, standin: Standin, node: LocalNode, docker_spec: Spec
) -> None:
    with pytest.raises(InputError, match="no container"):
        await inspect(node, docker_spec())
    engine.run_standin(standin, "--rm")
    await ready(standin)
    with pytest.raises(ServiceError, match="does not answer at"):
        await inspect(node, docker_spec(base_url="http://127.0.0.1:1"))
    spec = docker_spec()
    record = await inspect(node, spec)
    assert not record.can_be_restored
    assert "--rm" in (record.refusal or "")
    with pytest.raises(ServiceError, match="no guard stands"):
        await stop(node, spec, record, experiment=EXPERIMENT)
    await guard_for(node, spec)
    refused = await stop(node, spec, record, experiment=EXPERIMENT)
    assert refused.state == "refused"
    assert "--rm" in refused.detail
    assert refused.next_step
    assert engine.running(standin.name)
    assert (await guard_status(node, EXPERIMENT)).service_touched is False


async def test_a_container_of_another_owner_is_refused(
    engine: Engine, standin: Standin, node: LocalNode, docker_spec: Spec
) -> None:
    engine.run_standin(standin, "--label", "com.docker.compose.project=prod")
    await ready(standin)
    record = await inspect(node, docker_spec())
    assert not record.can_be_restored
    assert record.owner.kind == "compose"
    assert "kind to compose" in (record.refusal_next_step or "")


async def test_a_stop_waits_for_requests_and_asks(
    engine: Engine, standin: Standin, node: LocalNode, docker_spec: Spec
) -> None:
    standin.set(in_flight=2)
    engine.run_standin(standin)
    await ready(standin)
    spec = docker_spec(drain_seconds=0.6)
    record = await inspect(node, spec)
    assert record.reference is None
    assert "in flight" in (record.reference_missing or "")
    await guard_for(node, spec)
    asked = await stop(node, spec, record, experiment=EXPERIMENT)
    assert (asked.state, asked.in_flight) == ("not drained", 2)
    assert engine.running(standin.name)
    forced = await stop(node, spec, record, experiment=EXPERIMENT, force=True)
    assert (forced.state, forced.drained) == ("stopped", False)
    standin.set()
    restored = await restore(node, spec, record, experiment=EXPERIMENT)
    assert restored.state == "healthy"
    assert restored.health is not None
    assert restored.health.rungs[4].state == "skipped"


async def test_requests_in_flight_are_let_to_end(
    engine: Engine, standin: Standin, node: LocalNode, docker_spec: Spec
) -> None:
    standin.set(in_flight=1)
    engine.run_standin(standin)
    await ready(standin)
    spec = docker_spec(drain_seconds=30)
    record = await inspect(node, spec)
    await guard_for(node, spec)
    outcome = await stop(
        node,
        spec,
        record,
        experiment=EXPERIMENT,
        on_progress=lambda line: standin.set(in_flight=0) if line.what == "draining" else None,
    )
    assert (outcome.state, outcome.drained) == ("stopped", True)


async def test_a_service_that_ignores_the_stop_is_killed_in_time(
    engine: Engine, standin: Standin, node: LocalNode, docker_spec: Spec
) -> None:
    standin.set(ignore_term=True)
    engine.run_standin(standin)
    await ready(standin)
    spec = docker_spec(stop_seconds=1)
    record = await inspect(node, spec)
    await guard_for(node, spec)
    outcome = await stop(node, spec, record, experiment=EXPERIMENT)
    assert (outcome.state, outcome.exit_code) == ("stopped", 137)


async def test_the_ladder_and_the_log_can_be_asked_for_at_any_time(
    engine: Engine, standin: Standin, node: LocalNode, docker_spec: Spec
) -> None:
    began = time.time()
    engine.run_standin(standin)
    await ready(standin)
    spec = docker_spec()
    health = await prove_health(node, spec, None)
    assert health.healthy
    assert [rung.state for rung in health.rungs] == [
        "passed",
        "passed",
        "skipped",
        "passed",
        "skipped",
        "passed",
    ]
    assert "Application startup complete" in await service_log(node, spec, since=began - 5)
