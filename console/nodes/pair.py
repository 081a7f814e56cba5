"""The check between nodes: who listens, who reaches, what each sees of the shared folder, and the clocks.

Every ordered pair of nodes is tried, because a firewall or a name may work in one direction only.
"""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from console.nodes.probes import run_probe
from console.nodes.ssh import Node

_SPARE_SECONDS = 15.0
"""Time for a probe's own start and its way there and back, beyond what it waits for."""


@dataclass(frozen=True)
class Place:
    """A node as the others and its runs see it."""

    node: Node
    address: str
    """Name or address at which the other nodes reach it."""
    shared: str
    cache: str | None
    """MODELSCOPE_CACHE of its runs."""
    interpreter: str | None = None
    """None: the node's own Python; these probes need nothing installed."""

    @property
    def name(self) -> str:
        return self.node.name


async def check_pair(
    places: Sequence[Place],
    *,
    port: int | Literal["auto"],
    seconds: float = 10.0,
    create_shared: bool = False,
) -> dict[str, Any]:
    """Try names, rendezvous port, shared folder, cache and clocks between all nodes.

    The answer has `all_reachable`, `shared_ok`, `cache_ok`, `clock_skew_seconds` (largest between two nodes)
    with `clock_skew_uncertainty_seconds`, all null for a lab of one node; the details under `port`, `reach`
    (`a_to_b`: from a to b, dots in names written `_`), `shared`, `cache`; and `problems`, one sentence each.
    Raises what `Node.run_python` raises when a node can't be asked at all.
    """
    if len(places) < 2:
        problem = "the lab has one node only, so there is no other to reach"
        unknown = dict.fromkeys(("all_reachable", "shared_ok", "cache_ok", "clock_skew_seconds"))
        return {"ok": False, "kind": "one node", "error": problem, "problems": [problem], **unknown}
    problems: list[str] = []
    ports = {place.name: await _port(place, port, seconds, problems) for place in places}
    reach = await _reach_all(places, ports, seconds, problems)
    shared = await _shared(places, seconds, create_shared, problems)
    caches = await _caches(places, problems)
    skews = [
        (abs(way["skew_seconds"]), way["skew_uncertainty_seconds"]) for way in reach.values() if way["ok"]
    ]
    skew, uncertainty = max(skews) if len(skews) == len(reach) else await _skew_by_console(places)
    answer: dict[str, Any] = {
        "ok": not problems,
        "all_reachable": all(way["ok"] for way in reach.values()),
        "shared_ok": all(seen["ok"] for seen in shared.values()),
        "shared_free_bytes": min(
            (seen["free_bytes"] for seen in shared.values() if seen.get("free_bytes") is not None),
            default=None,
        ),
        "cache_ok": all(cache["ok"] for cache in caches.values()),
        "clock_skew_seconds": skew,
        "clock_skew_uncertainty_seconds": uncertainty,
        "port": ports,
        "reach": reach,
        "shared": shared,
        "cache": caches,
        "problems": problems,
    }
    return answer | ({"kind": "pair", "error": "\n".join(problems)} if problems else {})


async def _port(
    place: Place, port: int | Literal["auto"], seconds: float, problems: list[str]
) -> dict[str, Any]:
    """The rendezvous port on this node, seen to be free there."""
    wanted = 0 if port == "auto" else port
    found = await _ask(place, {"action": "port", "port": wanted})
    if not found["ok"]:
        problems.append(
            f"{place.name}: {found['error']}; end that process or take another network.master_port"
        )
    return found


async def _reach_all(
    places: Sequence[Place], ports: dict[str, dict[str, Any]], seconds: float, problems: list[str]
) -> dict[str, dict[str, Any]]:
    ways: dict[str, dict[str, Any]] = {}
    for target in places:
        for source in places:
            if source is target:
                continue
            way = await _reach(source, target, ports[target.name], seconds)
            ways[f"{_key(source.name)}_to_{_key(target.name)}"] = way
            if not way["ok"] and way["kind"] != "port taken":
                problems.append(
                    f"{source.name} can't reach {target.name}: {way['error']} ({way['kind']}); "
                    f"{_remedy(way['kind'])}"
                )
    return ways


async def _reach(source: Place, target: Place, port: dict[str, Any], seconds: float) -> dict[str, Any]:
    """One direction: the target listens while the source connects."""
    if not port["ok"]:
        return port
    token = secrets.token_hex(16)
    meeting = {"port": port["port"], "token": token}
    listening = asyncio.create_task(
        _ask(target, {"action": "listen", "seconds": seconds + 5, **meeting}, seconds + 5)
    )
    try:
        way = await _ask(
            source, {"action": "reach", "address": target.address, "seconds": seconds, **meeting}, seconds
        )
        if way["ok"]:
            await listening
        elif listening.done() and not listening.result()["ok"]:
            way |= {"listener": listening.result()}
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    return way | {"port": port["port"]}


async def _shared(
    places: Sequence[Place], seconds: float, create: bool, problems: list[str]
) -> dict[str, dict[str, Any]]:
    """Each node leaves a token in the shared folder and looks for those of all the others."""
    mark = secrets.token_hex(8)
    names = {place.name: f"{mark}-{place.name}" for place in places}
    tokens = {name: secrets.token_hex(16) for name in names}
    try:
        written = await _each(
            places,
            lambda place: {
                "action": "shared_write",
                "shared": place.shared,
                "name": names[place.name],
                "token": tokens[place.name],
                "create": create,
            },
        )
        there = {names[name]: tokens[name] for name, wrote in written.items() if wrote["ok"]}
        read = await _each(
            places,
            lambda place: {
                "action": "shared_read",
                "shared": place.shared,
                "tokens": there,
                "seconds": min(seconds, 8.0),
            },
            min(seconds, 8.0),
        )
    finally:
        await asyncio.gather(
            *(
                _ask(place, {"action": "shared_clean", "shared": place.shared, "name": names[place.name]})
                for place in places
            ),
            return_exceptions=True,
        )
    found: dict[str, dict[str, Any]] = {}
    for place in places:
        wrote, saw = written[place.name], read[place.name]
        found[place.name] = wrote | {
            "ok": wrote["ok"] and saw["ok"],
            "written": wrote["ok"],
            "sees": {name: bool(saw.get("seen", {}).get(names[name])) for name in names},
        }
        for part, remedy in (
            (wrote, f"make {place.shared} a folder that the lab's user may write to"),
            (saw, f"mount the same export at {place.shared} on every node"),
        ):
            if not part["ok"]:
                found[place.name] |= {"kind": part["kind"], "error": part["error"]}
                problems.append(f"{place.name}: shared folder: {part['error']} ({part['kind']}); {remedy}")
    return found


async def _caches(places: Sequence[Place], problems: list[str]) -> dict[str, dict[str, Any]]:
    caches = await _each(
        places, lambda place: {"action": "cache", "shared": place.shared, "cache": place.cache}
    )
    for name, cache in caches.items():
        if not cache["ok"]:
            problems.append(
                f"{name}: MODELSCOPE_CACHE: {cache['error']} ({cache['kind']}); "
                "set it below the shared folder"
            )
    return caches


async def _skew_by_console(places: Sequence[Place]) -> tuple[float | None, float | None]:
    """Clock differences by way of this computer, when the nodes can't ask each other directly.

    Each node's clock is compared with half the round trip; the start of Python is in it, so this is the
    coarser way.
    """
    loop = asyncio.get_running_loop()
    offsets: list[tuple[float, float]] = []
    for place in places:
        best: tuple[float, float] | None = None
        for _ in range(3):
            began = loop.time()
            said = await _ask(place, {"action": "clock"})
            took = loop.time() - began
            if said["ok"] and (best is None or took / 2 < best[1]):
                best = (said["time_ns"] / 1e9 - (began + took / 2), took / 2)
        if best is None:
            return None, None
        offsets.append(best)
    low, high = min(offsets), max(offsets)
    return high[0] - low[0], high[1] + low[1]


async def _each(places: Sequence[Place], args: Any, seconds: float = 0.0) -> dict[str, dict[str, Any]]:
    answers = await asyncio.gather(*(_ask(place, args(place), seconds) for place in places))
    return {place.name: said for place, said in zip(places, answers, strict=True)}


async def _ask(place: Place, args: dict[str, Any], seconds: float = 0.0) -> dict[str, Any]:
    interpreter = place.interpreter or place.node.target.interpreter
    return await run_probe(place.node, interpreter, "pair", args, timeout=seconds + _SPARE_SECONDS)


def _key(name: str) -> str:
    return name.replace(".", "_")


def _remedy(kind: str) -> str:
    return {
        "unknown name": "correct the node's address in the profile, or add the name to /etc/hosts",
        "refused": "nothing got through to the port; look for a firewall that rejects it",
        "timed out": "packets are dropped on the way; see the firewall, or take the direct cable's address",
        "no route": "there is no route to that network; take the direct cable's address",
        "stranger": "another program answers on that port or address; take another network.master_port",
    }.get(kind, "see the raw error")
