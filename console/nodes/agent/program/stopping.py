"""`stop`: auto-restart off, requests drained, service stopped, memory proven free."""

from __future__ import annotations

import time
from typing import Callable

from . import commands, web
from .answers import Doc
from .folder import Folder
from .freeing import prove_free
from .kinds import Kind, kind_of
from .status import guard_identity


def stop(folder: Folder, request: Doc) -> Doc:
    """The stop outcome. How to put the service back is on disk before the first change is made."""
    began = time.monotonic()
    spec, record = request["spec"], request["record"]
    kind = kind_of(spec)

    def outcome(state: str, detail: str, next_step: str = "", **more: object) -> Doc:
        return dict(more, state=state, detail=detail, next_step=next_step, seconds=time.monotonic() - began)

    def interrupted() -> bool:
        return must_not_touch(folder.state())

    if not record["can_be_restored"]:
        return outcome("refused", str(record["refusal"]), str(record["refusal_next_step"] or ""))
    if not record["running"]:
        proof = prove_free(kind, record, spec["needed_memory_bytes"], 0, interrupted)
        return outcome(
            proof["state"], f"it was not running; {proof['detail']}", proof["next_step"], proof=proof
        )
    drained, in_flight = _drain(folder, request, interrupted)
    if interrupted():
        return outcome("interrupted", "the restore was asked for while requests drained", drained=drained)
    if drained is False and spec["when_not_drained"] == "ask" and not request["force"]:
        return outcome(
            "not drained",
            f"{in_flight:.0f} requests in flight after {spec['drain_seconds']:.0f} s; nothing was touched",
            "wait for them, or stop with force",
            drained=False,
            in_flight=in_flight,
        )
    folder.write("service.json", {"spec": spec, "record": record, "answers": request["answers"]})
    if not _touch(folder):
        return outcome(
            "interrupted", "the guard or a restore came first; nothing was touched", drained=drained
        )
    folder.account(
        "service touched", f"{spec['name']}: how to put it back is noted", commands=record["commands"]
    )
    try:
        kind.restart_off(record)
        folder.account("auto-restart off", f"was {record.get('restart_policy') or 'none'}")
        if interrupted():
            return outcome("interrupted", "the restore was asked for before the stop", drained=drained)
        kind.stop(record)
        view = kind.look()
    except commands.Failed as trouble:
        return outcome(
            "failed", str(trouble), "look at the node; `restore` puts the service back", drained=drained
        )
    exit_code = view.exit_code if view.exists else None
    folder.account("service stopped", f"{view.status}, exit code {exit_code}")
    proof = prove_free(kind, record, spec["needed_memory_bytes"], spec["release_seconds"], interrupted)
    folder.account("memory looked at", f"{proof['state']}: {proof['detail']}")
    return outcome(
        proof["state"], proof["detail"], proof["next_step"],
        drained=drained, in_flight=in_flight, exit_code=exit_code, proof=proof,
    )  # fmt: skip


def must_not_touch(state: Doc) -> bool:
    """Whether a restore was asked for, or the guard no longer stands behind this stop."""
    return bool(state.get("interrupt") or state.get("expired") or state.get("closing"))


def _touch(folder: Folder) -> bool:
    """Note that the service is touched, in one step with the last look at whether it may be.

    The guard notes the end of the lease in the same file: either it comes first and nothing is touched, or it
    finds the service touched and brings it back.
    """
    allowed = False

    def change(state: Doc) -> None:
        nonlocal allowed
        allowed = not must_not_touch(state) and guard_identity(state) is not None
        if allowed:
            state.update(service_touched=True, came_back_at=None, restore=None, start_tried_at=None)

    folder.change(change)
    return allowed


def _drain(folder: Folder, request: Doc, interrupted: Callable[[], bool]) -> tuple[bool | None, float | None]:
    """Wait until no request is in flight; (None, None) when the service does not count them."""
    spec, record = request["spec"], request["record"]
    if not record["running"] or not request["answers"]:
        return None, None
    service = web.Web(spec["base_url"], web.api_key(request))
    deadline = time.monotonic() + spec["drain_seconds"]
    told = False
    while True:
        try:
            in_flight = web.in_flight(service.counters())
        except web.NoAnswer:
            return None, None
        if in_flight is None or in_flight == 0:
            return (None if in_flight is None else True), in_flight
        if not told:
            folder.account("draining", f"{in_flight:.0f} requests in flight")
            told = True
        if time.monotonic() >= deadline or interrupted():
            return False, in_flight
        time.sleep(0.5)


def look_free(request: Doc) -> Doc:
    """One memory proof, without waiting."""
    kind: Kind = kind_of(request["spec"])
    return prove_free(kind, request["record"], request["spec"]["needed_memory_bytes"], 0, lambda: True)
