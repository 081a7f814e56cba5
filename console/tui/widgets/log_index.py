"""Where the lines of a growing file begin: an index instead of the text, so that any size opens at once."""

import os
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from console.core.text import clean

Span = tuple[int, int]
"""First byte of a line, and its end (exclusive, newline included)."""

BLOCK_BYTES = 256 * 1024
ADVANCE_BYTES = 8 << 20
LINES_KEPT = 1_000_000
HOLE_BYTES = 512
"""So many zero bytes in a row are text that was never fetched, not text."""
LINE_SHOWN_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Advance:
    """What a look at the file brought. `reset`: it is another file than before, all indices are void."""

    grown: bool = False
    dropped: int = 0
    reset: bool = False


class LogIndex:
    """Line starts of one mirror, the newest `lines_kept` of them.

    A file longer than a block is entered near its end; `older` goes back block by block. Indices count from
    the oldest line that is known now, so `older` shifts them up and dropping shifts them down.
    """

    def __init__(self, path: Path, *, block: int = BLOCK_BYTES, lines_kept: int = LINES_KEPT) -> None:
        self.path = path
        self._block = block
        self._kept = lines_kept
        self._fd: int | None = None
        self._inode: tuple[int, int] | None = None
        self._starts = array("Q")
        self._end = 0
        self._before = 0
        self._whole = True
        self.hole = False
        """Text before the first line is not in the file: it was never fetched."""

    def __len__(self) -> int:
        if not self._starts:
            return 0
        return len(self._starts) - (self._starts[-1] >= self._end)

    @property
    def end(self) -> int:
        """Offset after the last byte that was looked at."""
        return self._end

    @property
    def base(self) -> int:
        """Offset of the oldest line that is known."""
        return self._starts[0] if self._starts else 0

    @property
    def whole_end(self) -> int:
        """End of the last whole line that was looked at."""
        return self._starts[-1] if self._starts else 0

    def number(self, line: int) -> int | None:
        """The line's number in the file, 1-based; None while text before it was not looked at."""
        return self._before + line + 1 if self._whole else None

    def span(self, line: int) -> Span:
        """Where a line is."""
        after = line + 1
        return self._starts[line], self._starts[after] if after < len(self._starts) else self._end

    def line_at(self, byte: int) -> int | None:
        """The line that holds this byte, or None when it is not indexed."""
        if not self._starts or not self._starts[0] <= byte < self._end:
            return None
        return bisect_right(self._starts, byte) - 1

    @property
    def size(self) -> int:
        """How many bytes the file has now."""
        return 0 if self._fd is None else os.fstat(self._fd).st_size

    def advance(self, budget: int = ADVANCE_BYTES, *, hold: bool = False) -> Advance:
        """Look at what was appended, at most `budget` bytes of it; with `hold` stop before dropping lines."""
        reset = self._reopen()
        if self._fd is None:
            return Advance(reset=reset)
        size = os.fstat(self._fd).st_size
        if size < self._end:
            self._forget()
            reset = True
        if not self._starts:
            if size == 0:
                return Advance(reset=reset)
            self._enter(size)
        if hold and len(self._starts) >= self._kept:
            return Advance(reset=reset)
        data = os.pread(self._fd, min(size - self._end, budget), self._end)
        if not data:
            return Advance(reset=reset)
        self._starts.frombytes(_starts_in(data, self._end).tobytes())
        self._end += len(data)
        return Advance(grown=True, dropped=0 if hold else self._drop(), reset=reset)

    def enter(self, byte: int) -> None:
        """Begin anew about a block before this byte; `advance` goes on from there."""
        self._forget()
        self._enter(min(byte, self.size))

    def older(self) -> int:
        """Go back by one block; the number of lines that were put before the others."""
        if self._fd is None or not self._starts or self.base == 0 or self.hole:
            return 0
        size = self._block
        while True:
            first = max(0, self.base - size)
            data = os.pread(self._fd, self.base - first, first)
            if not data.strip(b"\0"):
                self.hole = True
                return 0
            found = _starts_in(data[:-1], first)
            blank = len(data) - len(data.lstrip(b"\0"))
            if blank >= HOLE_BYTES:
                self.hole = True
                found = np.concatenate((np.array([first + blank], dtype=np.uint64), found))
            elif first == 0:
                found = np.concatenate((np.zeros(1, dtype=np.uint64), found))
            if len(found):
                break
            size *= 2
        older = array("Q")
        older.frombytes(found.tobytes())
        self._starts = older + self._starts
        if first == 0 and not self.hole:
            self._whole, self._before = True, 0
        return len(older)

    def read(self, line: int, limit: int = LINE_SHOWN_BYTES) -> bytes:
        """The line's bytes without its newline; of a longer one the last `limit` bytes when it holds
        carriage returns there (only its last state is visible), otherwise the first."""
        return self.read_span(self.span(line), limit)

    def read_span(self, span: Span, limit: int = LINE_SHOWN_BYTES) -> bytes:
        """As `read`, for a line that need not be indexed."""
        start, end = span
        if end - start <= limit:
            return self.bytes_at(start, end - start).rstrip(b"\n")
        tail = self.bytes_at(end - limit, limit).rstrip(b"\n")
        return tail if b"\r" in tail else self.bytes_at(start, limit)

    def text(self, line: int) -> str:
        """The line as it is shown: of bars drawn over each other the last, sanitised, without tabs."""
        return self.text_of(self.span(line))

    def text_of(self, span: Span) -> str:
        """As `text`, for a line that need not be indexed."""
        raw, size = self.read_span(span), span[1] - span[0]
        if size > LINE_SHOWN_BYTES and b"\r" not in raw:
            return f"{shown(raw)} … (line of {size} bytes, cut)"
        return shown(raw)

    def bytes_at(self, start: int, length: int) -> bytes:
        """Bytes of the file; fewer at its end."""
        return b"" if self._fd is None else os.pread(self._fd, length, start)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _reopen(self) -> bool:
        try:
            status = self.path.stat()
        except OSError:
            return False
        inode = (status.st_dev, status.st_ino)
        if inode == self._inode:
            return False
        known = self._inode is not None
        self.close()
        self._fd = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self._inode = inode
        self._forget()
        return known

    def _forget(self) -> None:
        self._starts = array("Q")
        self._end = self._before = 0
        self._whole = True
        self.hole = False

    def _enter(self, byte: int) -> None:
        if byte <= self._block:
            self._starts.append(0)
            return
        self._whole = False
        at = byte - self._block
        found = _starts_in(self.bytes_at(at, self._block), at)
        first = int(found[0]) if len(found) else at
        self._starts.append(first)
        self._end = first

    def _drop(self) -> int:
        over = len(self._starts) - self._kept
        if over <= 0:
            return 0
        gone = over + self._kept // 10
        del self._starts[:gone]
        self._before += gone
        return gone


def _starts_in(data: bytes, offset: int) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """Offsets after every newline of `data`, which begins at `offset`."""
    places = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 0x0A)
    return (places + offset + 1).astype(np.uint64)


def shown(raw: bytes) -> str:
    """One line as it is shown."""
    if b"\r" in raw:
        raw = next((piece for piece in reversed(raw.split(b"\r")) if piece.strip()), b"")
    return clean(raw).replace("\n", " ").replace("\t", "    ")
