"""Several nodes' logs as one scrolling text: `[0 1]` before a line names the ranks that said it."""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic

from console.core.reading.merge import order_known
from console.tui.messages import LogAdvanced, SearchEnded
from console.tui.paint import cut
from console.tui.widgets.expressions import Pattern, TooSlow, matching
from console.tui.widgets.log_view import LogView
from console.tui.widgets.merged_logs import MergedLogs

NO_ROW = -1
ROWS_A_TURN = 500
"""So many rows are tested before keys come through again."""


class MergedView(LogView):
    """A log view over `MergedLogs`. `~` before a row: whether it came after the one above is not known."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.logs: MergedLogs | None = None
        self.begins = ""
        """Told above the first row when it is not the first line of the logs."""
        self._ranks: tuple[int, ...] = ()
        self._places: tuple[tuple[int, int], ...] = ()
        self._passing: list[int] = []
        self._tested = 0

    def open_logs(self, paths: Sequence[Path], ranks: Sequence[int]) -> None:
        """Show other mirrors, from their ends; the same ones again change nothing."""
        if self.logs is not None and self.logs.paths == tuple(paths):
            return
        self.close()
        self.logs, self._ranks = MergedLogs(paths), tuple(ranks)
        self.follow = True
        self._restart()
        self._untest(0)
        self.look()

    def shows(self, path: Path) -> bool:
        return self.logs is not None and path in self.logs.paths

    def close(self) -> None:
        super().close()
        if self.logs:
            self.logs.close()
            self.logs = None

    @property
    def row_count(self) -> int:
        if self.logs is None:
            return 0
        return len(self._passing) if self.pattern else len(self.logs)

    def look(self) -> None:
        """Take in some of what was appended; the cursor stays on its line when rows come in above it."""
        self._looked_at, self._look_due = monotonic(), False
        if self.logs is None:
            return
        number = self._number(self.cursor) if self.row_count and not self.follow else -1
        held = self.logs.said(number) if number >= 0 else ()
        change = self.logs.look(monotonic())
        if change:
            gone = bisect_left(self._passing, change.dropped) if self.pattern else change.dropped
            self._passing = [passing - change.dropped for passing in self._passing[gone:]]
            self._tested = max(0, self._tested - change.dropped)
            self._untest(change.first)
            self._shift(-gone)
        try:
            tested = self._test_some()
        except TooSlow as slow:
            self.give_up_filter(slow)
            return
        if held and change and change.first <= number - change.dropped:
            below = range(self.cursor, self.row_count)
            self.cursor = next((n for n in below if held[0] in self._said(n)), self.cursor)
        if self.logs.behind or (self.pattern and self._tested < len(self.logs)):
            self.grew()
        if change or tested:
            self._settle()
            self.post_message(LogAdvanced(self.row_count, self.follow))

    def set_filter(self, pattern: Pattern | None) -> None:
        self.cancel_search()
        number = self._number(self.cursor) if self.row_count else 0
        self.pattern, self.mark = pattern, None
        self._untest(0)
        if pattern is None:
            self.cursor = number
        else:
            self.follow = True
        self.look()
        self._settle()

    def find(self, needle: str, step: int) -> None:
        self.cancel_search()
        self.needle = needle
        if not needle:
            self._redraw()
            return
        self._searching = self.run_worker(self._look_for(needle.casefold(), step), group="search")

    def set_places(self, places: Iterable[tuple[int, int]]) -> None:
        """Mark the rows that findings rest on: (log, byte)."""
        wanted = tuple(places)
        if wanted != self._places:
            self._places = wanted
            self._redraw()

    def go_to_finding(self, step: int) -> bool:
        if self.pattern:
            self.set_filter(None)
        rows = [number for number in range(self.row_count) if self._finding_on(number)]
        ahead = [row for row in rows if (row - self.cursor) * step > 0]
        if rows:
            self.go((ahead or rows)[0 if step > 0 else -1])
        return bool(rows)

    def raws(self) -> list[tuple[int, int, bytes]]:
        """Rank, offset and exact bytes of the line under the cursor, of every log that has it."""
        if self.logs is None or not self.row_count:
            return []
        found = self.logs.raw(self._number(self.cursor))
        return [(self._ranks[log], byte, raw) for log, byte, raw in found]

    def _layout(self) -> list[tuple[int, str | None]]:
        """With the note above the first row, unless the cursor's or the last row had to go for it."""
        rows, height = super()._layout(), self.size.height
        if self.logs is None or not self.logs.shortened or not rows or rows[0][0] or self.scroll_offset.y:
            return rows
        if len(rows) >= height and rows[-1][0] in (self.cursor, self.row_count - 1):
            return rows
        return [(NO_ROW, cut(self.begins, self._width - 1)), *rows][:height]

    def _number(self, row: int) -> int:
        return self._passing[row] if self.pattern else row

    def _said(self, row: int) -> tuple[tuple[int, int], ...]:
        return self.logs.said(self._number(row)) if self.logs else ()

    def _text(self, row: int) -> str:
        return self._named(self._number(row)) if row < self.row_count else ""

    def _named(self, number: int) -> str:
        """A row with those who said it in front."""
        assert self.logs is not None
        ranks = [self._ranks[log] for log, _ in self.logs.said(number)]
        before, row = self.logs.row(number - 1) if number else None, self.logs.row(number)
        doubt = row is None or (before is not None and not order_known(before, row))
        head = f"[{ranks_text(ranks, self._ranks)}]"
        width = len(ranks_text(self._ranks, self._ranks)) + 2
        return f"{'~' if doubt else ' '}{head:<{width}} {self.logs.text(number)}"

    def _finding_on(self, row: int) -> bool:
        logs = self.logs if row != NO_ROW else None
        return logs is not None and any(logs.rests_on(self._number(row), *place) for place in self._places)

    def _untest(self, first: int) -> None:
        """Rows from `first` on must be tested against the filter again."""
        self._tested = min(self._tested, first)
        while self._passing and self._passing[-1] >= first:
            self._passing.pop()

    def _test_some(self) -> bool:
        if self.logs is None or self.pattern is None:
            return False
        last = min(len(self.logs), self._tested + ROWS_A_TURN)
        rows = range(self._tested, last)
        found = [rows[number] for number in matching(self.pattern, [self._named(row) for row in rows])]
        self._passing += found
        self._tested = last
        return bool(found)

    async def _look_for(self, wanted: str, step: int) -> None:
        start, count, found = self.cursor, self.row_count, False
        for distance in range(1, count + 1):
            row = (start + step * distance) % count
            if wanted in self._text(row).casefold():
                self.go(row)
                found = True
                break
            if distance % ROWS_A_TURN == 0:
                await asyncio.sleep(0)
        self._searching = None
        self._redraw()
        self.post_message(SearchEnded(self.needle, found))


def ranks_text(ranks: Sequence[int], all_ranks: Sequence[int]) -> str:
    """`0 1`, of many ranks in a row `0-15`, of many others their number: `5 of 16`."""
    if len(ranks) <= 3:
        return " ".join(str(rank) for rank in ranks)
    if list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"{ranks[0]}-{ranks[-1]}"
    return f"{len(ranks)} of {len(all_ranks)}"
