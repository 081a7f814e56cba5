"""The guard: samples, lease and floor of one window, independent of any connection."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import deque
from typing import Callable

from . import commands, containers, gpu, processes, samples
from .answers import Doc, read_request
from .floor import FloorWatch
from .folder import Folder, Kept, Lock, boot_id, read_document
from .peeking import PeekAtService
from .protection import ending_risk, protect
from .reserve import FULL, log_trouble
from .status import lease_now, operation_now

_LOOK_SECONDS = 1.0
_UNWRITTEN_SAMPLES = 2000
_FAST_SAMPLE_SECONDS = 0.2
_JOBS_SECONDS = 10.0
_APPS_SECONDS = 15.0
_DISK_SECONDS = 10.0
_DISK_FULL = "the disk is full, so the guard can't note what it does; free space on the node"
_OPERATION_LIMIT_SECONDS = 6 * 3600.0
_LONGEST_PAUSE_SECONDS = 600.0


def run(handle: int) -> int:
    """The detached side: hold the node's lock, stand guard until the window has ended."""
    request = read_request()
    folder = Folder(request["root"], request["experiment"])
    lock = Lock(os.path.join(folder.root, "guard.lock"))
    if not lock.take():
        commands.say_ready(handle, {"busy": True})
        return 1
    lock.note(json.dumps({"experiment": folder.experiment, "pid": os.getpid()}))
    own = processes.identity(os.getpid()) or {}
    folder.set(
        guard={"pid": os.getpid(), "start_ticks": own.get("start_ticks"), "boot_id": boot_id()}, ended=None
    )
    guard = Guard(folder, request)
    folder.account(
        "guard stands", f"pid {os.getpid()}, lease of {request['guard']['holder']}", **guard.protection
    )
    commands.say_ready(handle, {"pid": os.getpid()})
    guard.stand()
    lock.release()
    return 0


class Guard:
    """Three threads: floor and samples (the main one), errands and writing, the GPU's reader."""

    def __init__(self, folder: Folder, request: Doc) -> None:
        self._folder, self._request, self._spec = folder, request, request["guard"]
        self._ending = self._risk = self._fault = ""
        self._file: samples.SampleFile | None = None
        self._restoring = False
        self._finale: threading.Thread | None = None
        self._first_pause = float(self._spec["retry_seconds"])
        self._jobs = samples.Jobs({}, {})
        self._apps: dict[int, int | None] = {}
        self._taken: deque[Doc] = deque(maxlen=_UNWRITTEN_SAMPLES)
        self._wake, self._hurry = threading.Event(), threading.Event()
        self._state, self._lease = Kept(folder.file("state.json")), Kept(folder.file("lease.json"))
        self._gpu = gpu.GpuStream(self._spec["gpu"])
        self._floor = FloorWatch(folder, self._spec["floors"], lambda: self._restoring, self._hurry.set)
        self.protection = protect()

    def stand(self) -> None:
        signal.signal(signal.SIGTERM, lambda number, frame: self._end("told to end"))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._gpu.start()
        threading.Thread(target=self._steady, args=(self._errands,), name="errands", daemon=True).start()
        self._steady(self._watch)
        self._gpu.end()
        self._note("guard ended", self._ending, ended=self._ending)
        self._folder.reserve.remove()

    def _end(self, why: str) -> None:
        self._ending = self._ending or why
        self._wake.set()
        self._hurry.set()

    def _steady(self, body: Callable[[], None]) -> None:
        """Keep a thread's work going: what goes wrong in it is written down, and it goes on."""
        while not self._ending:
            try:
                body()
            except Exception as trouble:  # noqa: BLE001 - a guard that stops guarding is worse than any fault
                log_trouble()
                self._tell_fault(body.__name__.lstrip("_"), trouble)
                time.sleep(1.0)

    def _tell_fault(self, where: str, trouble: Exception) -> None:
        """A fault that comes again and again is told once."""
        fault = f"{where}: {type(trouble).__name__}: {trouble}"
        if fault != self._fault:
            self._note("guard stumbled", fault)
        self._fault = fault

    def _note(self, what: str, detail: str, *, data: Doc | None = None, **state: object) -> None:
        """Account and state, as far as the disk allows: nothing that has to be done waits for them."""
        try:
            if state:
                self._folder.set(**state)
            self._folder.account(what, detail, **(data or {}))
        except OSError:
            log_trouble()

    def _watch(self) -> None:
        """Floor first, sample second; the errands write it down, so that no disk delays the floor."""
        due = time.monotonic()
        while not self._ending:
            pause = self._floor.tick()
            period = self._spec["sample_seconds"]
            if self._floor.fast:
                due = min(due, time.monotonic() + min(_FAST_SAMPLE_SECONDS, period))
            if time.monotonic() >= due:
                self._taken.append(samples.take(self._gpu.latest(), self._apps, self._jobs))
                due = max(due + period, time.monotonic())
            time.sleep(min(pause, period))

    def _errands(self) -> None:
        service = PeekAtService(self._folder)
        jobs_at = apps_at = disk_at = 0.0
        while not self._ending:
            now = time.monotonic()
            state = self._state.read()
            operation = operation_now(state)
            self._restoring = operation is not None and operation["name"] == "restore"
            if self._finale is None or not self._finale.is_alive():
                self._check_lease(state)
                if operation is None:
                    service.look(state, now)
            if now >= jobs_at:
                jobs_at = now + _JOBS_SECONDS
                found = processes.lab_processes(self._folder.experiment_folder)
                sizes = {pid: size for pid in found for size in [processes.resident_bytes(pid)] if size}
                self._jobs = samples.Jobs(sizes, found)
            if now >= apps_at:
                apps_at = now + _APPS_SECONDS
                threading.Thread(target=self._list_apps, name="apps", daemon=True).start()
            if now >= disk_at:
                disk_at = now + _DISK_SECONDS
                self._look_at_disk()
            self._write_samples()
            self._hurry.clear()
            self._hurry.wait(_FAST_SAMPLE_SECONDS if self._floor.fast else _LOOK_SECONDS)

    def _look_at_disk(self) -> None:
        """Keep the reserve whole; while it is not, that is told as a risk."""
        risk = ending_risk() if self._folder.reserve.fill() else _DISK_FULL
        if risk == self._risk:
            return
        self._risk = risk
        self._note("the guard may be ended" if risk else "the guard is safe again", risk, risk=risk)

    def _write_samples(self) -> None:
        """A full disk is told as a risk; the samples that it has no room for are lost."""
        try:
            if self._file is None:
                limit = self._spec["samples_limit_bytes"]
                self._file = samples.SampleFile(self._folder.file("samples.jsonl"), limit)
            while self._taken:
                self._file.append(self._taken.popleft())
        except OSError as trouble:
            if trouble.errno not in FULL:
                raise

    def _list_apps(self) -> None:
        self._apps, _ = gpu.compute_apps()

    def _check_lease(self, state: Doc) -> None:
        word = lease_now(self._lease.read(), state)["state"]
        if word == "held":
            return
        if not state.get("expired"):
            reason = "window over" if word == "window over" else "lease ran out"
            self._note(reason, "the lab's jobs are ended and the service is brought back", expired=reason)
        finale = threading.Thread(target=self._until_back, name="finale")
        finale.start()
        self._finale = finale

    def _until_back(self) -> None:
        """One try after another, with a pause in between, until there is nothing left that a try could do."""
        pause = self._first_pause
        while not self._ending:
            obstacle = self._try_to_bring_back()
            if not self._ending:
                self._note(
                    "the service is not back yet", f"{obstacle}; tried again in {pause:.0f} s", waiting=True
                )
                self._wait_for_next_try(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _wait_for_next_try(self, seconds: float) -> None:
        """Shorter when a console proves the service meanwhile: then the next look ends the guard."""
        owed = self._folder.state().get("service_touched")
        deadline = time.monotonic() + seconds
        while not self._ending and time.monotonic() < deadline:
            if owed and self._folder.state().get("service_touched") is False:
                return
            self._wake.wait(min(_LOOK_SECONDS, seconds))

    def _try_to_bring_back(self) -> str:
        """What stands in the way; when nothing more is to be done the guard is told to end."""
        try:
            return self._bring_back()
        except Exception as trouble:  # noqa: BLE001 - whatever it is, the service is still owed
            log_trouble()
            return str(trouble) if isinstance(trouble, commands.Failed) else repr(trouble)

    def _bring_back(self) -> str:
        """What the guard is for: jobs ended, service restored, health proven."""
        ended = end_jobs(self._folder, self._docker(), self._spec["job_grace_seconds"], "lease")
        pids = sorted(ended)
        self._note("jobs ended", f"{len(pids)} processes", data={"pids": pids}, interrupt=True, waiting=False)
        if self._must_restore():
            self._wait_unless_ended(self._spec["restore_delay_seconds"])
            self._restore()
        return self._conclude()

    def _must_restore(self) -> bool:
        """Whether the service was touched; a stop that is going on decides that first."""
        deadline = time.monotonic() + _OPERATION_LIMIT_SECONDS
        while not self._ending and time.monotonic() < deadline:
            state = self._state_for_sure()
            if state.get("service_touched"):
                return True
            if operation_now(state) is None:
                return False
            self._wake.wait(_LOOK_SECONDS)
        return False

    def _state_for_sure(self) -> Doc:
        """The state; empty only when its folder was removed. Raises `OSError` when it can't be read."""
        state = self._folder.state()
        if not state and os.path.lexists(self._folder.file("state.json")):
            raise OSError("the guard's state can't be read")
        return state

    def _restore(self) -> None:
        """Wait for a restore that is going on, else for one of the guard's own."""
        if not self._ending and not self._is_restoring():
            noted = read_document(self._folder.file("service.json"))
            if not noted:
                raise commands.Failed("service.json, which tells how to put it back, can't be read")
            commands.start_detached("operation", self._restore_request(noted), self._folder.file("guard.log"))
        while not self._ending and self._is_restoring():
            self._wake.wait(_LOOK_SECONDS)

    def _is_restoring(self) -> bool:
        operation = operation_now(self._folder.state())
        return operation is not None and operation["name"] == "restore"

    def _conclude(self) -> str:
        """What came of it; unless the service is still owed its start, the guard is told to end with that."""
        state = self._state_for_sure()
        outcome = state.get("restore") or {"state": "died", "detail": "its process ended without a result"}
        words = f"restore: {outcome['state']}, {outcome['detail']}"
        if _start_failed(state):
            self._end(f"lease over; {words}")
        elif not state.get("service_touched"):
            self._end(
                f"lease over; {words if outcome['state'] == 'healthy' else 'the service was never touched'}"
            )
        return words

    def _restore_request(self, noted: Doc) -> Doc:
        return {
            "root": self._folder.root,
            "experiment": self._folder.experiment,
            "name": "restore",
            "id": f"guard-{os.getpid()}-{time.time():.3f}",
            "by": "guard",
            "spec": noted["spec"],
            "record": noted["record"],
            "answers": noted["answers"],
            "api_key": self._request.get("api_key"),
            "accept_held_memory": False,
            "again": False,
        }

    def _docker(self) -> list[str]:
        return list((self._request.get("spec") or {}).get("docker") or ["docker"])

    def _wait_unless_ended(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._ending and time.monotonic() < deadline:
            self._wake.wait(min(_LOOK_SECONDS, seconds))


def _start_failed(state: Doc) -> bool:
    """Whether the start was really tried and the service does not stand: another one is for a person."""
    outcome = state.get("restore")
    if not state.get("service_touched") or not outcome or not state.get("start_tried_at"):
        return False
    return not (outcome.get("health") or {}).get("healthy")


def end_jobs(folder: Folder, docker: list[str], grace_seconds: float, reason: str) -> dict[int, str]:
    """Every process and container of the experiment on this node, ended; run id by pid.

    A container that does not end is told in the account; nothing that has to be done waits for it.
    """
    ended = processes.end_lab_processes(folder.experiment_folder, grace_seconds)
    try:
        containers.end_of_lab(docker, folder.experiment, grace_seconds)
    except commands.Failed as trouble:
        folder.account("a container of the lab does not end", str(trouble))
    processes.note_end(folder.experiment_folder, set(ended.values()), reason, {"at": time.time()})
    return ended
