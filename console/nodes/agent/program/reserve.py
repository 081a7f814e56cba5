"""Room set aside on the disk: when it is full, the guard still has room to note what it does."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from typing import Callable, TypeVar

FULL = (errno.ENOSPC, errno.EDQUOT)
# In parts, because a job that fills the disk may be quicker than the guard in taking what was given up.
_PARTS, _PART_BYTES = 16, 64 * 1024

Result = TypeVar("Result")


class Reserve:
    """Files of no use but their size. They are made by the guard and given up by whoever needs the room."""

    def __init__(self, path: str) -> None:
        self._path = path

    def fill(self) -> bool:
        """Make the parts that are missing; whether all of them are there."""
        try:
            os.makedirs(self._path, mode=0o700, exist_ok=True)
            for number in range(_PARTS):
                self._make(os.path.join(self._path, str(number)))
        except OSError:
            return False
        return True

    def _make(self, part: str) -> None:
        if os.path.exists(part):
            return
        temporary = part + ".new"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(handle, 0, _PART_BYTES)
            os.rename(temporary, part)
        except OSError:
            os.unlink(temporary)
            raise
        finally:
            os.close(handle)

    def use(self, write: Callable[[], Result]) -> Result:
        """The result of `write`, repeated with one part less each time the disk is full."""
        while True:
            try:
                return write()
            except OSError as trouble:
                if trouble.errno not in FULL or not self._give():
                    raise

    def _give(self) -> bool:
        for number in range(_PARTS):
            try:
                os.unlink(os.path.join(self._path, str(number)))
            except OSError:
                continue
            return True
        return False

    def remove(self) -> None:
        while self._give():
            pass


def log_trouble() -> None:
    """The exception being handled, into the process's log; a log that can't be written stops nothing."""
    with contextlib.suppress(OSError):
        traceback.print_exc(file=sys.stderr)
