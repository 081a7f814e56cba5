"""A mirror file as scrolling text: only the rows in sight are read and sanitised."""

from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import ClassVar

from textual.binding import Binding
from textual.worker import Worker

from console.tui.messages import FilterGivenUp, LogAdvanced, SearchEnded
from console.tui.widgets.expressions import Pattern, TooSlow
from console.tui.widgets.log_index import ADVANCE_BYTES, LogIndex, Span
from console.tui.widgets.log_rows import LogRows
from console.tui.widgets.log_scan import BLOCK_BYTES, Matches, Wanted, first_wanted

LOOK_SECONDS = 0.04
"""However fast a log grows, it is looked at no more often than this."""
PROGRESS_SECONDS = 0.1


class LogView(LogRows):
    """One log. The screen calls `look`, or `grew` when it heard of new bytes, while the view is visible;
    nothing is read otherwise. Searching and filtering go through the whole log, block by block.
    """

    BINDINGS: ClassVar = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "move_page(-1)", show=False),
        Binding("pagedown,space", "move_page(1)", show=False),
        Binding("home,g", "first", show=False),
        Binding("end,G", "last", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.index: LogIndex | None = None
        self.pattern: Pattern | None = None
        self.progress: float | None = None
        """How much of the log was searched or filtered, 0 to 1; None while neither goes on."""
        self._told_at = float("-inf")
        self._looked_at = float("-inf")
        self._look_due = False
        self._findings: tuple[int, ...] = ()
        self._matches: Matches | None = None
        self._filling: Worker[None] | None = None
        self._searching: Worker[None] | None = None

    def open(self, path: Path | None) -> None:
        """Show another mirror, from its end; the same one again changes nothing."""
        if path is not None and self.shows(path):
            return
        self.close()
        self.index = LogIndex(path) if path else None
        self.follow = True
        self._restart()
        self.look()
        if self.pattern is not None:
            self.set_filter(self.pattern)

    def shows(self, path: Path) -> bool:
        """Whether this mirror is the one that is shown."""
        return self.index is not None and self.index.path == path

    def close(self) -> None:
        """Let go of the file."""
        self.cancel_search()
        self._end_filling()
        if self.index:
            self.index.close()
        self.index = self._matches = None

    def on_unmount(self) -> None:
        self.close()

    @property
    def row_count(self) -> int:
        """Rows there are: lines of the log, or those that match the filter."""
        if self.index is None:
            return 0
        return len(self.index if self._matches is None else self._matches)

    @property
    def current_line(self) -> int | None:
        """Index of the line under the cursor; None in an empty log, or when the line isn't indexed."""
        if self.index is None or not self.row_count:
            return None
        return self.index.line_at(self._span(self.cursor)[0])

    def grew(self) -> None:
        """Bytes were added to the mirror: look at once, or as soon as the last look is old enough."""
        if not self._look_due:
            self._look_due = True
            self.call_later(self._look_in_time)

    def _look_in_time(self) -> None:
        wait = LOOK_SECONDS - (monotonic() - self._looked_at)
        if wait > 0:
            self.set_timer(wait, self.look)
        else:
            self.look()

    def look(self) -> None:
        """Take in what was appended and draw it when it is in sight."""
        self._looked_at, self._look_due = monotonic(), False
        if self.index is None:
            return
        reading_on = self.follow or self.cursor >= self.row_count - 1
        advance = self.index.advance(hold=not reading_on and self._matches is None)
        changed = advance.grown or advance.reset
        if advance.reset:
            self._restart()
            self.set_filter(self.pattern)
        if self._matches is None:
            self._shift(-advance.dropped)
        else:
            try:
                matched, dropped = self._matches.advance(self.index.bytes_at, self.index.size)
            except TooSlow as slow:
                self.give_up_filter(slow)
                return
            self._shift(-dropped)
            changed = changed or matched
            if self._matches.seen_to + BLOCK_BYTES < self.index.size:
                self.grew()
        if advance.grown and self.index.end < self.index.size:
            self.grew()
        if changed:
            self._settle()
            self.post_message(LogAdvanced(self.row_count, self.follow))

    def set_filter(self, pattern: Pattern | None) -> None:
        """Show matching lines only, found from the end of the log on; None shows all again."""
        here = self._span(self.cursor)[0] if self.row_count else None
        self.cancel_search()
        self._end_filling()
        self.pattern, self._matches, self.mark = pattern, None, None
        if self.index is None:
            return
        if pattern is None:
            if here is not None and not self.follow:
                self.go_to_byte(here)
        else:
            self._matches = Matches(Wanted(pattern=pattern), self.index.whole_end)
            self._filling = self.run_worker(self._fill(self._matches, self.index), group="filter")
            self.follow = True
            self.look()
        self._settle()

    def give_up_filter(self, slow: TooSlow) -> None:
        """Show all lines again and tell why."""
        self.progress = None
        self.set_filter(None)
        self.post_message(FilterGivenUp(slow.line))

    def set_findings(self, start_bytes: Iterable[int]) -> None:
        """Mark the lines that findings rest on."""
        places = tuple(sorted(start_bytes))
        if places != self._findings:
            self._findings = places
            self._redraw()

    def find(self, needle: str, step: int) -> None:
        """Begin to look for the next (1) or previous (-1) row with `needle`, ignoring case, in the whole log.

        `SearchEnded` tells what came of it. An empty needle ends a search.
        """
        self.cancel_search()
        self.needle = needle
        self._redraw()
        if self.index is not None and needle:
            self._searching = self.run_worker(self._search(self.index, needle, step), group="search")

    def cancel_search(self) -> None:
        """Stop looking for the needle."""
        if self._searching is not None:
            self._searching.cancel()
            self._searching = self.progress = None

    def go_to_finding(self, step: int) -> bool:
        """Move to the next or previous line that a finding rests on; whether there is one."""
        if self.index is None or not self._findings:
            return False
        if self.pattern:
            self.set_filter(None)
        start, end = self._span(self.cursor) if self.row_count else (0, 0)
        ahead = [byte for byte in self._findings if (byte >= end if step > 0 else byte < start)]
        return self.go_to_byte((ahead or self._findings)[0 if step > 0 else -1])

    def go(self, row: int) -> None:
        """Put the cursor on a row; following ends unless it is the last."""
        self.cursor = max(0, min(row, self.row_count - 1))
        self.follow = self.cursor >= self.row_count - 1 and not self._far_from_end
        self._settle()
        self.post_message(LogAdvanced(self.row_count, self.follow))

    def go_to_byte(self, byte: int) -> bool:
        """Put the cursor on the line that holds this byte of the log; whether the log has it."""
        if self.index is None or byte >= self.index.size:
            return False
        if self._matches is not None:
            self.go(self._matches.row_at(byte))
            return True
        if self.index.line_at(byte) is None:
            self._enter(byte)
        line = self.index.line_at(byte)
        if line is not None:
            self.go(line)
        return line is not None

    def toggle_follow(self) -> None:
        self.follow = not self.follow
        if self.follow:
            self.action_last()
        self._settle()

    def raw(self) -> tuple[int, bytes] | None:
        """Offset and exact bytes of the line under the cursor."""
        if self.index is None or not self.row_count:
            return None
        span = self._span(self.cursor)
        return span[0], self.index.read_span(span)

    def action_move(self, step: int) -> None:
        if self.cursor + step < 0:
            self._fetch_older()
        self.go(self.cursor + step)

    def action_move_page(self, step: int) -> None:
        rows = step * max(1, self.size.height - 1)
        if self.cursor + rows < 0:
            self._fetch_older()
        self.go(self.cursor + rows)

    def action_first(self) -> None:
        self._fetch_older()
        if self.index is not None and not self.index.hole:
            self.go_to_byte(0)
        self.go(0)

    def action_last(self) -> None:
        if self.index is not None and self._far_from_end:
            self._enter(self.index.size)
        self.go(self.row_count - 1)

    def _finding_on(self, row: int) -> bool:
        if self.index is None or not self._findings:
            return False
        start, end = self._span(row)
        return any(start <= byte < end for byte in self._findings)

    def _span(self, row: int) -> Span:
        """Where the line of a row is in the log."""
        if self._matches is not None:
            return self._matches.span(row)
        return self.index.span(row) if self.index else (0, 0)

    def _text(self, row: int) -> str:
        return self.index.text_of(self._span(row)) if self.index else ""

    @property
    def _far_from_end(self) -> bool:
        """The next look won't come to the end of the log."""
        index = self.index
        return index is not None and self._matches is None and index.size - index.end > ADVANCE_BYTES

    def _enter(self, byte: int) -> None:
        """Index the log anew around a byte."""
        if self.index is not None:
            self._restart()
            self.index.enter(byte)
            self.index.advance()

    def _fetch_older(self) -> None:
        if self.index is not None and self._matches is None:
            self._shift(self.index.older())

    async def _fill(self, matches: Matches, index: LogIndex) -> None:
        try:
            await matches.fill(index.bytes_at, self._matched_older, self._tell_progress)
        except TooSlow as slow:
            self._filling = None
            self.give_up_filter(slow)
            return
        self._filling = None
        self._tell_progress(None)

    def _matched_older(self, rows: int) -> None:
        self._shift(rows)
        self._settle()

    def _end_filling(self) -> None:
        if self._filling is not None:
            self._filling.cancel()
            self._filling = self.progress = None

    async def _search(self, index: LogIndex, needle: str, step: int) -> None:
        """From the cursor to one end of the log, then from the other end back to the cursor."""
        if self._filling is not None:
            await self._filling.wait()
        size, wanted = index.size, Wanted(needle, self.pattern)
        start, end = self._span(self.cursor) if self.row_count else (size, size)
        parts = ((0, start), (start, size)) if step < 0 else ((end, size), (0, end))
        try:
            found = await first_wanted(index.bytes_at, parts, step, wanted, self._tell_progress)
        except TooSlow as slow:
            self._searching = None
            self.give_up_filter(slow)
            return
        self._searching = None
        if found is not None:
            self.go_to_byte(found[0])
        self._tell_progress(None)
        self._redraw()
        self.post_message(SearchEnded(needle, found is not None))

    def _tell_progress(self, share: float | None) -> None:
        self.progress = share
        if share is None or monotonic() - self._told_at > PROGRESS_SECONDS:
            self._told_at = monotonic()
            self.post_message(LogAdvanced(self.row_count, self.follow))
