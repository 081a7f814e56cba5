"""Starting a lab as a user does, and looking at what it left."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.core.errors import JournalError
from console.core.record.events import Event, StepLogged
from console.journal import read_journal


@dataclass(frozen=True)
class Told:
    """What the lab left, and what was seen when the first console was killed."""

    folder: Path
    exit_code: int
    output: str
    shown_before: list[Event]
    alive_after_kill: list[int]

    @property
    def events(self) -> list[Event]:
        return read_journal(self.folder)

    @property
    def record(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.folder / "exports" / "record.json").read_text())
        return document


def lab(*words: str) -> list[str]:
    return [sys.executable, "-m", "console.cli.main", *words]


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.2)


def steps_of(folder: Path, run: str) -> list[StepLogged]:
    try:
        events = read_journal(folder)
    except JournalError:
        return []
    return [event for event in events if isinstance(event, StepLogged) and event.run == run]


def pids_of(folder: Path, run: str) -> list[int]:
    """Processes of a run that live, found by their mark."""
    mark = f"LAB_RUN_ID={folder.name}/{run}".encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                environ = (process / "environ").read_bytes()
            except OSError:
                continue
            if mark in environ.split(b"\0"):
                found.append(int(process.name))
    return found
