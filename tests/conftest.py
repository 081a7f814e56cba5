"""Fixtures for every test folder: real SSH hosts of both kinds, bare or already connected."""

import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from support.hosts import KINDS, SSHD, Host
from support.processes import end_processes_of

from console.nodes.ssh import Node

# a suite that runs in the background inherits an ignored SIGINT; what it starts shall not
signal.signal(signal.SIGINT, signal.default_int_handler)

MakeHost = Callable[..., Awaitable[Host]]


@pytest.fixture(params=["embedded", pytest.param("sshd", marks=pytest.mark.sshd)])
def host_kind(request: pytest.FixtureRequest) -> str:
    """Runs the test against the embedded servers and against real OpenSSH."""
    kind = str(request.param)
    if kind == "sshd" and SSHD is None:
        pytest.skip("no sshd here: apt-get install openssh-server")
    return kind


@pytest.fixture
async def make_host(tmp_path: Path, host_kind: str) -> AsyncIterator[MakeHost]:
    """`await make_host("node-a", shell=…, environment=…)`: a running host, stopped after the test."""
    hosts: list[Host] = []

    async def make(name: str = "node-a", **settings: object) -> Host:
        host = KINDS[host_kind](name, tmp_path / f"host-{name}", **settings)
        host.root.mkdir()
        hosts.append(host)
        await host.start()
        return host

    yield make
    for host in hosts:
        await host.stop()
    end_processes_of(tmp_path)


@pytest.fixture
async def make_node() -> AsyncIterator[Callable[..., Awaitable[Node]]]:
    """`await make_node(target)`: a connected node, closed after the test."""
    nodes: list[Node] = []

    async def make(target: object) -> Node:
        node = Node(target)  # type: ignore[arg-type]
        nodes.append(node)
        await node.connect()
        return node

    yield make
    for node in nodes:
        await node.close()


@pytest.fixture
async def host(make_host: MakeHost) -> Host:
    """One running host."""
    return await make_host("node-a")


@pytest.fixture
async def node(host: Host, make_node: Callable[..., Awaitable[Node]]) -> Node:
    """One connected node."""
    return await make_node(host.target)


@pytest.fixture
async def host_pair(make_host: MakeHost) -> tuple[Host, Host]:
    """Two running hosts, node-a and node-b."""
    return await make_host("node-a"), await make_host("node-b")


@pytest.fixture
async def node_pair(
    host_pair: tuple[Host, Host], make_node: Callable[..., Awaitable[Node]]
) -> tuple[Node, Node]:
    """Two connected nodes, node-a and node-b."""
    return await make_node(host_pair[0].target), await make_node(host_pair[1].target)
