"""A systemd unit, of the system or of the user. systemd never restarts a unit that was stopped on request."""

from __future__ import annotations

import time

from . import commands, engine, processes
from .answers import Doc
from .kinds import Kind, View
from .memory import read_text

_PROPERTIES = (
    "LoadState,ActiveState,SubState,MainPID,NRestarts,Restart,ExecMainStatus,Result,FragmentPath,UnitFileState,"
    "ControlGroup,InvocationID,ExecStart,User,WorkingDirectory"
)


class SystemdKind(Kind):
    peek_seconds = 4.0

    @property
    def unit(self) -> str:
        name = str(self.spec["unit"])
        return name if "." in name else f"{name}.service"

    @property
    def systemctl(self) -> list[str]:
        return [*self.spec["systemctl"], *(["--user"] if self.spec["user"] else [])]

    def look(self) -> View:
        text = commands.output([*self.systemctl, "show", self.unit, "-p", _PROPERTIES], timeout=20)
        shown = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        if shown.get("LoadState") == "not-found":
            return View(exists=False, status="not found")
        restarts = shown.get("NRestarts", "")
        status = shown.get("ExecMainStatus", "")
        return View(
            exists=True,
            running=shown.get("ActiveState") == "active" and shown.get("SubState") not in ("exited", "dead"),
            status=f"{shown.get('ActiveState', '?')} ({shown.get('SubState', '?')})",
            exit_code=int(status) if status.isdigit() else None,
            restart_count=int(restarts) if restarts.isdigit() else None,
            marks=(shown.get("InvocationID", ""), shown.get("MainPID", "")),
            looping=shown.get("SubState") == "auto-restart",
            detail=dict(shown),
        )

    def pids(self, view: View) -> list[int]:
        found = set()
        main = view.detail.get("MainPID", "0")
        if main.isdigit() and int(main):
            found |= processes.descendants(int(main))
        group = view.detail.get("ControlGroup", "")
        if group:
            for base in ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd"):
                found |= {
                    int(word) for word in read_text(f"{base}{group}/cgroup.procs").split() if word.isdigit()
                }
        if self.spec.get("container"):
            container = engine.inspect(["docker"], str(self.spec["container"]))
            if container is not None:
                found |= set(engine.container_pids(["docker"], container))
        return sorted(found)

    def describe(self, view: View) -> Doc:
        return {
            "owner": {
                "kind": "systemd",
                "name": self.unit,
                "evidence": f"unit file {view.detail.get('FragmentPath') or 'unknown'}",
            },
            "restart_policy": view.detail.get("Restart") or None,
            "restart_count": view.restart_count,
            "inspect": view.detail,
            "warnings": [],
        }

    def command_lines(self, described: Doc) -> dict[str, list[list[str]]]:
        return {
            "stop": [[*self.systemctl, "stop", self.unit]],
            "start": [[*self.systemctl, "start", "--no-block", self.unit]],
        }

    def stop(self, record: Doc) -> None:
        # A unit around `docker run` ends up `failed` when the container exits 137; a look decides.
        for line in record["commands"]["stop"]:
            commands.attempt(line, timeout=self.spec["stop_seconds"] + 120)

    def start(self, record: Doc) -> None:
        super().start(record)
        # --no-block only queues the job: until systemd takes it up, the unit is as inactive as before.
        deadline = time.monotonic() + 10
        while self.look().status.startswith("inactive") and time.monotonic() < deadline:
            time.sleep(0.1)

    def log(self, since: float, limit: int) -> str:
        line = [
            "journalctl",
            *(["--user"] if self.spec["user"] else []),
            "-u",
            self.unit,
            "-o",
            "cat",
            "--no-pager",
        ]
        return commands.output([*line, "-n", "4000", "--since", f"@{int(since)}"], timeout=30, merged=True)[
            -limit:
        ]
