"""Processes of a test, known by its folder in their environment."""

import contextlib
from pathlib import Path

import psutil


def processes_with(text: str) -> set[psutil.Process]:
    """Living processes with `text` in `NAME=value` of their environment."""
    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if any(text in f"{name}={value}" for name, value in process.environ().items()):
                found.add(process)
    return found


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def end_processes_of(folder: Path) -> None:
    """End what a test left running: everything whose home folder is inside `folder`."""
    for _ in range(100):
        left = processes_with(f"HOME={folder}")
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        if not left:
            return
        psutil.wait_procs(left, timeout=0.05)
