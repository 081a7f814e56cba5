"""The same over SSH: embedded servers and real OpenSSH, and a link whose packets are dropped."""

import getpass
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from support.docker_engine import Engine, Standin
from support.hosts import Host, SshdHost
from support.local_node import LocalNode
from support.namespaces import Namespace, joined_namespace
from support.processes import end_processes_of
from support.window import EXPERIMENT, brought_back, console, guard_for, healthy, ready, words

from console.core.plan.service import DockerService
from console.nodes.agent import end_guard, follow_guard, guard_status, renew_lease
from console.nodes.dial import SshTarget
from console.nodes.service import inspect, restore, stop
from console.nodes.ssh import Node

pytestmark = pytest.mark.docker
Spec = Callable[..., DockerService]


async def test_a_whole_window_and_a_reconnect_in_the_middle(
    make_host: Callable[..., Awaitable[Host]],
    make_node: Callable[[SshTarget], Awaitable[Node]],
    engine: Engine,
    standin: Standin,
    docker_spec: Spec,
) -> None:
    engine.run_standin(standin, "--restart", "always")
    await ready(standin)
    host = await make_host()
    node = await make_node(host.target)
    spec = docker_spec()
    record = await inspect(node, spec)
    first = await guard_for(node, spec)
    assert (await stop(node, spec, record, experiment=EXPERIMENT)).state == "stopped"

    await node.close()
    await host.restart()
    node = await make_node(host.target)
    assert (await guard_status(node, EXPERIMENT)).pid == first.pid
    lease = await renew_lease(node, EXPERIMENT, holder="tests", lease_seconds=60)
    assert (lease.state, lease.renewals) == ("held", 1)
    assert (await follow_guard(node, EXPERIMENT)).samples
    restored = await restore(node, spec, record, experiment=EXPERIMENT)
    assert restored.state == "healthy"
    assert engine.policy(standin.name) == "always"
    assert not (await end_guard(node, EXPERIMENT, holder="tests")).alive


@pytest.fixture
def laptop() -> Iterator[Namespace]:
    """A namespace of its own: the console's place."""
    with joined_namespace() as namespace:
        yield namespace


@pytest.mark.sshd
async def test_a_link_whose_packets_are_dropped(
    laptop: Namespace, engine: Engine, standin: Standin, docker_spec: Spec, tmp_path: Path
) -> None:
    if shutil.which("sshd", path="/usr/sbin:/usr/bin") is None:
        pytest.skip("no sshd here: apt-get install openssh-server")
    engine.run_standin(standin)
    await ready(standin)
    host = SshdHost("node-a", tmp_path / "host")
    host.address = laptop.ours
    host.root.mkdir()
    await host.start()
    try:
        target = host.target
        where = {
            "name": target.name,
            "host": target.host,
            "port": target.port,
            "user": getpass.getuser(),
            "identity_file": str(target.identity_file),
            "known_hosts": str(target.known_hosts[0]),
        }
        spec = docker_spec()
        told = {"target": where, "spec": spec.model_dump(mode="json"), "lease_seconds": 4}
        process = console(told, tmp_path, front=laptop.front)
        await process.says("guarded")
        await process.says("stopped")
        assert not healthy(standin)
        laptop.drop_packets()
        node = LocalNode(host.home)
        status = await brought_back(node)
        assert process.process.poll() is None, "the console itself lives; only its link is gone"
        process.kill()
        assert status.restore is not None
        assert (status.restore.state, status.restore.by) == ("healthy", "guard")
        assert healthy(standin)
        assert (await words(node)).count("starting") == 1
    finally:
        await host.stop()
        end_processes_of(tmp_path)
