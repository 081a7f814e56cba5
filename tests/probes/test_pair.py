"""Two real nodes that must meet: names, port, shared folder, cache, clocks."""

import shutil
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from console.core.errors import ScriptFailed
from console.nodes.pair import Place, check_pair
from console.nodes.probes import run_probe
from console.nodes.ssh import Node

from .conftest import Ask


@pytest.fixture
def places(node_pair: tuple[Node, Node], tmp_path: Path) -> tuple[Place, Place]:
    shared = tmp_path / "shared"
    shared.mkdir()
    return tuple(
        Place(node, "127.0.0.1", str(shared), str(shared / "modelscope"), sys.executable)
        for node in node_pair
    )  # type: ignore[return-value]


@pytest.fixture
def held_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_two_nodes_that_meet(places: tuple[Place, Place], tmp_path: Path) -> None:
    answer = await check_pair(places, port="auto", seconds=15)
    assert answer["problems"] == []
    assert (answer["ok"], answer["all_reachable"], answer["shared_ok"], answer["cache_ok"]) == (True,) * 4
    assert answer["reach"].keys() == {"node-a_to_node-b", "node-b_to_node-a"}
    for way in answer["reach"].values():
        assert way["ok"] is True
        assert 0 < way["rtt_seconds"] < 5
    # Both nodes have this computer's clock.
    assert answer["clock_skew_seconds"] <= answer["clock_skew_uncertainty_seconds"] + 0.005
    assert answer["shared"]["node-a"]["sees"] == {"node-a": True, "node-b": True}
    assert answer["shared_free_bytes"] > 0
    assert answer["cache"]["node-b"]["on_shared"] is True
    assert [found.name for found in (tmp_path / "shared").iterdir()] == ["modelscope"]
    assert list((tmp_path / "shared" / "modelscope").iterdir()) == []


async def test_a_taken_port_is_named_with_its_holder(places: tuple[Place, Place], held_port: int) -> None:
    answer = await check_pair(places, port=held_port, seconds=2)
    assert answer["all_reachable"] is False
    assert answer["port"]["node-a"]["kind"] == "port taken"
    assert answer["port"]["node-a"]["holder"].endswith(f"(pid {psutil.Process().pid})")
    assert len(answer["problems"]) == 2
    assert "network.master_port" in answer["problems"][0]
    assert answer["shared_ok"] is True
    # The nodes could not ask each other, so the clocks were compared by way of the console.
    assert answer["clock_skew_seconds"] <= answer["clock_skew_uncertainty_seconds"]


async def test_a_name_that_one_node_does_not_know(places: tuple[Place, Place]) -> None:
    second = replace(places[1], address="no-such-node.invalid")
    answer = await check_pair((places[0], second), port="auto", seconds=3)
    assert answer["all_reachable"] is False
    assert answer["reach"]["node-a_to_node-b"]["kind"] == "unknown name"
    assert answer["reach"]["node-b_to_node-a"]["ok"] is True
    (problem,) = answer["problems"]
    assert problem.startswith("node-a can't reach node-b")
    assert "/etc/hosts" in problem


async def test_folders_that_are_not_the_same(places: tuple[Place, Place], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    answer = await check_pair(
        (places[0], replace(places[1], shared=str(other), cache=None)), port="auto", seconds=1
    )
    assert (answer["all_reachable"], answer["shared_ok"], answer["cache_ok"]) == (True, False, False)
    assert answer["shared"]["node-a"]["sees"] == {"node-a": True, "node-b": False}
    assert answer["cache"]["node-b"]["kind"] == "not set"
    assert sum("shared folder" in problem for problem in answer["problems"]) >= 2
    assert list(other.iterdir()) == []


async def test_a_shared_folder_that_is_not_there(places: tuple[Place, Place], tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "shared")
    answer = await check_pair(places, port="auto", seconds=1)
    assert answer["shared_ok"] is False
    assert answer["shared"]["node-a"]["kind"] == "missing"
    made = await check_pair(places, port="auto", seconds=5, create_shared=True)
    assert made["shared_ok"] is True


async def test_a_lab_of_one_node_has_no_pair(places: tuple[Place, Place]) -> None:
    answer = await check_pair(places[:1], port="auto")
    assert (answer["ok"], answer["all_reachable"], answer["clock_skew_seconds"]) == (False, None, None)
    assert answer["problems"]


async def test_a_probe_over_ssh_is_the_probe_here(node: Node) -> None:
    answer = await run_probe(node, sys.executable, "baseline")
    assert answer["ok"] is True
    assert answer["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


async def test_an_interpreter_that_is_not_there_is_said(node: Node) -> None:
    with pytest.raises(ScriptFailed, match="/no/python"):
        await run_probe(node, "/no/python", "baseline")


def test_nobody_listens(ask: Ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    answer = ask(
        "pair", {"action": "reach", "address": "127.0.0.1", "port": port, "token": "t", "seconds": 0.5}
    )
    assert (answer["ok"], answer["kind"], answer["resolved"]) == (False, "refused", ["127.0.0.1"])


def test_a_stranger_on_the_port_is_not_the_other_node(ask: Ask) -> None:
    def serve(server: socket.socket) -> None:
        while True:
            try:
                link, _ = server.accept()
            except OSError:
                return
            with link:
                link.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                link.recv(100)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        answer = ask(
            "pair",
            {
                "action": "reach",
                "address": "127.0.0.1",
                "port": server.getsockname()[1],
                "token": "t",
                "seconds": 0.5,
            },
        )
        server.shutdown(socket.SHUT_RDWR)
    assert (answer["ok"], answer["kind"]) == (False, "stranger")
    assert "SSH-2.0" in answer["error"]


def test_a_listener_ends_when_nobody_comes(ask: Ask) -> None:
    answer = ask("pair", {"action": "listen", "port": 0, "token": "t", "seconds": 0.3})
    assert (answer["ok"], answer["kind"]) == (False, "nobody came")


def test_a_clock_that_is_off_is_measured(ask: Ask) -> None:
    """The other side answers with a clock that is 90 s ahead."""

    def serve(server: socket.socket) -> None:
        import json
        import time

        link, _ = server.accept()
        with link, link.makefile("rwb") as stream:
            while (line := stream.readline().strip()) != b"end":
                said = {"token": line.decode(), "time_ns": time.time_ns() + 90 * 10**9}
                stream.write(json.dumps(said).encode() + b"\n")
                stream.flush()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        port = server.getsockname()[1]
        answer = ask(
            "pair", {"action": "reach", "address": "localhost", "port": port, "token": "t", "seconds": 5}
        )
    assert answer["skew_seconds"] == pytest.approx(90, abs=answer["skew_uncertainty_seconds"] + 0.001)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"cache": ""}, "not set"),
        ({"cache": "{elsewhere}"}, "not on the shared folder"),
        ({"cache": "{file}/deeper"}, "missing"),
        ({}, None),
    ],
)
def test_where_the_cache_may_be(ask: Ask, tmp_path: Path, change: dict[str, Any], kind: str | None) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "file").write_text("")
    places = {"elsewhere": str(tmp_path / "elsewhere"), "file": str(shared / "file")}
    args = {"action": "cache", "shared": str(shared), "cache": str(shared / "modelscope")}
    args |= {name: text.format(**places) for name, text in change.items()}
    answer = ask("pair", args)
    assert answer.get("kind") == kind
    assert answer["ok"] is (kind is None)


def test_a_link_out_of_the_shared_folder_is_seen_through(ask: Ask, tmp_path: Path) -> None:
    shared, local = tmp_path / "shared", tmp_path / "local"
    shared.mkdir()
    local.mkdir()
    (shared / "modelscope").symlink_to(local)
    answer = ask("pair", {"action": "cache", "shared": str(shared), "cache": str(shared / "modelscope")})
    assert answer["kind"] == "not on the shared folder"


def test_a_shared_folder_that_can_not_be_written(
    ask: Ask, tmp_path: Path, programs: Callable[[str, str], dict[str, str]]
) -> None:
    """A name that is too long for the file system stands for whatever the system refuses."""
    answer = ask("pair", {"action": "shared_write", "shared": str(tmp_path), "name": "x" * 300, "token": "t"})
    assert (answer["ok"], answer["kind"]) == (False, "os error")
    assert answer["free_bytes"] > 0
