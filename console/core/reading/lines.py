"""Bytes -> lines, cut at both line feed and carriage return, with the place of each in the file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_LINE_BYTES = 1 << 20
"""A longer line is read in pieces of this size, counted from its start, so that memory stays bounded."""

PART_BYTES = 1 << 18
EXCERPT_CHARS = 500

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
_END = re.compile(rb"[\r\n]")
_UNSAFE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def clean(data: bytes) -> str:
    """Text safe to show and to match: no escape sequences, control or direction-changing characters."""
    text = data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return _UNSAFE.sub("", text)


def excerpt(text: str, limit: int = EXCERPT_CHARS) -> str:
    """`text` cut to `limit` characters, the cut marked."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, or one piece of an overlong line. `start_byte` and `line` are those of its first byte."""

    data: bytes
    start_byte: int
    line: int


class LineBuffer:
    """Holds back the unfinished last line of a stream.

    Where lines and pieces are cut depends on the bytes alone, never on how they arrived.
    """

    def __init__(self, start_byte: int = 0, line: int = 1) -> None:
        self._pending = bytearray()
        self._start = start_byte
        self._line = line

    def feed(self, data: bytes) -> Iterator[Block]:
        """The lines that `data` completes."""
        for begin in range(0, len(data), PART_BYTES):
            yield from self._part(data[begin : begin + PART_BYTES])

    @property
    def position(self) -> int:
        """Byte offset up to which lines were handed on."""
        return self._start

    def finish(self) -> Iterator[Block]:
        """What is left without a line end."""
        if self._pending:
            yield self._take(len(self._pending))

    def _part(self, data: bytes) -> Iterator[Block]:
        known = len(self._pending)
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        first = line_end(data, 0) if cut else len(data)
        self._pending += data
        first, cut = known + first, known + cut if cut else 0
        while first > LONGEST_LINE_BYTES:
            yield self._take(LONGEST_LINE_BYTES)
            first, cut = first - LONGEST_LINE_BYTES, max(0, cut - LONGEST_LINE_BYTES)
        if cut:
            yield self._take(cut)

    def _take(self, size: int) -> Block:
        block = Block(bytes(self._pending[:size]), self._start, self._line)
        del self._pending[:size]
        self._start += size
        self._line += block.data.count(b"\n")
        return block


def line_start(data: bytes, position: int, floor: int = 0) -> int:
    """Where the line of `data` around `position` starts; `floor`: the start or end of an earlier line."""
    feed = data.rfind(b"\n", floor, position) + 1 or floor
    return data.rfind(b"\r", feed, position) + 1 or feed


def line_end(data: bytes, position: int) -> int:
    """Where the line around `position` ends, its end marks left out."""
    end = _END.search(data, position)
    return end.start() if end else len(data)
