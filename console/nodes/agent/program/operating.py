"""Stop and restore as processes of their own: they go on when connection, console or guard ends."""

from __future__ import annotations

import os
import uuid

from . import commands, processes
from .answers import Doc, Refused, read_request
from .folder import Folder, Lock, boot_id
from .protection import be_ordinary
from .reserve import log_trouble
from .restoring import restore
from .status import died, guard_identity, lease_now, operation_now
from .stopping import stop


def begin(folder: Folder, request: Doc) -> Doc:
    """Start the operation `name`, or attach to it when it is going on. Answers its id."""
    name = request["name"]
    folder.create()
    state = folder.state()
    current = operation_now(state)
    if current is not None and current["name"] == name:
        return {"id": current["id"], "attached": True}
    if name == "stop":
        if current is not None:
            raise Refused("a restore is going on", next_step="wait for it to end")
        _require_guard(folder, state)
    if current is not None:
        folder.set(interrupt=True)
    request = dict(request, id=uuid.uuid4().hex)
    try:
        _, said = commands.start_detached("operation", request, folder.file("guard.log"))
    except commands.Failed as trouble:
        raise Refused(
            f"the {name} can't be started", why=str(trouble), next_step="look at the node"
        ) from None
    if said.get("busy"):
        raise Refused(f"another {name} was started at the same moment", next_step="look at its status")
    return {"id": request["id"], "attached": False}


def _require_guard(folder: Folder, state: Doc) -> None:
    lease = lease_now(folder.lease(), state)
    if guard_identity(state) is None:
        raise Refused(
            "no guard stands on this node, so nothing is stopped",
            why="without it nobody would bring the service back if this console disappeared",
            next_step="start the guard first",
        )
    if lease["state"] != "held":
        raise Refused("the lease is over, so nothing is stopped", next_step="start a new window")


def run(handle: int) -> int:
    """The detached side: one operation, its outcome in the state."""
    request = read_request()
    folder = Folder(request["root"], request["experiment"])
    name = request["name"]
    be_ordinary()
    lock = Lock(folder.file("operation.lock"))
    if name == "stop" and not lock.take():
        commands.say_ready(handle, {"busy": True})
        return 1
    own = processes.identity(os.getpid()) or {}
    operation = {
        "name": name,
        "id": request["id"],
        "pid": os.getpid(),
        "start_ticks": own.get("start_ticks"),
        "boot_id": boot_id(),
    }

    def enter(state: Doc) -> None:
        lost, current = died(state), operation_now(state)
        if current is not None and current["name"] == "stop":
            state["stuck_stop"] = current
        request["again"] = (
            request.get("again") or state.get("restore") is None or bool(lost and lost["name"] == "restore")
        )
        state.update({"operation": operation, name: None})
        if name == "stop":
            state["interrupt"] = bool(state.get("expired"))

    folder.change(enter)
    commands.say_ready(handle, {"id": request["id"]})
    if name == "restore" and not lock.take(_longest_stop(request)):
        _end_stuck_stop(folder)
        lock.take(10)
    folder.account(f"{name} began", f"asked by the {request['by']}")
    outcome = dict(_carried_out(folder, name, request), id=request["id"])

    def leave(state: Doc) -> None:
        state[name] = outcome
        if (state.get("operation") or {}).get("id") == request["id"]:
            state["operation"] = None

    folder.account(f"{name} ended", f"{outcome['state']}: {outcome['detail']}")
    folder.change(leave)
    lock.release()
    return 0


def _carried_out(folder: Folder, name: str, request: Doc) -> Doc:
    try:
        return stop(folder, request) if name == "stop" else restore(folder, request)
    except Exception as trouble:  # noqa: BLE001 - whatever it was becomes the outcome; its trace is in guard.log
        log_trouble()
        what = f"{type(trouble).__name__}: {trouble}"
        outcome: Doc = {
            "state": "failed",
            "detail": what,
            "next_step": "look at guard.log on the node",
            "seconds": 0.0,
        }
        return outcome if name == "stop" else dict(outcome, state="start failed", by=request["by"])


def _longest_stop(request: Doc) -> float:
    """An interrupted stop ends at its next look; the service's own stop is the longest step in between."""
    spec = request.get("spec") or {}
    return float(spec.get("stop_seconds", 60)) + 90.0


def _end_stuck_stop(folder: Folder) -> None:
    stuck: Doc | None = folder.state().get("stuck_stop")
    if stuck and processes.alive(stuck):
        os.kill(int(stuck["pid"]), 9)
        folder.account("a stop that did not end was ended", f"pid {stuck['pid']}")
