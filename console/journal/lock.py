"""One console per experiment: a lock held by the operating system, labelled with who holds it."""

import fcntl
import json
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from console.core.errors import JournalError

LOCK = "console.lock"


class ExperimentLock:
    """Held from `__enter__` to `__exit__`, or to the end of the process, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._fd: int | None = None

    def __enter__(self) -> Self:
        """Take the lock. Raises `JournalError`: who holds it, by pid and host, or why it can't be taken."""
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(
                f"{self._path.parent} can't be worked on",
                why=error.strerror or str(error),
                next_step="copy the whole folder to where you may write",
            ) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 4096, 0)
            os.close(fd)
            raise JournalError(
                f"another console works on this experiment: {_describe(holder)}",
                next_step="use that one, end it, or look on with: lab watch " + str(self._path.parent),
            ) from None
        label = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
        os.ftruncate(fd, 0)
        os.pwrite(fd, label, 0)
        self._fd = fd
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _describe(holder: bytes) -> str:
    try:
        label = json.loads(holder)
        return f"pid {int(label['pid'])} on {label['host']}"
    except (ValueError, KeyError, TypeError):
        return "holder unknown"
