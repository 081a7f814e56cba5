"""A plain process: started from the profile's command line, known by its pid file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from typing import Sequence

from . import commands, owner, processes
from .answers import Doc
from .kinds import Kind, View
from .masking import masked

_STARTED = b"-- started by the lab at "
_WRITE_PID_THEN_BECOME = 'echo "$$" > "$1"; shift; exec "$@"'


class CommandKind(Kind):
    @property
    def pid_file(self) -> str:
        return os.path.expanduser(str(self.spec["pid_file"]))

    @property
    def log_file(self) -> str:
        return os.path.expanduser(str(self.spec["log_file"]))

    def _pid(self) -> int | None:
        """The process of the pid file, unless it is gone or the number was given to a later one.

        Once the node's clock was set forward every process seems to have begun after the file was written:
        then its command line decides.
        """
        try:
            written_at = os.stat(self.pid_file).st_mtime
            with open(self.pid_file, encoding="ascii", errors="replace") as file:
                pid = int(file.read().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        started = processes.started_at(pid)
        if started is None:
            return None
        return pid if started <= written_at + 2.0 or _runs(pid, self.spec["start"]) else None

    def look(self) -> View:
        pid = self._pid()
        if pid is None:
            return View(exists=True, status="not running")
        ticks = processes.start_ticks(pid)
        return View(exists=True, running=ticks is not None, status="running", marks=(str(pid), str(ticks)),
                    detail={"pid": pid})  # fmt: skip

    def peek(self) -> bool:
        return self._pid() is not None

    def pids(self, view: View) -> list[int]:
        pid = view.detail.get("pid")
        if pid is None:
            return []
        found = processes.descendants(int(pid))
        if processes.process_group(int(pid)) == pid:
            found |= {other for other in processes.all_pids() if processes.process_group(other) == pid}
        return sorted(found)

    def describe(self, view: View) -> Doc:
        pid = view.detail.get("pid")
        keeper = owner.keepalive_of(str(self.spec["name"]))
        described: Doc = {
            "owner": keeper or owner.none(),
            "inspect": {
                "pid": pid,
                "argv": processes.arguments(int(pid)) if pid else [],
                "pid_file": self.pid_file,
            },
            "warnings": [f"a keepalive may start it during the window: {keeper['evidence']}"]
            if keeper
            else [],
        }
        refusal, setting = self._cannot_start()
        if refusal:
            described["refusal"] = f"{refusal}: it could not be started again"
            described["refusal_next_step"] = f"correct {setting} in the profile"
        return described

    def _cannot_start(self) -> tuple[str, str]:
        """What its start would fail at, and the setting that is wrong; empty when it may work."""
        folder = os.path.expanduser(self.spec.get("cwd") or "~")
        if not (os.path.isdir(folder) and os.access(folder, os.X_OK)):
            return f"the folder {folder!r} to start it in is not on the node", "service.cwd"
        program = self.spec["start"][0]
        if not _found(program, folder, self._environment()):
            return f"the start command {program!r} is not on the node", "service.start"
        for name, path in (("pid_file", self.pid_file), ("log_file", self.log_file)):
            if not _writable(os.path.abspath(path)):
                return f"the file {path!r} can't be written on the node", f"service.{name}"
        return "", ""

    def _environment(self) -> dict[str, str]:
        return dict(commands.environment(), **self.spec["env"])

    def command_lines(self, described: Doc) -> dict[str, list[list[str]]]:
        stop = list(self.spec["stop"]) or ["kill", "-TERM", f"<group of {self.pid_file}>"]
        return {"stop": [masked(stop)], "start": [masked(list(self.spec["start"]))]}

    def stop(self, record: Doc) -> None:
        pid = self._pid()
        if self.spec["stop"]:
            commands.output(self.spec["stop"], timeout=self.spec["stop_seconds"] + 60)
        elif pid is not None:
            _signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + self.spec["stop_seconds"]
        while pid is not None and processes.start_ticks(pid) is not None:
            if time.monotonic() >= deadline:
                _signal(pid, signal.SIGKILL)
                deadline = time.monotonic() + 10
            time.sleep(0.1)

    def start(self, record: Doc) -> None:
        """Started in a session of its own, its output appended to the log file."""
        folder = os.path.expanduser(self.spec.get("cwd") or "~")
        try:
            for path in (self.pid_file, self.log_file):
                os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
            log = os.open(self.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            with os.fdopen(log, "wb", buffering=0) as output:
                output.write(b"%s%.3f\n" % (_STARTED, time.time()))
                subprocess.Popen(
                    ["sh", "-c", _WRITE_PID_THEN_BECOME, "sh", self.pid_file, *self.spec["start"]],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    start_new_session=True, env=self._environment(), cwd=folder,
                )  # fmt: skip
        except OSError as trouble:
            raise commands.Failed(f"{self.spec['start'][0]} can't be started: {trouble}") from None
        deadline = time.monotonic() + 10
        while self._pid() is None and time.monotonic() < deadline:
            time.sleep(0.05)

    def log(self, since: float, limit: int) -> str:
        try:
            with open(self.log_file, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - limit))
                return _since(file.read(), since).decode("utf-8", "replace")
        except OSError:
            return ""


def _since(log: bytes, since: float) -> bytes:
    """From the first start at or after that time; all of it when none of our starts is that late."""
    for start in re.finditer(re.escape(_STARTED) + rb"([0-9.]+)\n", log):
        if float(start[1]) >= since:
            return log[start.end() :]
    return log


def _signal(pid: int, what: signal.Signals) -> None:
    """To the whole group when the process leads one, else to it alone."""
    try:
        if processes.process_group(pid) == pid:
            os.killpg(pid, what)
        else:
            os.kill(pid, what)
    except ProcessLookupError:
        pass
    except PermissionError:
        raise commands.Failed(f"process {pid} belongs to another user") from None


def _runs(pid: int, start: Sequence[str]) -> bool:
    """Whether its command line is the start command, by itself or behind an interpreter."""
    words = processes.arguments(pid)[-len(start) :]
    return [*map(os.path.basename, words[:1]), *words[1:]] == [os.path.basename(start[0]), *start[1:]]


def _found(program: str, folder: str, environment: dict[str, str]) -> bool:
    if "/" in program:
        return os.access(os.path.join(folder, program), os.X_OK)
    return any(os.access(os.path.join(part, program), os.X_OK) for part in os.get_exec_path(environment))


def _writable(path: str) -> bool:
    """Whether the file, or else the nearest folder above it that is there, can be written."""
    if os.path.exists(path) and not os.path.isdir(path):
        return os.access(path, os.W_OK)
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)
