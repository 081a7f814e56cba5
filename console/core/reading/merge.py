"""Several logs of one run as one stream, in which what they have in common stands once.

What is known of the order of lines, and used, the strongest first:

1. Within one log: the order of its file, always.
2. The same text, and the record of the same step, are one place in all logs: there they are lined up.
3. What arrived earlier stands before what arrived later. History, read at opening, has no times of arrival.
4. Lines with time stamps stand in the order of these (each by its node's clock); a line without a stamp
   stays with the stamped one before it.

Where none of these speaks, the lower log comes first, and `order_known` says that it need not have been so.
"""

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from console.core.reading.line_heads import head_of

OPEN_ROWS = 4096
"""Further back than this, no line is joined to an equal one."""
ROWS_KEPT = 20_000
TWIN_SECONDS = 10.0
"""Equal lines further apart than this, by arrival or by stamp, were said twice."""


@dataclass(frozen=True, slots=True)
class Line:
    """One whole line of one log, as safe text."""

    start_byte: int
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the stream. `said` lists (log, start byte) of all who said it, by log."""

    said: tuple[tuple[int, int], ...]
    key: int
    """Stands for the text without the names of rank and time in front of it."""
    step: int | None
    stamp: float | None
    arrived: float
    """Seconds on the reader's clock."""
    history: bool
    """It was there when the reader came: `arrived` is only the latest that it can have been."""

    @property
    def place(self) -> tuple[str, int]:
        """Equal in rows that belong side by side."""
        return ("text", self.key) if self.step is None else ("step", self.step)

    def said_by(self, log: int) -> bool:
        return any(which == log for which, _ in self.said)


@dataclass(frozen=True, slots=True)
class Change:
    """Rows from `first` on are new or changed, counted after `dropped` rows were taken from the front."""

    first: int
    dropped: int


class Merge:
    """Grows by rounds of lines; keeps places in the files, never their text."""

    def __init__(self, *, open_rows: int = OPEN_ROWS, rows_kept: int = ROWS_KEPT) -> None:
        self.rows: list[Row] = []
        self._open_rows = open_rows
        self._rows_kept = rows_kept

    def take(self, lines: Sequence[Sequence[Line]], arrived: float, *, history: bool = False) -> Change:
        """Put in the further lines of every log. Which of one round arrived first is not known."""
        first = len(self.rows)
        for log, new in enumerate(lines):
            if new:
                begin = self._first_open(log)
                older = self.rows[begin:]
                woven = weave(older, [_row(log, line, arrived, history) for line in new])
                same = next(
                    (n for n, (a, b) in enumerate(zip(older, woven, strict=False)) if a is not b), None
                )
                first = min(first, begin + (len(older) if same is None else same))
                self.rows[begin:] = woven
        dropped = 0
        if len(self.rows) > self._rows_kept:
            dropped = len(self.rows) - self._rows_kept + self._rows_kept // 10
            del self.rows[:dropped]
        return Change(max(0, first - dropped), dropped)

    def _first_open(self, log: int) -> int:
        """The first row that a further line of `log` may join."""
        least = max(0, len(self.rows) - self._open_rows)
        last = next((n for n in range(len(self.rows) - 1, least - 1, -1) if self.rows[n].said_by(log)), None)
        return least if last is None else last + 1


def order_known(before: Row, row: Row) -> bool:
    """Whether anything says that `row` belongs after `before`, which stands directly above it."""
    if any(row.said_by(log) for log, _ in before.said):
        return True
    if before.step is not None and row.step is not None and before.step <= row.step:
        return True
    if before.stamp is not None and row.stamp is not None:
        return before.stamp <= row.stamp
    return not row.history and (before.history or before.arrived < row.arrived)


def weave(older: Sequence[Row], fresh: Sequence[Row]) -> list[Row]:
    """Rows and the rows of one further log as one sequence, both in their own order."""
    woven: list[Row] = []
    i = j = 0
    for a, b in line_up([row.place for row in older], [row.place for row in fresh]):
        run = a
        while run > i and older[a].step is not None and older[run - 1].place == older[a].place:
            run -= 1
        woven += _between(older[i:run], fresh[j:b])
        woven += _joined(older[run : a + 1], fresh[b])
        i, j = a + 1, b + 1
    return woven + _between(older[i:], fresh[j:])


def _joined(run: Sequence[Row], new: Row) -> list[Row]:
    """Rows of one place with another that belongs there: part of an equal row, or a row after them."""
    for n, row in enumerate(run):
        if row.key == new.key and _near(row.arrived, new.arrived) and _near(row.stamp, new.stamp):
            both = replace(row, said=tuple(sorted((*row.said, *new.said))))
            return [*run[:n], both, *run[n + 1 :]]
    return [*run, new]


def _near(one: float | None, other: float | None) -> bool:
    return one is None or other is None or abs(one - other) <= TWIN_SECONDS


def _between(older: Sequence[Row], fresh: Sequence[Row]) -> list[Row]:
    """Rows without a common place: those that arrived earlier first, those of one round by their stamps."""
    if not older or not fresh:
        return [*older, *fresh]
    earlier = next((n for n in range(len(older), 0, -1) if older[n - 1].arrived != fresh[0].arrived), 0)
    by_stamp = heapq.merge(_stamped(older[earlier:]), _stamped(fresh), key=lambda pair: pair[0])
    return [*older[:earlier], *(row for _, row in by_stamp)]


def _stamped(rows: Sequence[Row]) -> Iterator[tuple[float, Row]]:
    """Each row with the greatest stamp up to it."""
    stamp = float("-inf")
    for row in rows:
        stamp = max(stamp, stamp if row.stamp is None else row.stamp)
        yield stamp, row


Place = tuple[str, int]


def line_up(older: Sequence[Place], fresh: Sequence[Place]) -> list[tuple[int, int]]:
    """Pairs of equal places, ascending in both: a patience diff with the equal neighbours of its anchors.

    Anchors are the places that stand once on either side, the longest ascending sequence of them.
    """
    once_older, once_fresh = _once(older), _once(fresh)
    common = [(once_older[place], b) for place, b in once_fresh.items() if place in once_older]
    pairs: list[tuple[int, int]] = []
    i = j = 0
    for a, b in [*_longest_ascending(common), (len(older), len(fresh))]:
        while i < a and j < b and older[i] == fresh[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        back = 0
        while a - back > i and b - back > j and older[a - back - 1] == fresh[b - back - 1]:
            back += 1
        pairs += [(a - n, b - n) for n in range(back, 0, -1)]
        if b < len(fresh):
            pairs.append((a, b))
        i, j = a + 1, b + 1
    return pairs


def _once(places: Sequence[Place]) -> dict[Place, int]:
    """Where each place stands that stands once; records of one step beside each other count as one."""
    found: dict[Place, int] = {}
    repeated: set[Place] = set()
    for n, place in enumerate(places):
        if place in found and not (place[0] == "step" and places[n - 1] == place):
            repeated.add(place)
        found[place] = n
    return {place: n for place, n in found.items() if place not in repeated}


def _longest_ascending(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence whose first members ascend; the second ones do already (patience sorting)."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for n, (a, _) in enumerate(pairs):
        pile = bisect_left(tops, a)
        before.append(ends[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [a]
        ends[pile : pile + 1] = [n]
    chosen: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chosen.append(pairs[at])
        at = before[at]
    return chosen[::-1]


def _row(log: int, line: Line, arrived: float, history: bool) -> Row:
    head = head_of(line.text)
    return Row(((log, line.start_byte),), hash(head.body), head.step, head.stamp, arrived, history)
