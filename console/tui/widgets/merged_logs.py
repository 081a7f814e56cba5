"""The mirrors of several nodes read as one stream; the order of its rows is that of `core.reading.merge`."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from console.core.reading.line_heads import head_of
from console.core.reading.merge import Change, Line, Merge, Row
from console.core.text import clean
from console.tui.widgets.log_index import LogIndex, shown

BYTES_A_LOOK = 512 * 1024
LINES_A_LOOK = 1000
"""More would hold up the keys."""
HISTORY_LINES = 2000


class MergedLogs:
    """Rows of several logs, from near their ends on. The logs' unfinished last lines stand below all rows."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self._indexes = [LogIndex(path) for path in paths]
        self._begin()

    def _begin(self) -> None:
        self._merge = Merge()
        self._taken: list[int | None] = [None] * len(self.paths)
        self._history = True
        self.unfinished: tuple[tuple[int, int], ...] = ()
        """(log, start byte) of lines without an end."""
        self.shortened = False
        """Whether a log has lines before those that were taken in, or rows were dropped."""

    def __len__(self) -> int:
        return len(self._merge.rows) + len(self.unfinished)

    def look(self, now: float) -> Change | None:
        """Take in some of what was appended; None when there was nothing. `now`: seconds, any clock."""
        rows_before, unfinished = len(self._merge.rows), self.unfinished
        grown = False
        for log, index in enumerate(self._indexes):
            if (self._taken[log] or 0) >= index.whole_end:
                advance = index.advance(BYTES_A_LOOK)
                grown = grown or advance.grown
                if advance.reset:
                    self._begin()
                    return Change(0, rows_before + len(unfinished))
        lines = [self._further(log) for log in range(len(self._indexes))]
        history, self._history = self._history, False
        if not grown and not any(lines):
            return None
        change = self._merge.take(lines, now, history=history)
        self.shortened = self.shortened or change.dropped > 0
        self.unfinished = tuple(
            (log, index.whole_end) for log, index in enumerate(self._indexes) if index.whole_end < index.end
        )
        return change

    @property
    def behind(self) -> bool:
        """Whether the mirrors have more than was taken in."""
        logs = zip(self._taken, self._indexes, strict=True)
        return any((taken or 0) < index.whole_end or index.end < index.size for taken, index in logs)

    def row(self, number: int) -> Row | None:
        """None for an unfinished line, which has no place yet."""
        return self._merge.rows[number] if number < len(self._merge.rows) else None

    def said(self, number: int) -> tuple[tuple[int, int], ...]:
        """(log, start byte) of all that said this row."""
        row = self.row(number)
        return row.said if row else (self.unfinished[number - len(self._merge.rows)],)

    def text(self, number: int) -> str:
        """The row's text; of one that several said without the rank and time in front of it."""
        said = self.said(number)
        log, byte = said[0]
        line = self._indexes[log].line_at(byte)
        text = "" if line is None else self._indexes[log].text(line)
        return text if len(said) == 1 else head_of(text).body

    def raw(self, number: int) -> list[tuple[int, int, bytes]]:
        """Log, offset and exact bytes of the row in every log that has it."""
        return [(log, byte, self._raw(log, byte)) for log, byte in self.said(number)]

    def _raw(self, log: int, byte: int) -> bytes:
        line = self._indexes[log].line_at(byte)
        return b"" if line is None else self._indexes[log].read(line)

    def rests_on(self, number: int, log: int, byte: int) -> bool:
        """Whether this byte of this log is in the row."""
        line = self._indexes[log].line_at(byte)
        return line is not None and (log, self._indexes[log].span(line)[0]) in self.said(number)

    def close(self) -> None:
        for index in self._indexes:
            index.close()

    def _further(self, log: int) -> list[Line]:
        """Whole lines of a log that were not taken in yet, at most `LINES_A_LOOK`, of history the last."""
        index, taken = self._indexes[log], self._taken[log]
        if not len(index) or (taken or 0) >= index.whole_end:
            return []
        first = 0 if taken is None else index.line_at(taken)
        assert first is not None
        last = min(len(index), first + LINES_A_LOOK)
        if self._history:
            first, last = max(0, len(index) - HISTORY_LINES), len(index)
            self.shortened = self.shortened or index.span(first)[0] > 0
        start, end = index.span(first)[0], min(index.span(last - 1)[1], index.whole_end)
        self._taken[log] = end
        if end - start > BYTES_A_LOOK:
            return [
                Line(index.span(n)[0], index.text(n)) for n in range(first, last) if index.span(n)[1] <= end
            ]
        return _lines_of(start, index.bytes_at(start, end - start))


def _lines_of(start: int, data: bytes) -> list[Line]:
    """The whole lines of `data`, sanitised all at once where none has anything to hide."""
    body = data.removesuffix(b"\n")
    raw, safe = body.split(b"\n"), clean(body)
    if b"\r" in body or safe.count("\n") != len(raw) - 1:
        texts = [shown(line) for line in raw]
    else:
        texts = safe.replace("\t", "    ").split("\n")
    offsets = accumulate((len(line) + 1 for line in raw), initial=start)
    return [Line(offset, text) for offset, text in zip(offsets, texts, strict=False)]
