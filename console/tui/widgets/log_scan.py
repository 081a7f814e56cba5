"""The wanted lines of a log, found block by block, so that keys come through between the blocks."""

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from console.core.text import clean
from console.tui.widgets.expressions import Pattern, matching
from console.tui.widgets.log_index import LINES_KEPT, Span, shown

BLOCK_BYTES = 32 * 1024
"""Half a millisecond of work."""
BLOCKS_A_LOOK = 16
LONGEST_LINE_BYTES = 16 << 20
"""A longer line is tested in pieces."""

Read = Callable[[int, int], bytes]
"""Bytes of the log from an offset on, so many."""
Progress = Callable[[float], None]
"""Hears how much was looked at, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Lines that, as they are shown, hold `needle` in any case and match `pattern`."""

    needle: str = ""
    pattern: Pattern | None = None

    def among(self, text: str) -> list[int]:
        """Numbers of the wanted lines of a text. Raises `TooSlow`."""
        needle = self.needle.casefold()
        if needle not in text.casefold():
            return []
        lines = text.split("\n")
        numbers = list(range(len(lines)) if self.pattern is None else matching(self.pattern, lines))
        if needle:
            numbers = [number for number in numbers if needle in lines[number].casefold()]
        return numbers


def scan(read: Read, start: int, end: int, step: int, wanted: Wanted) -> Iterator[tuple[list[Span], int]]:
    """Of each block the wanted lines, in the order of looking, and how many bytes the block has.

    `start` and `end` are ends of lines; `step` 1 looks from the first to the last line, -1 from the last on.
    Raises `TooSlow`.
    """
    for at, data in _blocks(read, start, end, step):
        yield _wanted_in(at, data, wanted)[::step], len(data)


async def first_wanted(
    read: Read, parts: Sequence[Span], step: int, wanted: Wanted, progress: Progress
) -> Span | None:
    """The first wanted line in these parts of the log, looked through one after the other."""
    seen, whole = 0, sum(end - start for start, end in parts)
    for start, end in parts:
        for spans, length in scan(read, start, end, step, wanted):
            if spans:
                return spans[0]
            seen += length
            progress(seen / whole)
            await asyncio.sleep(0)
    return None


def _blocks(read: Read, start: int, end: int, step: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines with their offset. Ends early when the log became shorter."""
    size = BLOCK_BYTES
    while start < end:
        length = min(size, end - start)
        at = start if step > 0 else end - length
        data = read(at, length)
        if len(data) < length:
            return
        if length < end - start:
            cut = data.rfind(b"\n") + 1 if step > 0 else data.find(b"\n", 0, -1) + 1
            if not cut and size < LONGEST_LINE_BYTES:
                size *= 2
                continue
            if step > 0:
                data = data[: cut or length]
            else:
                at, data = at + cut, data[cut:]
        yield at, data
        start, end = (at + len(data), end) if step > 0 else (start, at)
        size = BLOCK_BYTES


def _wanted_in(at: int, data: bytes, wanted: Wanted) -> list[Span]:
    numbers = wanted.among(_shown_text(data))
    if not numbers:
        return []
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 0x0A) + 1
    bounds = [0, *ends.tolist(), len(data)]
    return [(at + bounds[number], at + bounds[number + 1]) for number in numbers]


def _shown_text(data: bytes) -> str:
    """The lines of a block as they are shown, all at once where no line has anything to hide."""
    body = data.removesuffix(b"\n")
    text = clean(body)
    if b"\r" in body or text.count("\n") != body.count(b"\n"):
        return "\n".join(shown(line) for line in body.split(b"\n"))
    return text.replace("\t", "    ")


class Matches:
    """The lines that a filter shows: found from the end of the log backwards, and then as the log grows.

    Holds at most `kept` of them, the newest.
    """

    def __init__(self, wanted: Wanted, end: int, *, kept: int = LINES_KEPT) -> None:
        """`end`: of the last whole line when the filter was set."""
        self._wanted = wanted
        self._kept = kept
        self._older = array("Q")  # ends and starts, the newest line first
        self._newer = array("Q")  # starts and ends, the oldest line first
        self._begun_at = self.seen_to = end
        """Whole lines up to here were tested."""

    def __len__(self) -> int:
        return (len(self._older) + len(self._newer)) // 2

    def span(self, row: int) -> Span:
        """Where the matching line of this row is."""
        newer = 2 * row - len(self._older)
        if newer >= 0:
            return self._newer[newer], self._newer[newer + 1]
        return self._older[-newer - 1], self._older[-newer - 2]

    def row_at(self, byte: int) -> int:
        """Row of the line that begins at this byte, or of the next one."""
        return bisect_left(range(len(self)), byte, key=lambda row: self.span(row)[0])

    async def fill(self, read: Read, added: Callable[[int], None], progress: Progress) -> None:
        """Look through the log from the end backwards; `added` hears how many rows came before the others."""
        whole = left = self._begun_at
        for spans, length in scan(read, 0, whole, -1, self._wanted):
            for start, end in spans:
                self._older.extend((end, start))
            if spans:
                added(len(spans))
            if len(self) >= self._kept:
                return
            left -= length
            progress(1 - left / whole)
            await asyncio.sleep(0)

    def advance(self, read: Read, size: int) -> tuple[bool, int]:
        """Test some of what was appended; whether that changed anything, and how many rows were dropped.

        A last line without newline counts as it stands, and is tested again when it has grown.
        """
        before = len(self._newer)
        while self._newer and self._newer[-2] >= self.seen_to:
            del self._newer[-2:]
        for spans, length in islice(scan(read, self.seen_to, size, 1, self._wanted), BLOCKS_A_LOOK):
            for span in spans:
                self._newer.extend(span)
            if read(self.seen_to + length - 1, 1) == b"\n":
                self.seen_to += length
        return len(self._newer) != before, self._drop()

    def _drop(self) -> int:
        over = len(self) - self._kept
        if over <= 0:
            return 0
        gone = over + self._kept // 10
        from_older = min(gone, len(self._older) // 2)
        if from_older:
            del self._older[-2 * from_older :]
        del self._newer[: 2 * (gone - from_older)]
        return gone
