"""Real ranks of an all-reduce on nodes behind real SSH: they sum, and they say who is missing."""

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from console.core.errors import ScriptFailed
from console.nodes.all_reduce import Rank, check_all_reduce
from console.nodes.probes.all_reduce import nccl_lines
from console.nodes.ssh import Node

from .conftest import Ask

pytest.importorskip("torch")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def environment(number: int, port: int, **changes: str) -> dict[str, str]:
    return {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "NNODES": "2",
        "NODE_RANK": str(number),
        "GLOO_SOCKET_IFNAME": "lo",
        "CUDA_VISIBLE_DEVICES": "",
        **changes,
    }


def ranks_of(nodes: tuple[Node, ...], **changes: str) -> list[Rank]:
    port = free_port()
    return [Rank(node, sys.executable, environment(n, port, **changes)) for n, node in enumerate(nodes)]


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """No rank outlives its check."""
    yield
    mine = psutil.Process()
    left = [child for child in mine.children(recursive=True) if "MASTER_PORT" in _environ(child)]
    _, alive = psutil.wait_procs(left, timeout=15)
    assert alive == []


def _environ(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


@pytest.mark.usefixtures("nothing_left")
async def test_two_nodes_sum_right(node_pair: tuple[Node, Node]) -> None:
    answer = await check_all_reduce(ranks_of(node_pair), seconds=90, sizes_mib=[1, 4])
    assert answer["problems"] == []
    assert (answer["ok"], answer["sums_right"], answer["world_size"]) == (True, True, 2)
    assert answer["backend"] == "gloo"
    assert answer["without_cuda"] == ["node-a", "node-b"]
    assert [row["bytes"] for row in answer["sizes"]] == [1 << 20, 4 << 20]
    for row in answer["sizes"]:
        assert row["algbw_bytes_per_second"] == pytest.approx(row["bytes"] / row["seconds"])
        # n = 2: the bus carries as much as the buffer holds.
        assert row["busbw_bytes_per_second"] == pytest.approx(row["algbw_bytes_per_second"])
    assert answer["busbw_bytes_per_second"] == answer["sizes"][-1]["busbw_bytes_per_second"]
    assert answer["transport"] is None


@pytest.mark.usefixtures("nothing_left")
async def test_a_node_that_does_not_meet_the_other_is_named(node_pair: tuple[Node, Node]) -> None:
    """The second looks for the first where nobody listens."""
    first, second = ranks_of(node_pair)
    lost = Rank(second.node, second.interpreter, {**second.env, "MASTER_PORT": str(free_port())})
    answer = await check_all_reduce([first, lost], seconds=12)
    assert (answer["ok"], answer["sums_right"], answer["sizes"]) == (False, False, [])
    assert answer["ranks"]["node-a"]["missing"] == ["node-b"]
    assert answer["ranks"]["node-b"]["missing"] == ["node-a"]
    assert len(answer["problems"]) == 2
    assert "firewall" in answer["problems"][0]


@pytest.mark.usefixtures("nothing_left")
async def test_the_cause_is_told_not_what_follows_from_it(node_pair: tuple[Node, Node]) -> None:
    """The second node doesn't know the first one's name; the first only waits for it."""
    first, second = ranks_of(node_pair)
    lost = Rank(second.node, second.interpreter, {**second.env, "MASTER_ADDR": "no-such-node.invalid"})
    answer = await check_all_reduce([first, lost], seconds=12)
    (problem,) = answer["problems"]
    assert problem.startswith("node-b: no-such-node.invalid")
    assert "/etc/hosts" in problem
    assert answer["ranks"]["node-a"]["kind"] == "peer missing"


@pytest.mark.usefixtures("nothing_left")
async def test_an_interface_that_is_not_there(node_pair: tuple[Node, Node]) -> None:
    answer = await check_all_reduce(ranks_of(node_pair, GLOO_SOCKET_IFNAME="no-such-if0"), seconds=60)
    assert answer["sums_right"] is False
    assert {said["kind"] for said in answer["ranks"].values()} == {"interface"}, answer["problems"]
    assert "GLOO_SOCKET_IFNAME" in answer["problems"][0]


async def test_a_node_that_can_not_be_asked_ends_the_wait(node_pair: tuple[Node, Node]) -> None:
    first, second = ranks_of(node_pair)
    with pytest.raises(ScriptFailed, match="/no/python"):
        await check_all_reduce([first, Rank(second.node, "/no/python", second.env)], seconds=300)


def test_a_port_that_is_held(ask: Ask) -> None:
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        answer = ask("all_reduce", {"names": ["a", "b"], "seconds": 30}, env=environment(0, port))
    assert (answer["ok"], answer["kind"]) == (False, "port taken")
    assert str(port) in answer["stage"]


def test_no_torch_is_said_in_words(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.12: cannot open shared object file')")
    env = environment(0, free_port(), PYTHONPATH=str(tmp_path))
    answer = ask("all_reduce", {"names": ["a", "b"], "seconds": 30}, env=env)
    assert (answer["ok"], answer["kind"]) == (False, "import")
    assert "libcudart.so.12" in answer["error"]


@pytest.mark.usefixtures("nothing_left")
async def test_builds_of_torch_that_differ(node_pair: tuple[Node, Node], tmp_path: Path) -> None:
    """The second node's torch says another version of itself."""
    (tmp_path / "sitecustomize.py").write_text("import torch\ntorch.__version__ = '0.1'\n")
    first, second = ranks_of(node_pair)
    other = Rank(second.node, second.interpreter, {**second.env, "PYTHONPATH": str(tmp_path)})
    answer = await check_all_reduce([first, other], seconds=90)
    assert {said["kind"] for said in answer["ranks"].values()} == {"versions differ"}, answer["problems"]
    assert "node-b has 0.1" in answer["problems"][0]


class Said:
    """A node that gives a prepared answer."""

    def __init__(self, name: str, answer: dict[str, Any]) -> None:
        self.name = name
        self.answer = answer

    async def run_python(self, *_: object, **__: object) -> dict[str, Any]:
        return self.answer


def said(seconds: float, *nccl: str, right: bool = True) -> dict[str, Any]:
    row = {"bytes": 1 << 20, "seconds": seconds, "iterations": 20, "sum_right": right}
    return {"ok": True, "backend": "nccl", "without_cuda": [], "rows": [row], "nccl": list(nccl)}


async def summed(*answers: dict[str, Any]) -> dict[str, Any]:
    nodes: list[Any] = [Said(f"node-{number}", answer) for number, answer in enumerate(answers)]
    return await check_all_reduce([Rank(node, "python3", {}) for node in nodes], seconds=1)


async def test_the_slowest_rank_and_the_busbw_of_nccl_tests() -> None:
    answer = await summed(said(1e-3), said(2e-3), said(1e-3), said(1e-3))
    (row,) = answer["sizes"]
    assert row["seconds"] == 2e-3
    assert row["algbw_bytes_per_second"] == (1 << 20) / 2e-3
    assert row["busbw_bytes_per_second"] == row["algbw_bytes_per_second"] * 2 * 3 / 4


async def test_what_nccl_chose_is_told() -> None:
    head = "box:7:7 [0] NCCL INFO "
    answer = await summed(
        said(1e-3, head + "NCCL version 2.28.9+cuda13.0", head + "Using network Socket"),
        said(
            1e-3,
            head + "comm 0x1 rank 0 nRanks 2 nNodes 1",
            head + "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
        ),
    )
    assert (answer["ok"], answer["backend"]) == (True, "nccl")
    assert answer["transport"]["version"] == "2.28.9+cuda13.0"
    assert answer["transport"]["paths"] == ["P2P/CUMEM"]
    assert answer["transport"]["sockets_between_nodes"] is False


async def test_a_wrong_sum_is_not_passed_over() -> None:
    answer = await summed(said(1e-3), said(1e-3, right=False))
    assert (answer["ok"], answer["sums_right"]) == (False, False)
    assert "damaged" in answer["problems"][0]


def test_nccls_lines_are_kept_once_of_each_sort() -> None:
    ways = [
        f"x:1:{n} [0] NCCL INFO Channel {n:02}/0 : 0[0] -> 1[0] [send] via NET/IB/{n % 2}" for n in range(40)
    ]
    rings = [f"x:1:{n} [0] NCCL INFO Channel {n:02}/24 : 0 1" for n in range(24)]
    assert nccl_lines("\n".join([*ways, *rings])) == [ways[0], ways[1], rings[0]]
