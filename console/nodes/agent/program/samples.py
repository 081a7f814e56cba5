"""The guard's samples: an append-only file of bounded size, numbered without gaps."""

from __future__ import annotations

import errno
import json
import os
import time

from . import memory
from .answers import Doc
from .folder import last_number, parse_lines

_FIRST_PART = 64 * 1024


class SampleFile:
    """Appends samples; when half of the limit is full, the part becomes `.1` and a new one begins."""

    def __init__(self, path: str, limit_bytes: int) -> None:
        self._path, self._part_limit = path, limit_bytes // 2
        self._open()
        try:
            self.number = last_number(self._handle) or _last_in(path + ".1")
        except OSError:
            os.close(self._handle)
            raise

    def _open(self) -> None:
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._handle).st_size

    def append(self, sample: Doc) -> None:
        line = json.dumps(dict(sample, n=self.number + 1)).encode() + b"\n"
        if self._size + len(line) > self._part_limit:
            os.close(self._handle)
            os.replace(self._path, self._path + ".1")
            self._open()
        if os.write(self._handle, line) < len(line):
            os.ftruncate(self._handle, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        self._size += len(line)
        self.number += 1


def _last_in(path: str) -> int:
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return last_number(handle)
    finally:
        os.close(handle)


def since(path: str, number: int, limit: int) -> list[Doc]:
    """Samples after that number, oldest first, at most `limit`. Reads only the end of the file."""
    found, whole = _tail(path, number)
    if whole and (not found or found[0]["n"] > number + 1):
        found = _tail(path + ".1", number)[0] + found
    return [sample for sample in found if sample["n"] > number][:limit]


def _tail(path: str, number: int) -> tuple[list[Doc], bool]:
    """Samples at the end of the file, back to that number or the file's beginning (True)."""
    part = _FIRST_PART
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            while True:
                begin = max(0, size - part)
                file.seek(begin)
                lines = file.read(size - begin).split(b"\n")
                found = parse_lines(lines if begin == 0 else lines[1:])
                if begin == 0 or (found and found[0]["n"] <= number):
                    return found, begin == 0
                part *= 8
    except OSError:
        return [], True


class Jobs:
    """The lab's processes as they were last listed: resident bytes by pid, and the pids of each run."""

    def __init__(self, sizes: dict[int, int], runs: dict[int, str]) -> None:
        self.sizes = sizes
        self.of_run: dict[str, list[int]] = {}
        for pid, run in runs.items():
            if pid in sizes:
                self.of_run.setdefault(run.partition("/")[2], []).append(pid)


def take(gpu_values: Doc, gpu_processes: dict[int, int | None], jobs: Jobs) -> Doc:
    """One sample, without its number."""
    return {
        "at": time.time(),
        "memory": memory.reading(),
        **gpu_values,
        "gpu_processes": gpu_processes,
        "jobs": jobs.sizes,
        "jobs_of_run": jobs.of_run,
        "compact_stall": memory.parse_compact_stall(memory.read_text("/proc/vmstat")),
    }
