"""Processes of the node, from /proc: who they are, which belong to the lab, and how they are ended."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from typing import Iterable, Iterator

from .answers import Doc
from .masking import masked
from .memory import read_text
from .reserve import log_trouble

MARKER = "LAB_RUN_ID"
RUN_FOLDER = "LAB_RUN_DIR"


def all_pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _stat(pid: int) -> list[str]:
    """Fields of /proc/<pid>/stat from the third on (the second may hold anything); empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode("ascii", "replace").split()
    except OSError:
        return []


def start_ticks(pid: int) -> int | None:
    """Start time in clock ticks since boot; None for a process that is gone or a zombie."""
    fields = _stat(pid)
    return int(fields[19]) if len(fields) > 19 and fields[0] not in ("Z", "X") else None


def parent(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if len(fields) > 1 else None


def process_group(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[2]) if len(fields) > 2 and fields[0] not in ("Z", "X") else None


def started_at(pid: int) -> float | None:
    """Start time in seconds since the epoch."""
    ticks = start_ticks(pid)
    if ticks is None:
        return None
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")


def arguments(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [part.decode("utf-8", "replace") for part in file.read().rstrip(b"\0").split(b"\0")]
    except OSError:
        return []


def identity(pid: int) -> Doc | None:
    """pid, start ticks and masked command line; None when it is gone."""
    ticks = start_ticks(pid)
    if ticks is None:
        return None
    return {"pid": pid, "start_ticks": ticks, "command": " ".join(masked(arguments(pid)))[:500]}


def identities(pids: Iterable[int]) -> list[Doc]:
    return [found for found in map(identity, sorted(set(pids))) if found is not None]


def alive(who: Doc) -> bool:
    return bool(start_ticks(int(who["pid"])) == who["start_ticks"])


def resident_bytes(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return None


def descendants(root: int) -> set[int]:
    """The process and everything below it."""
    children: dict[int, list[int]] = {}
    for pid in all_pids():
        above = parent(pid)
        if above is not None:
            children.setdefault(above, []).append(pid)
    found, queue = set(), [root]
    while queue:
        pid = queue.pop()
        if pid not in found and start_ticks(pid) is not None:
            found.add(pid)
            queue.extend(children.get(pid, []))
    return found


def matching(pattern: str) -> list[Doc]:
    """Processes whose command line matches, other than this one and its parents."""
    expression, own = re.compile(pattern), ancestors(os.getpid())
    found = []
    for pid in all_pids():
        if pid not in own and expression.search(" ".join(arguments(pid))):
            who = identity(pid)
            if who is not None:
                found.append(who)
    return found


def ancestors(pid: int) -> set[int]:
    found: set[int] = set()
    above: int | None = pid
    while above and above not in found:
        found.add(above)
        above = parent(above)
    return found


def biggest(count: int) -> list[tuple[int, int, str]]:
    """(resident bytes, pid, command) of the largest processes."""
    sized = [(resident_bytes(pid) or 0, pid) for pid in all_pids()]
    return [
        (size, pid, " ".join(masked(arguments(pid)))[:80])
        for size, pid in sorted(sized, reverse=True)[:count]
    ]


def marked(experiment_folder: str) -> dict[int, str]:
    """Run id by pid, for every process that carries the marker of this experiment in its environment.

    Where several nodes are one computer, those of another node's run folder are that node's.
    """
    wanted = f"{MARKER}={os.path.basename(experiment_folder)}/".encode()
    found: dict[int, str] = {}
    for pid in all_pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read()
        except OSError:
            continue
        if wanted not in environment:
            continue
        entries = environment.split(b"\0")
        if not _elsewhere(entries, experiment_folder):
            for entry in entries:
                if entry.startswith(wanted) and start_ticks(pid) is not None:
                    found[pid] = entry[len(MARKER) + 1 :].decode("utf-8", "replace")
    return found


def _elsewhere(environment: list[bytes], experiment_folder: str) -> bool:
    """Whether the run folder that a process names is not in this experiment's folder."""
    mark = f"{RUN_FOLDER}=".encode()
    named = [entry[len(mark) :].decode("utf-8", "replace") for entry in environment if entry.startswith(mark)]
    here = os.path.realpath(experiment_folder)
    return any(os.path.dirname(os.path.realpath(folder)) != here for folder in named)


def run_pid_files(experiment_folder: str) -> dict[str, dict[str, int]]:
    """By run id, the numbers of each run folder's `pid` file whose process is still the one that wrote it."""
    experiment = os.path.basename(experiment_folder)
    try:
        runs = sorted(os.listdir(experiment_folder))
    except OSError:
        return {}
    found: dict[str, dict[str, int]] = {}
    for run in runs:
        numbers = parse_pid_file(read_text(os.path.join(experiment_folder, run, "pid")))
        pid, ticks = numbers.get("pid"), numbers.get("start_ticks")
        if pid is not None and ticks is not None and start_ticks(pid) == ticks:
            found[f"{experiment}/{run}"] = numbers
    return found


def parse_pid_file(text: str) -> dict[str, int]:
    """`name=value` lines; values that are no whole number are left out."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: int(value) for name, equals, value in pairs if equals and value.isdigit()}


def from_pid_files(files: dict[str, dict[str, int]]) -> dict[int, str]:
    """Run id by pid, for the processes that the pid files name, and the process groups they lead."""
    found: dict[int, str] = {}
    groups: dict[int, str] = {}
    for run, numbers in files.items():
        pid = numbers["pid"]
        found[pid] = run
        if process_group(pid) == pid:
            groups[pid] = run
    if groups:
        for pid in all_pids():
            group = process_group(pid)
            if group in groups:
                found[pid] = groups[group]
    return found


def keepers(files: dict[str, dict[str, int]]) -> set[int]:
    """Supervisors and heartbeats: small, and the ones that write down how their job ended."""
    pids = {numbers["pid"] for numbers in files.values() if "helper_pid" in numbers}
    return pids | {numbers["helper_pid"] for numbers in files.values() if "helper_pid" in numbers}


def lab_processes(experiment_folder: str) -> dict[int, str]:
    """Run id by pid of everything the lab runs here; never this program's own processes."""
    found = from_pid_files(run_pid_files(experiment_folder))
    found.update(marked(experiment_folder))
    for pid in ancestors(os.getpid()):
        found.pop(pid, None)
    return found


def lab_work(experiment_folder: str) -> dict[int, str]:
    """`lab_processes` without those that only keep a job's books; they end with it and note its exit."""
    found = lab_processes(experiment_folder)
    spared = keepers(run_pid_files(experiment_folder))
    return {pid: run for pid, run in found.items() if pid not in spared}


def send(pids: Iterable[int], what: signal.Signals) -> list[int]:
    reached = []
    for pid in pids:
        try:
            os.kill(pid, what)
        except (ProcessLookupError, PermissionError):
            continue
        reached.append(pid)
    return reached


def end_lab_processes(experiment_folder: str, grace_seconds: float) -> dict[int, str]:
    """SIGTERM, then SIGKILL after the grace, until none is left; what was ended, run id by pid."""
    ended: dict[int, str] = {}
    deadline = time.monotonic() + grace_seconds
    told: set[int] = set()
    while True:
        left = lab_processes(experiment_folder)
        if not left:
            return ended
        ended.update(left)
        over = time.monotonic() >= deadline
        if over:
            send(left, signal.SIGKILL)
            if time.monotonic() >= deadline + 30:
                return ended
        else:
            told.update(send(set(lab_work(experiment_folder)) - told, signal.SIGTERM))
        time.sleep(0.05)


def note_end(experiment_folder: str, runs: Iterable[str], reason: str, event: Doc) -> None:
    """Leave `ended-by-guard.json` in each run folder, so that a vanished job is not a riddle.

    On a full disk it is left out: the account tells the same, and what comes next must not wait for it.
    """
    for run in runs:
        folder = os.path.join(experiment_folder, os.path.basename(run))
        if not os.path.isdir(folder):
            continue
        try:
            with open(os.path.join(folder, "ended-by-guard.json"), "w", encoding="utf-8") as file:
                json.dump({"reason": reason, **event}, file)
        except OSError:
            log_trouble()
