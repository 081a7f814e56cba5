"""An all-reduce between the nodes: does what training over them does, for some seconds, and says how fast.

algbw is the buffer's size over the time of one reduction; busbw is algbw x 2 (n - 1) / n, what the slowest
link carried each way (nccl-tests, doc/PERFORMANCE.md).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.core.reading.facts import NcclLine
from console.core.reading.nccl import nccl_key, transport
from console.nodes.probes import run_probe
from console.nodes.ssh import Node

_SPARE_SECONDS = 15.0
"""Time for a probe's own start and its way there and back, beyond what it waits for."""
_FOLLOWS = ("peer missing", "timed out", "backend")
"""Failures that another rank's failure brings about."""


@dataclass(frozen=True)
class Rank:
    """A node that takes part, in rank order, with the environment that a training run has there."""

    node: Node
    interpreter: str
    env: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.node.name


async def check_all_reduce(
    ranks: Sequence[Rank], *, seconds: float, sizes_mib: Sequence[int] | None = None
) -> dict[str, Any]:
    """Reduce buffers of growing size over all ranks, within `seconds` and the start of a Python.

    The answer has `backend` (`nccl`, or `gloo` with `without_cuda`, the nodes that see no CUDA device),
    `sums_right`, `sizes` (bytes, seconds, algbw and busbw in bytes per second, smallest size first), those of
    the largest size as `algbw_bytes_per_second` and `busbw_bytes_per_second`, `left_out` (bytes, for lack of
    time), what NCCL chose under `transport`, every rank's own answer under `ranks`, and `problems`, one
    sentence each. Raises what `Node.run_python` raises when a node can't be asked at all.
    """
    args: dict[str, Any] = {"names": [rank.name for rank in ranks], "seconds": seconds}
    if sizes_mib:
        args["sizes_mib"] = list(sizes_mib)
    said = await _ask_all(ranks, args, seconds + _SPARE_SECONDS)
    problems = _problems(ranks, said)
    first = said[ranks[0].name]
    sizes = [
        _size(rows, len(ranks)) for rows in zip(*(s.get("rows", []) for s in said.values()), strict=False)
    ]
    right = [row["sum_right"] for row in sizes]
    if False in right:
        problems.append("a sum came out wrong: data are damaged on the way; do not train over this link")
    largest = sizes[-1] if sizes else {}
    answer: dict[str, Any] = {
        "ok": not problems,
        "world_size": len(ranks),
        "backend": first.get("backend"),
        "without_cuda": first.get("without_cuda", []),
        "torch": first.get("torch"),
        "sums_right": all(right) if right and not problems else False,
        "sizes": sizes,
        "left_out": first.get("left_out", []),
        "algbw_bytes_per_second": largest.get("algbw_bytes_per_second"),
        "busbw_bytes_per_second": largest.get("busbw_bytes_per_second"),
        "transport": _transport(said),
        "ranks": said,
        "problems": problems,
    }
    return answer | ({"kind": "all-reduce", "error": "\n".join(problems)} if problems else {})


async def _ask_all(
    ranks: Sequence[Rank], args: Mapping[str, Any], timeout: float
) -> dict[str, dict[str, Any]]:
    """Every rank's answer. When one can't be asked, the others are ended: they would wait for it."""
    asked = [
        asyncio.create_task(
            run_probe(rank.node, rank.interpreter, "all_reduce", args, timeout=timeout, env=rank.env)
        )
        for rank in ranks
    ]
    try:
        answers = await asyncio.gather(*asked)
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    return {rank.name: answer for rank, answer in zip(ranks, answers, strict=True)}


def _size(rows: tuple[dict[str, Any], ...], world: int) -> dict[str, Any]:
    """One size, by its slowest rank."""
    seconds = max(row["seconds"] for row in rows)
    algbw = rows[0]["bytes"] / seconds
    return {
        "bytes": rows[0]["bytes"],
        "seconds": seconds,
        "iterations": rows[0]["iterations"],
        "algbw_bytes_per_second": algbw,
        "busbw_bytes_per_second": algbw * 2 * (world - 1) / world,
        "sum_right": all(row["sum_right"] for row in rows),
    }


def _transport(said: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """What NCCL's own lines of all ranks say; None where NCCL said nothing."""
    texts = dict.fromkeys(text for answer in said.values() for text in answer.get("nccl", []))
    lines = [NcclLine(start_byte=0, end_byte=0, line=0, text=text) for text in texts if nccl_key(text)]
    found = transport(lines)
    if found is None:
        return None
    return {
        "version": found.version,
        "network": found.network,
        "paths": list(found.paths),
        "hcas": list(found.hcas),
        "interfaces": list(found.interfaces),
        "gdr": found.gdr,
        "sockets_between_nodes": found.sockets_between_nodes,
        "warnings": list(found.warnings),
    }


def _problems(ranks: Sequence[Rank], said: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One sentence for each rank that failed; those that only waited for another are left out."""
    failed = {name: answer for name, answer in said.items() if not answer["ok"]}
    roots = {name: answer for name, answer in failed.items() if answer["kind"] not in _FOLLOWS}
    first = ranks[0].env
    place = f"{first.get('MASTER_ADDR')} port {first.get('MASTER_PORT')}"
    return [
        f"{name}: {answer['error'].strip()} ({answer['kind']}, {answer.get('stage', 'at its start')}); "
        f"{_remedy(answer['kind'], place)}"
        for name, answer in (roots or failed).items()
    ]


def _remedy(kind: str, place: str) -> str:
    return {
        "import": "the training environment there has no working torch, see checklist item 3",
        "unknown name": "correct the first node's address in the profile, or add it to /etc/hosts there",
        "port taken": "end what holds the port, or take another network.master_port",
        "peer missing": f"see that {place} is reachable from every node: address, port, firewall",
        "versions differ": "install the same build on every node",
        "interface": "correct the node's interface in the profile: NCCL_ and GLOO_SOCKET_IFNAME come from it",
        "timed out": f"packets beyond {place} may be dropped: NCCL and gloo use other ports between nodes",
    }.get(kind, "see the raw error and NCCL's lines in the evidence")
