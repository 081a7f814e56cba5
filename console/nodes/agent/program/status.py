"""`status`: what the folder, the lease and /proc say about guard and service."""

from __future__ import annotations

import time
from typing import Any

from . import processes
from .answers import Doc
from .folder import Folder, boot_id, boottime


def guard_identity(state: Doc) -> Doc | None:
    """pid and start ticks of the live guard; None when it is gone or the node was rebooted."""
    guard = state.get("guard")
    if not guard or guard.get("boot_id") != boot_id():
        return None
    return {"pid": guard["pid"], "start_ticks": guard["start_ticks"]} if processes.alive(guard) else None


def lease_now(lease: Doc, state: Doc) -> Doc:
    """The lease as the console sees it. Times are counted on the boot clock, and end with the boot."""
    if not lease:
        return {"state": "none"}
    same_boot = lease.get("boot_id") == boot_id()
    now = boottime()
    left = lease["expires"] - now if same_boot else 0.0
    window_left = None
    if lease.get("window_end") is not None:
        window_left = lease["window_end"] - now if same_boot else 0.0
    word = "held"
    if state.get("expired") == "window over" or (window_left is not None and window_left <= 0):
        word = "window over"
    elif state.get("expired") or left <= 0:
        word = "expired"
    return {
        "state": word,
        "holder": lease.get("holder"),
        "seconds_left": left,
        "window_seconds_left": window_left,
        "renewals": lease.get("renewals", 0),
    }


def operation_now(state: Doc) -> Doc | None:
    """The operation that is going on; None when there is none or its process is gone."""
    operation = state.get("operation")
    if not operation or operation.get("boot_id") != boot_id() or not processes.alive(operation):
        return None
    current: Doc = operation
    return current


def died(state: Doc) -> Doc | None:
    """The operation whose process is gone although it left no outcome."""
    operation = state.get("operation")
    if not operation or operation_now(state) is not None:
        return None
    lost: Doc = operation
    return lost


def phase_of(state: Doc, lease: Doc, alive: bool) -> str:
    operation = operation_now(state)
    if operation is not None:
        return "stopping" if operation["name"] == "stop" else "restoring"
    if state.get("service_touched"):
        return "training" if alive and lease.get("phase") == "training" else "stopped"
    if (state.get("restore") or {}).get("state") == "healthy":
        return "restored"
    if not alive:
        return "ended" if state.get("guard") else "idle"
    return str(lease.get("phase") or "idle")


def status(folder: Folder, request: Doc) -> Doc:
    """The guard status, with the account's lines after `account_since`."""
    state, lease = folder.state(), folder.lease()
    guard = guard_identity(state)
    rebooted = bool(state.get("guard")) and state["guard"].get("boot_id") != boot_id()
    lines = folder.account_since(0)
    lost = died(state)
    outcomes: Doc = {"stop": state.get("stop"), "restore": state.get("restore")}
    if lost is not None:
        outcomes[lost["name"]] = _lost_outcome(lost["name"])
    operation = operation_now(state)
    return {
        "experiment": folder.experiment,
        "alive": guard is not None,
        "detail": _detail(state, lease, guard is not None, rebooted),
        "at": time.time(),
        "pid": guard["pid"] if guard else None,
        "rebooted": rebooted,
        "boot_id": boot_id(),
        "phase": phase_of(state, lease, guard is not None),
        "lease": lease_now(lease, state),
        "expired": state.get("expired") or "",
        "service_touched": bool(state.get("service_touched")),
        "came_back_at": state.get("came_back_at"),
        "risk": state.get("risk") or "",
        "floor_events": state.get("floor_events", []),
        "operation": operation["name"] if operation else None,
        "progress": _progress(lines[-1]) if lines else "",
        "account_lines": lines[-1]["n"] if lines else 0,
        **outcomes,
        "account": [line for line in lines if line["n"] > request.get("account_since", lines[-1]["n"])]
        if lines
        else [],
    }


def _progress(line: Doc) -> str:
    return f"{line['what']}: {line['detail']}" if line["detail"] else str(line["what"])


def _lost_outcome(name: str) -> Doc:
    common: Doc = {
        "detail": f"the {name} process ended without a result",
        "next_step": "look at guard.log in the guard's folder, then ask for the restore again",
        "seconds": 0.0,
    }
    return dict(common, state="died", by="console") if name == "restore" else dict(common, state="failed")


def _detail(state: Doc, lease: Doc, alive: bool, rebooted: bool) -> str:
    if not state.get("guard"):
        return "no guard was started for this experiment"
    if rebooted:
        what = (
            "its service is still to be restored"
            if state.get("service_touched")
            else "nothing was left to restore"
        )
        return f"the node was rebooted since the guard was started; {what}"
    if alive:
        now: Any = lease_now(lease, state)
        if now["state"] == "held":
            return f"guard stands; lease of {now['holder']} for another {now['seconds_left']:.0f} s"
        return (
            f"guard stands; {'the window is over' if now['state'] == 'window over' else 'the lease ran out'}"
        )
    ended = state.get("ended")
    return f"the guard ended: {ended}" if ended else "the guard is gone without having ended itself"
