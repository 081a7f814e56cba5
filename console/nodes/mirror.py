"""The laptop's byte-exact copy of a remote file: one sparse file a segment, and a note of what it is."""

import contextlib
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

_HASHED_BYTES = 65536
_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class Mark:
    """Which remote file the current segment is of, and from where the mirror holds it."""

    segment: int = 0
    inode: int = 0
    base: int = 0


@dataclass(frozen=True)
class MirrorProof:
    """sha256 of mirror and node's file, taken over the same length."""

    sha256: str
    node_sha256: str
    size_bytes: int

    @property
    def same(self) -> bool:
        return self.sha256 == self.node_sha256


class Mirror:
    """Offsets are those of the remote file. The size of the file is how far it goes: nothing else says so."""

    def __init__(self, first: Path) -> None:
        self._first = first
        self._note = first.with_name(first.name + ".tail.json")
        first.parent.mkdir(parents=True, exist_ok=True)
        self.mark = self._read_mark()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        self.end = max(os.fstat(self._descriptor).st_size, self.mark.base)

    @property
    def path(self) -> Path:
        """File of the current segment: the first keeps its name, later ones are numbered."""
        return self.path_of(self.mark.segment)

    def path_of(self, segment: int) -> Path:
        return self._first if segment == 0 else self._first.with_name(f"{self._first.name}.{segment}")

    @property
    def size(self) -> int:
        """Bytes of the file that is written to."""
        return os.fstat(self._descriptor).st_size

    @property
    def intact(self) -> bool:
        """The file at its path is the one that is written to, and nothing that was held is gone from it."""
        try:
            here = self.path.stat()
        except OSError:
            return False
        held = self.end if self.end > self.mark.base else 0
        return os.path.samestat(here, os.fstat(self._descriptor)) and here.st_size >= held

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def append(self, data: bytes) -> None:
        """Raises OSError; then nothing counts as held."""
        view = memoryview(data)
        done = 0
        while done < len(view):
            done += os.pwrite(self._descriptor, view[done:], self.end + done)
        self.end += len(data)

    def prepend(self, data: bytes) -> None:
        """Put bytes right before the base."""
        start = self.mark.base - len(data)
        view = memoryview(data)
        done = 0
        while done < len(view):
            done += os.pwrite(self._descriptor, view[done:], start + done)
        self.remember(Mark(self.mark.segment, self.mark.inode, start))

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, offset)

    def begin(self, inode: int, base: int) -> None:
        """The (still empty) segment is of this file and begins there."""
        self.remember(Mark(self.mark.segment, inode, base))
        self.end = max(self.end, base)

    def next_segment(self, inode: int) -> None:
        """Leave the present segment as it is; go on in a new file from offset 0."""
        mark = Mark(self.mark.segment + 1, inode, 0)
        descriptor = os.open(self.path_of(mark.segment), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self.close()
        self._descriptor, self.end = descriptor, 0
        self.remember(mark)

    def begin_again(self) -> None:
        """Hold nothing of the current segment any more. Raises OSError; then all is as it was."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self.close()
        self._descriptor, self.end = descriptor, 0
        self.remember(Mark(self.mark.segment, self.mark.inode, 0))

    def remember(self, mark: Mark) -> None:
        unfinished = self._note.with_name(self._note.name + ".tmp")
        unfinished.write_text(json.dumps(asdict(mark)), "ascii")
        unfinished.replace(self._note)
        self.mark = mark

    def last_hash(self) -> tuple[str, int]:
        """sha256 of the last bytes held, and how many they are."""
        length = min(_HASHED_BYTES, self.end - self.mark.base)
        return hashlib.sha256(self.read(self.end - length, length)).hexdigest(), length

    def sha256(self, length: int) -> str:
        """Of the first `length` bytes. Takes seconds for gigabytes: call it in a thread."""
        digest = hashlib.sha256()
        offset = 0
        while offset < length:
            block = self.read(offset, min(_BLOCK_BYTES, length - offset))
            if not block:
                break
            digest.update(block)
            offset += len(block)
        return digest.hexdigest()

    def _read_mark(self) -> Mark:
        with contextlib.suppress(OSError, ValueError, TypeError):
            return Mark(**json.loads(self._note.read_text("ascii")))
        return Mark()
