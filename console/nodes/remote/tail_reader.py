"""Follow one file and print it as frames; runs on a node under any python3 from 3.8.

A frame is kind (1 byte), offset (8), length (4), payload. Kinds: O opened, D data, R rotated, T truncated or
replaced, W no such file yet, H still here, E error; payloads but D are JSON. It ends with its stdin, and
when its stdin has been silent for long: a console that is there says so every few seconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import signal
import struct
import sys
import time
from pathlib import Path

BLOCK_BYTES = 65536
POLL_SECONDS = 0.04
GATHER_SECONDS = 0.02
"""At least so long from one reading to the next, so that a busy log comes in few frames."""
BEAT_SECONDS = 3.0
SILENCE_SECONDS = 45.0
ROTATION_QUIET_SECONDS = 0.5
IN_MODIFY = 2
WITNESS_BYTES = 64
"""Bytes before the offset that are compared at every read: a file rewritten in place is noticed."""


class Reader:
    def __init__(self, path: str, resume: dict) -> None:  # type: ignore[type-arg]
        self.path = Path(path).expanduser()
        self.resume = resume
        self.file = -1
        self.notices = -1
        self.offset = 0
        self.witness = b""
        self.heard = self.spoke = self.sent = time.monotonic()
        self.waiting = False
        self.rotated_since: float | None = None

    def run(self) -> None:
        while True:
            if self.file < 0 and not self.open_first():
                self.rest()
                continue
            if not self.read_block() and not self.follow_rotation():
                self.rest()

    def open_first(self) -> bool:
        """Open the file and decide where to go on; False while it does not exist."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            if not self.waiting:
                self.waiting = True
                self.say(b"W", {})
            return False
        except OSError as error:
            self.say(b"E", {"error": f"{self.path}: {error.strerror}"})
            sys.exit(1)
        status = os.fstat(descriptor)
        offset, inode = self.resume["offset"], self.resume["inode"]
        if offset == self.resume["base"]:
            window = self.resume["window"]
            start = max(0, status.st_size - window) if window and not offset else offset
            if start <= status.st_size:
                self.take(descriptor, start, b"O", {"lost": False, "why": ""})
                return True
        if inode in (0, status.st_ino):
            if self.same_before(descriptor, offset):
                self.take(descriptor, offset, b"O", {"lost": False, "why": ""})
            else:
                self.take(descriptor, 0, b"T", {"lost": True, "why": "it was rewritten while nobody read it"})
            return True
        old = self.find_renamed(inode)
        if old >= 0 and self.same_before(old, offset):
            os.close(descriptor)
            self.take(old, offset, b"O", {"lost": False, "why": ""})
            return True
        self.take(descriptor, 0, b"R", {"lost": True, "why": "it was rotated away while nobody read it"})
        return True

    def same_before(self, descriptor: int, offset: int) -> bool:
        """Whether what the console has of the file is still in it."""
        length = self.resume["hash_bytes"]
        if os.fstat(descriptor).st_size < offset:
            return False
        content = os.pread(descriptor, length, offset - length)
        return bool(hashlib.sha256(content).hexdigest() == self.resume["hash"])

    def find_renamed(self, inode: int) -> int:
        with contextlib.suppress(OSError), os.scandir(self.path.parent) as entries:
            for entry in entries:
                if entry.inode() == inode and entry.is_file(follow_symlinks=False):
                    return os.open(entry.path, os.O_RDONLY)
        return -1

    def take(self, descriptor: int, offset: int, kind: bytes, facts: dict) -> None:  # type: ignore[type-arg]
        """Follow this open file from this offset, and say so."""
        if self.file != descriptor:
            for old in (self.file, self.notices):
                if old >= 0:
                    os.close(old)
            self.notices = notices_of(descriptor)
        self.file, self.offset = descriptor, offset
        length = min(offset, WITNESS_BYTES)
        self.witness = os.pread(descriptor, length, offset - length)
        status = os.fstat(descriptor)
        self.waiting = False
        self.rotated_since = None
        self.say(kind, {**facts, "inode": status.st_ino, "size": status.st_size})

    def read_block(self) -> bool:
        """Send the next block; False when there is nothing new."""
        size = os.fstat(self.file).st_size
        if size < self.offset:
            self.take(self.file, 0, b"T", {"lost": True, "why": "it was truncated"})
            return True
        if size == self.offset:
            return False
        known = len(self.witness)
        block = os.pread(self.file, known + BLOCK_BYTES, self.offset - known)
        if block[:known] != self.witness:
            self.take(self.file, 0, b"T", {"lost": True, "why": "it was rewritten in place"})
            return True
        if len(block) == known:
            return False
        self.send(b"D", self.offset, block[known:])
        self.sent = self.spoke
        self.offset += len(block) - known
        self.witness = block[-WITNESS_BYTES:]
        self.listen(0)
        return True

    def follow_rotation(self) -> bool:
        """At the end of a file that has lost its name: go over to the file that has it now."""
        try:
            status = self.path.stat()
        except OSError:
            return False
        here = os.fstat(self.file)
        if (status.st_ino, status.st_dev) == (here.st_ino, here.st_dev):
            self.rotated_since = None
            return False
        now = time.monotonic()
        if self.rotated_since is None:
            self.rotated_since = now
        if now - self.rotated_since < ROTATION_QUIET_SECONDS:
            return False
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except OSError:
            return False
        self.take(descriptor, 0, b"R", {"lost": False, "why": "it was rotated"})
        return True

    def rest(self) -> None:
        if time.monotonic() - self.spoke > BEAT_SECONDS:
            self.say(b"H", {})
        early = self.sent + GATHER_SECONDS - time.monotonic()
        if early > 0:
            self.listen(early)
        self.listen(POLL_SECONDS, self.notices)

    def listen(self, seconds: float, notices: int = -1) -> None:
        """Wait for the console, and for a notice of change if such are given."""
        ready = select.select([0] if notices < 0 else [0, notices], [], [], seconds)[0]
        if notices in ready:
            os.read(notices, 4096)
        if 0 in ready:
            if not os.read(0, 4096):
                sys.exit(0)
            self.heard = time.monotonic()
        elif time.monotonic() - self.heard > SILENCE_SECONDS:
            sys.exit(0)

    def say(self, kind: bytes, facts: dict) -> None:  # type: ignore[type-arg]
        self.send(kind, self.offset, json.dumps(facts).encode())

    def send(self, kind: bytes, offset: int, payload: bytes) -> None:
        self.spoke = time.monotonic()
        data = memoryview(struct.pack(">cQI", kind, offset, len(payload)) + payload)
        while data:
            data = data[os.write(1, data) :]


def notices_of(descriptor: int) -> int:
    """Descriptor that gets ready when the open file changes; -1 where the system gives none.

    Polling goes on beside it: a network file system is silent about what other machines write.
    """
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        libc = ctypes.CDLL(None)
        notices = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if notices >= 0:
            libc.inotify_add_watch(notices, b"/proc/self/fd/%d" % descriptor, IN_MODIFY)
        return notices
    return -1


def end_former_reader(mark: str) -> None:
    """End a reader of the same log for the same console that a broken connection left behind."""
    wanted = mark.encode()
    for process in Path("/proc").glob("[0-9]*"):
        pid = int(process.name)
        with contextlib.suppress(OSError):
            if pid != os.getpid() and wanted in (process / "environ").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)


def main() -> None:
    path, mark, resume = sys.argv[1:4]
    end_former_reader(mark)
    with contextlib.suppress(BrokenPipeError):
        Reader(path, json.loads(resume)).run()
    os._exit(0)


main()
