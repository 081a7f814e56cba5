"""The guard's folder, `<root>/<experiment>/guard/`: state, lease, account and locks.

state.json     what is so now; replaced whole, changed only under state.lock
lease.json     the console's sign of life; replaced whole, changed only under state.lock
service.json   the service as it was before the stop, and how to put it back
account.jsonl  what happened, append-only
samples.jsonl  readings, append-only, with one older part samples.jsonl.1
reserve/       room that is given up when the disk is full
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Callable, Iterator

from .answers import Doc, Refused
from .reserve import Reserve


@lru_cache(maxsize=1)
def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def boottime() -> float:
    """Seconds since boot, sleep included; no step of the wall clock moves it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def write_whole(path: str, document: Any) -> None:
    """Replace the file in one step; readable by its owner alone."""
    temporary = f"{path}.{os.getpid()}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def read_document(path: str) -> Doc:
    """The JSON object in the file; empty when there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


class Kept:
    """A document that is read again only when its file was replaced; for a reader that looks for hours."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._document: Doc = {}

    def read(self) -> Doc:
        try:
            found = os.stat(self._path)
        except OSError:
            return {}
        # Each replacement is a new file: its number changes even within one tick of the clock.
        mark = (found.st_ino, found.st_mtime_ns)
        if mark != self._seen:
            self._document, self._seen = read_document(self._path), mark
        return self._document


class Lock:
    """An advisory lock that ends with its process."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle: int | None = None

    def take(self, wait_seconds: float = 0.0) -> bool:
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    self.release()
                    return False
                time.sleep(0.05)

    def release(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def note(self, text: str) -> None:
        """Write who holds it into the lock file, for the one who is refused."""
        assert self._handle is not None
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, text.encode(), 0)


class Folder:
    """The guard's folder of one experiment."""

    def __init__(self, root: str, experiment: str) -> None:
        self.root = os.path.abspath(os.path.expanduser(root))
        self.experiment = experiment
        self.experiment_folder = os.path.join(self.root, experiment)
        self.path = os.path.join(self.experiment_folder, "guard")
        self.reserve = Reserve(os.path.join(self.path, "reserve"))

    def create(self) -> None:
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
        except OSError as trouble:
            raise Refused(
                f"can't create {self.path}",
                why=str(trouble),
                next_step="free disk space or fix the permissions",
            ) from None

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def write(self, name: str, document: Any) -> None:
        """Replace a file of the folder in one step."""
        self.reserve.use(lambda: write_whole(self.file(name), document))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self.file("state.lock"), "w", encoding="ascii") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def state(self) -> Doc:
        return read_document(self.file("state.json"))

    def change(self, what: Callable[[Doc], Any]) -> Doc:
        """Read, change and replace the state as one step; what it is now."""
        with self._locked():
            state = self.state()
            what(state)
            self.write("state.json", state)
            return state

    def set(self, **values: Any) -> Doc:
        return self.change(lambda state: state.update(values))

    def lease(self) -> Doc:
        return read_document(self.file("lease.json"))

    @contextmanager
    def lease_change(self) -> Iterator[Doc]:
        """The lease, to be changed in place; written back at the end unless an exception leaves the block."""
        with self._locked():
            lease = self.lease()
            yield lease
            self.write("lease.json", lease)

    def account(self, what: str, detail: str = "", **data: Any) -> None:
        """Append one line; on disk when this returns. Lines are numbered from 1."""
        self.reserve.use(lambda: self._append(what, detail, data))

    def _append(self, what: str, detail: str, data: Doc) -> None:
        path = self.file("account.jsonl")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            number = last_number(file.fileno()) + 1
            document = {"n": number, "at": time.time(), "what": what, "detail": detail, "data": data}
            line = json.dumps(document).encode() + b"\n"
            if file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            os.fsync(file.fileno())

    def account_since(self, number: int) -> list[Doc]:
        return [line for line in _lines(self.file("account.jsonl")) if line.get("n", 0) > number]


def _lines(path: str) -> list[Doc]:
    try:
        with open(path, "rb") as file:
            return parse_lines(file.read().split(b"\n"))
    except OSError:
        return []


def parse_lines(lines: list[bytes]) -> list[Doc]:
    """The JSON objects of JSON lines; a torn line is left out."""
    found: list[Doc] = []
    for line in lines:
        try:
            document = json.loads(line)
        except ValueError:
            continue
        if isinstance(document, dict):
            found.append(document)
    return found


def last_number(handle: int) -> int:
    """The number of the last whole line of an open file; a torn line is closed with a newline first."""
    size = os.fstat(handle).st_size
    if size == 0:
        return 0
    tail = os.pread(handle, 65536, max(0, size - 65536))
    if not tail.endswith(b"\n"):
        os.write(handle, b"\n")
    for line in reversed(tail.splitlines()):
        try:
            return int(json.loads(line)["n"])
        except (ValueError, KeyError, TypeError):
            continue
    return 0
