"""`restore`: the service is started by its owner, once, and proven healthy. Console and guard alike."""

from __future__ import annotations

import os
import time

from . import commands, web
from .answers import Doc
from .folder import Folder, read_document
from .freeing import prove_free
from .guard import end_jobs
from .kinds import Kind, kind_of
from .ladder import Ladder

_DROP = "/proc/sys/vm/drop_caches"
_JOB_GRACE_SECONDS = 10.0


def restore(folder: Folder, request: Doc) -> Doc:
    """The restore outcome. The lab's jobs on this node are ended first, whoever asks.

    Nothing that runs is started; a start that failed is not tried again.
    """
    began = time.monotonic()
    noted = read_document(folder.file("service.json"))
    spec = noted.get("spec") or request["spec"]
    record = noted.get("record") or request["record"]
    answers = bool(noted.get("answers", request["answers"]))
    kind = kind_of(spec)
    by = request["by"]

    def outcome(state: str, detail: str, next_step: str = "", **more: object) -> Doc:
        return dict(more, state=state, detail=detail, next_step=next_step, seconds=time.monotonic() - began)

    if not folder.state().get("service_touched") and not record["running"]:
        return outcome(
            "nothing to restore", f"{spec['name']} was not running before the window", by="already"
        )
    folder.set(came_back_at=None)
    _end_jobs(folder, spec)
    started_at: float | None = None
    dropped: bool | None = None
    try:
        if kind.look().running:
            by = "already" if not folder.state().get("start_tried_at") else by
            folder.account("service already runs", spec["name"])
        else:
            if folder.state().get("start_tried_at") and not request["again"]:
                return outcome(
                    "start failed",
                    f"{spec['name']} was started before and does not run; it is not started again by itself",
                    "read the service's log, then ask for the restore again",
                    by=by,
                )
            gate = _memory_gate(folder, kind, record, request)
            if gate is not None:
                return outcome("memory not free", gate["detail"], gate["next_step"], by=by)
            dropped = _drop_caches(folder) if spec["drop_caches"] else None
            started_at = time.time()
            folder.set(start_tried_at=started_at)
            folder.account("starting", spec["name"], commands=record["commands"].get("start"))
            kind.start(record)
    except commands.Failed as trouble:
        return outcome(
            "start failed", str(trouble), "read the service's log, then decide", by=by, started_at=started_at
        )
    ladder = Ladder(
        kind, record, web.api_key(dict(request, spec=spec)),
        answers=answers, wait_seconds=spec["ready_timeout_seconds"], note=folder.account,
    )  # fmt: skip
    health = ladder.climb()
    back = _policy_back(folder, kind, record, health)
    more: Doc = {"by": by, "started_at": started_at, "health": health, "caches_dropped": dropped}
    if health["healthy"] and back is not False:
        folder.set(service_touched=False, start_tried_at=None)
        return outcome("healthy", f"{spec['name']} is back and answers", restart_policy_back=back, **more)
    failed = next((rung for rung in health["rungs"] if rung["state"] == "failed"), None)
    detail = f"{failed['name']}: {failed['detail']}" if failed else "its restart policy could not be put back"
    return outcome(
        "not healthy", detail, "read the service's log, then decide: wait, start again, or call its owner",
        restart_policy_back=back, **more,
    )  # fmt: skip


def _end_jobs(folder: Folder, spec: Doc) -> None:
    docker = list(spec.get("docker") or ["docker"])
    ended = end_jobs(folder, docker, _JOB_GRACE_SECONDS, "restore")
    if ended:
        folder.account("jobs ended", f"{len(ended)} processes", pids=sorted(ended))


def _memory_gate(folder: Folder, kind: Kind, record: Doc, request: Doc) -> Doc | None:
    """The proof that forbids the start; None when it may go on.

    A start into memory that is not free fails and makes the next one worse, so a person decides. The guard
    alone has no person: it waits its time and then tries once.
    """
    spec = kind.spec
    proof = prove_free(kind, record, spec["start_memory_bytes"], spec["release_seconds"], lambda: False)
    folder.account("memory before the start", f"{proof['state']}: {proof['detail']}")
    if proof["state"] in ("stopped", "came back by itself") or request["accept_held_memory"]:
        return None
    if request["by"] == "guard":
        folder.account("starting although memory is not free", "nobody is there to decide; one attempt")
        return None
    return proof


def _drop_caches(folder: Folder) -> bool:
    """Drop the page cache, as root or through passwordless sudo; whether it was done."""
    os.sync()
    try:
        with open(_DROP, "w", encoding="ascii") as file:
            file.write("3")
        done = True
    except OSError:
        done = commands.works(["sudo", "-n", "sh", "-c", f"echo 3 > {_DROP}"], timeout=60)
    folder.account(
        "page cache dropped" if done else "page cache not dropped", "" if done else "needs root or sudo"
    )
    return done


def _policy_back(folder: Folder, kind: Kind, record: Doc, health: Doc) -> bool | None:
    """Put the restart policy back unless the service crashes: then it would loop. None: there was none."""
    if not (record.get("commands") or {}).get("restart_back"):
        return None
    stands = {rung["name"]: rung["state"] for rung in health["rungs"]}
    if stands["running"] != "passed" or stands["health"] in ("failed", "not reached"):
        folder.account("auto-restart stays off", "the service does not stand, it would start again and again")
        return False
    try:
        kind.restart_back(record)
    except commands.Failed as trouble:
        folder.account("auto-restart could not be put back", str(trouble))
        return False
    folder.account("auto-restart back", str(record.get("restart_policy")))
    return True


def prove(request: Doc) -> Doc:
    """The health ladder, climbed once, without waiting for readiness."""
    ladder = Ladder(
        kind_of(request["spec"]), request["record"], web.api_key(request),
        answers=request["answers"], wait_seconds=0, note=lambda what, detail: None,
    )  # fmt: skip
    return ladder.climb()
