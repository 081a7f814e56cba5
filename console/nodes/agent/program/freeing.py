"""`prove_free`: whether the memory of a stopped service is really free. Ports do not tell."""

from __future__ import annotations

import time
from typing import Callable

from . import commands, gpu, memory, processes
from .answers import Doc
from .kinds import Kind

_POOL_SINCE_DRIVER = 590
_GIB = 1 << 30


def prove_free(
    kind: Kind, record: Doc, needed: int | None, wait_seconds: float, interrupted: Callable[[], bool]
) -> Doc:
    """The memory proof: looks until memory is free or the limit is over, then names the state it is in."""
    began = time.monotonic()
    version, unified = gpu.driver()
    while True:
        proof = _look_once(kind, record, needed, version, unified)
        proof["seconds"] = time.monotonic() - began
        over = proof["seconds"] >= wait_seconds or interrupted()
        if over or proof["state"] in ("stopped", "came back by itself"):
            return proof
        time.sleep(0.5)


def _look_once(kind: Kind, record: Doc, needed: int | None, version: str | None, unified: bool) -> Doc:
    left, orphans, listed = _holders(kind, record)
    reading = memory.reading()
    proof: Doc = {
        "memory": reading,
        "needed_bytes": needed,
        "processes_left": left,
        "orphan_pids": orphans,
        "next_step": "",
    }
    try:
        running = kind.peek()
    except commands.Failed as trouble:
        return dict(proof, state="stopped but not released", detail=f"can't tell whether it runs: {trouble}")
    recorded = record.get("processes", [])
    never_stopped = bool(recorded) and all(processes.alive(who) for who in recorded)
    if running and not never_stopped:
        return dict(
            proof,
            state="came back by itself",
            detail=f"{kind.spec['name']} runs again although nobody of this lab started it",
            next_step="find what starts it (cron, a supervisor, a person), switch it off, then stop again",
        )
    state, detail, next_step = _judge(kind.spec, proof, listed, version, unified)
    return dict(proof, state=state, detail=detail, next_step=next_step)


def _holders(kind: Kind, record: Doc) -> tuple[list[Doc], list[int], int]:
    """Engine processes that are left, driver-listed pids without a process, and how many the driver lists."""
    left = {who["pid"]: who for who in record.get("processes", []) if processes.alive(who)}
    for who in processes.matching(kind.spec["engine_pattern"]):
        left.setdefault(who["pid"], who)
    apps, _ = gpu.compute_apps()
    orphans = [pid for pid in apps if processes.start_ticks(pid) is None]
    return list(left.values()), orphans, len(apps)


def _judge(spec: Doc, proof: Doc, listed: int, version: str | None, unified: bool) -> tuple[str, str, str]:
    left, orphans, reading = proof["processes_left"], proof["orphan_pids"], proof["memory"]
    if left:
        names = "; ".join(f"{who['pid']} {who['command'][:60]}" for who in left[:3])
        return (
            "stopped but not released",
            f"{len(left)} of its processes are left: {names}",
            "end these processes by hand, then look again",
        )
    if orphans:
        return (
            "stopped but not released",
            f"the driver still lists {', '.join(map(str, orphans))}, which /proc does not know",
            "wait a minute and look again; if they stay, the node needs a reboot",
        )
    held, limit = reading["driver_held_bytes"], spec["driver_held_limit_bytes"]
    if unified and held is not None and held > limit:
        major = (version or "").split(".")[0]
        pool = major.isdigit() and int(major) >= _POOL_SINCE_DRIVER and listed == 0
        amount = f"{held / _GIB:.1f} GiB in no kernel category (limit {limit / _GIB:.1f})"
        if pool:
            return (
                "held by driver, perhaps reusable",
                f"driver {version} holds {amount}, none runs; drivers from {_POOL_SINCE_DRIVER} keep a pool",
                "try a bounded allocation; if it succeeds go on with the override, else reboot the node",
            )
        return (
            "stopped but not released",
            f"the driver holds {amount}",
            "wait and look again; if it does not fall, the node needs a reboot",
        )
    needed = proof["needed_bytes"]
    if needed is not None and reading["available_bytes"] < needed:
        biggest = ", ".join(f"{pid} {size / _GIB:.1f} GiB {name}" for size, pid, name in processes.biggest(3))
        return (
            "stopped but not released",
            f"{reading['available_bytes'] / _GIB:.1f} GiB available, "
            f"{needed / _GIB:.1f} needed; largest: {biggest}",
            "free the memory of these processes, or lower needed_memory_bytes",
        )
    return "stopped", f"{reading['available_bytes'] / _GIB:.1f} GiB available, no engine process left", ""
