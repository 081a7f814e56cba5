"""Starting, holding and ending a guard: what the console asks for, answered at once."""

from __future__ import annotations

import os
import signal
import time

from . import commands, memory, processes
from .answers import Doc, Refused
from .folder import Folder, boot_id, boottime, read_document
from .owing import refuse_while_owed
from .status import guard_identity, lease_now, operation_now, status


def start(folder: Folder, request: Doc) -> Doc:
    """Check, then start the guard detached; the same holder gets the running one. Answers the status.

    Raises `Refused`, also while another experiment holds this node or owes it a service.
    """
    spec = request["guard"]
    total = memory.reading()["total_bytes"]
    for phase in ("training", "restoring"):
        floor = spec["floors"][f"{phase}_bytes"]
        if floor >= total:
            raise Refused(
                f"the {phase} floor of {floor} bytes is not below the node's total memory of {total} bytes",
                kind="input",
                next_step="lower the floor in the profile",
            )
    left = spec["window_seconds_left"]
    if left is not None and left <= 0:
        raise Refused(
            "the window is already over", kind="input", next_step="give a window that ends in the future"
        )
    folder.create()
    standing = read_document(os.path.join(folder.root, "guard.lock"))
    other = _standing_elsewhere(folder, standing)
    if other:
        raise Refused(
            f"a guard of experiment {other} stands on this node", next_step=f"end the window of {other} first"
        )
    if guard_identity(folder.state()) is not None and not _relieved(folder, request):
        return _join(folder, request)
    refuse_while_owed(folder)
    _begin_state(folder)
    _write_lease(folder, spec, renewals=0)
    try:
        commands.start_detached("guard-run", request, folder.file("guard.log"))
    except commands.Failed as trouble:
        raise Refused("the guard did not start", why=str(trouble), next_step="look at guard.log") from None
    if guard_identity(folder.state()) is None:
        raise Refused("another guard was started at the same moment", next_step="look at its status")
    return status(folder, {})


def _standing_elsewhere(folder: Folder, standing: Doc) -> str | None:
    name = standing.get("experiment")
    if not name or name == folder.experiment:
        return None
    there = Folder(folder.root, str(name))
    return str(name) if guard_identity(there.state()) is not None else None


def _relieved(folder: Folder, request: Doc) -> bool:
    """Whether a guard that waits for its next try was ended: this console takes over what it owes."""
    state, lease = folder.state(), folder.lease()
    guard = guard_identity(state)
    own = request["takeover"] or lease.get("holder") == request["guard"]["holder"]
    if guard is None or not own or not state.get("waiting") or lease_now(lease, state)["state"] == "held":
        return False
    folder.account("guard relieved", f"{request['guard']['holder']} brings the service back")
    return _terminated(guard)


def _join(folder: Folder, request: Doc) -> Doc:
    """A guard stands already: its holder is answered, another console is refused unless it takes over."""
    spec = request["guard"]
    lease = folder.lease()
    holder = lease.get("holder")
    if holder != spec["holder"] and not request["takeover"]:
        raise Refused(
            f"{holder} holds this node",
            why=f"the lease has another {lease_now(lease, folder.state())['seconds_left'] or 0:.0f} s",
            next_step="end the other console's window, or take it over",
        )
    if lease_now(lease, folder.state())["state"] != "held":
        raise Refused(
            "the lease is over and the guard restores the service", next_step="wait until it has ended"
        )
    if holder != spec["holder"]:
        folder.account("taken over", f"{spec['holder']} from {holder}")
    _write_lease(folder, spec, renewals=lease.get("renewals", 0))
    return status(folder, {})


def _begin_state(folder: Folder) -> None:
    """A new window begins with a clean state, unless the last one left its service unrestored."""
    before = folder.state()
    rebooted = bool(before.get("guard")) and before["guard"].get("boot_id") != boot_id()
    if rebooted:
        folder.account(
            "the node was rebooted", "seen from its boot id", was=before["guard"]["boot_id"], now=boot_id()
        )

    def begin(state: Doc) -> None:
        kept = (
            {
                key: state.get(key)
                for key in ("stop", "restore", "start_tried_at", "floor_events", "came_back_at")
            }
            if state.get("service_touched")
            else {}
        )
        touched = bool(state.get("service_touched"))
        operation = operation_now(state)
        state.clear()
        state.update({key: value for key, value in kept.items() if value is not None})
        state.update({"service_touched": touched, "operation": operation})

    folder.change(begin)
    if before.get("service_touched"):
        folder.account("the service is still to be restored", "left so by the guard before this one")


def _write_lease(folder: Folder, spec: Doc, renewals: int) -> None:
    now, left = boottime(), spec["window_seconds_left"]
    with folder.lease_change() as lease:
        phase = lease.get("phase") if renewals else None
        lease.clear()
        lease.update(
            {
                "holder": spec["holder"],
                "boot_id": boot_id(),
                "expires": now + spec["lease_seconds"],
                "window_end": None if left is None else now + left,
                "renewals": renewals,
                "phase": phase,
            }
        )


def renew(folder: Folder, request: Doc) -> Doc:
    """Renew the lease. One that is over stays over: the guard is already bringing the service back."""
    state = folder.state()
    if not folder.lease():
        raise Refused("no guard was started for this experiment", next_step="start the guard first")
    with folder.lease_change() as lease:
        if lease["holder"] != request["holder"]:
            raise Refused(f"{lease['holder']} holds this node", next_step="end the other console's window")
        if guard_identity(state) is None:
            raise Refused("the guard is gone", next_step="start it again")
        if lease_now(lease, state)["state"] == "held":
            now, left = boottime(), request.get("window_seconds_left")
            lease["expires"] = now + request["lease_seconds"]
            lease["renewals"] = lease.get("renewals", 0) + 1
            if left is not None:
                lease["window_end"] = now + left
            if request.get("phase"):
                lease["phase"] = request["phase"]
    return lease_now(folder.lease(), folder.state())


def end(folder: Folder, request: Doc) -> Doc:
    """End the guard; refused while it is the service's only hope."""
    state = folder.state()
    guard = guard_identity(state)
    if guard is None:
        return status(folder, {})
    holder = folder.lease().get("holder")
    if holder != request["holder"] and not request["force"]:
        raise Refused(f"{holder} holds this node", next_step="let that console end its window")

    def close(state: Doc) -> None:
        state["closing"] = request["force"] or not (state.get("service_touched") or operation_now(state))

    if not folder.change(close)["closing"]:
        raise Refused(
            "the service is not proven healthy, so the guard stays", next_step="restore the service first"
        )
    folder.account("guard told to end", "by force" if request["force"] else "")
    _terminated(guard)
    return status(folder, {})


def _terminated(guard: Doc) -> bool:
    """Tell a guard to end; whether it did within ten seconds."""
    os.kill(guard["pid"], signal.SIGTERM)
    deadline = time.monotonic() + 10
    while processes.alive(guard) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not processes.alive(guard)
