"""A mirror file as scrolling text: only the rows in sight are read, sanitised and drawn."""

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from console.tui.messages import LogAdvanced
from console.tui.widgets.log_index import LogIndex

SCAN_SECONDS = 0.02
"""How long one look may search for matching lines before it lets the keys through."""
_ERROR = re.compile(r"\b(?:Traceback|[A-Z]\w*(?:Error|Exception)\b|CUDA out of memory|ERROR\b|FATAL)")
_PLAIN, _BAD, _FOUND = Style(), Style(color="red"), Style(color="yellow", bold=True)
_MATCH, _CURSOR, _MARKED = Style(reverse=True, bold=True), Style(reverse=True), Style(underline=True)


class LogView(ScrollView, can_focus=True):
    """One log. `look` is called by the screen while the view is visible; nothing is read otherwise."""

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
        self.follow = True
        self.wrap = True
        self.cursor = 0
        self.mark: int | None = None
        self.pattern: re.Pattern[str] | None = None
        self.needle = ""
        self._findings: tuple[int, ...] = ()
        self._matches: list[int] = []
        self._scanned = 0
        self._widest = 1
        self._rows: list[tuple[int, str | None]] | None = None

    def open(self, path: Path | None) -> None:
        """Show another mirror, from its end; the same one again changes nothing."""
        if self.index is not None and self.index.path == path:
            return
        self.close()
        self.index = LogIndex(path) if path else None
        self.follow, self.cursor, self.mark = True, 0, None
        self._restart()
        self.look()

    def close(self) -> None:
        """Let go of the file."""
        if self.index:
            self.index.close()
            self.index = None

    def on_unmount(self) -> None:
        self.close()

    @property
    def row_count(self) -> int:
        """Rows there are: lines of the log, or those that match the filter."""
        if self.index is None:
            return 0
        return len(self._matches) if self.pattern else len(self.index)

    @property
    def current_line(self) -> int | None:
        """Index of the line under the cursor, or None in an empty log."""
        return self._line(self.cursor) if self.row_count else None

    def look(self) -> None:
        """Take in what was appended and draw it when it is in sight."""
        if self.index is None:
            return
        advance = self.index.advance()
        if advance.reset:
            self._restart()
        if advance.dropped:
            self._shift(-advance.dropped)
        if self._scan() or advance.grown or advance.reset or advance.dropped:
            self._settle()
            self.post_message(LogAdvanced(self.row_count, self.follow))

    def set_filter(self, pattern: re.Pattern[str] | None) -> None:
        """Show matching lines only; None shows all again."""
        line = self.current_line
        self.pattern = pattern
        self._matches, self._scanned = [], 0
        if pattern is None and line is not None:
            self.cursor = line
        self._scan()
        self.cursor = min(self.cursor, max(0, self.row_count - 1))
        self._settle()

    def set_findings(self, start_bytes: Iterable[int]) -> None:
        """Mark the lines that findings rest on."""
        places = tuple(sorted(start_bytes))
        if places != self._findings:
            self._findings = places
            self.refresh()

    def find(self, needle: str, step: int) -> bool:
        """Move to the next (1) or previous (-1) row with `needle`, ignoring case; whether there is one."""
        self.needle = needle
        wanted, count = needle.casefold(), self.row_count
        for distance in range(1, count + 1):
            row = (self.cursor + step * distance) % count
            if wanted in self._text(row).casefold():
                self.go(row)
                return True
        self.refresh()
        return False

    def go_to_finding(self, step: int) -> bool:
        """Move to the next or previous line that a finding rests on; whether there is one."""
        if self.index is None:
            return False
        self._reach(self._findings[:1])
        lines = [line for byte in self._findings if (line := self.index.line_at(byte)) is not None]
        if not lines:
            return False
        here = self.current_line or 0
        ahead = [line for line in lines if (line - here) * step > 0]
        target = (ahead or lines)[0 if step > 0 else -1]
        if self.pattern:
            self.set_filter(None)
        self.go(target)
        return True

    def go(self, row: int) -> None:
        """Put the cursor on a row; following ends unless it is the last."""
        self.cursor = max(0, min(row, self.row_count - 1))
        self.follow = self.cursor >= self.row_count - 1
        self._settle()
        self.post_message(LogAdvanced(self.row_count, self.follow))

    def toggle_follow(self) -> None:
        self.follow = not self.follow
        self._settle()

    def toggle_wrap(self) -> None:
        self.wrap = not self.wrap
        self._settle()

    def marked_text(self) -> str:
        """The line under the cursor, or all from the marked one to it."""
        if not self.row_count:
            return ""
        first, last = sorted((self.cursor if self.mark is None else self.mark, self.cursor))
        return "\n".join(self._text(row) for row in range(first, last + 1))

    def raw(self) -> tuple[int, bytes] | None:
        """Offset and exact bytes of the line under the cursor."""
        line = self.current_line
        if self.index is None or line is None:
            return None
        return self.index.span(line)[0], self.index.read(line)

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
        self.go(0)

    def action_last(self) -> None:
        self.go(self.row_count - 1)

    @property
    def _width(self) -> int:
        """Cells beside the scroll bar."""
        return self.scrollable_content_region.width

    def render_lines(self, crop: Region) -> list[Strip]:
        self._rows = self._layout()
        try:
            return super().render_lines(crop)
        finally:
            self._rows = None

    def render_line(self, y: int) -> Strip:
        width = self._width
        rows = self._layout() if self._rows is None else self._rows
        if y >= len(rows):
            return Strip.blank(width)
        row, piece = rows[y]
        text = self._text(row) if piece is None else piece
        strip = self._strip(row, text, width)
        if self.wrap:
            return strip.crop_extend(0, width, _PLAIN)
        left = int(self.scroll_offset.x)
        return strip.crop_extend(left, left + width, _PLAIN)

    def _layout(self) -> list[tuple[int, str | None]]:
        """The rows in sight, top to bottom; with wrapping, a row for every piece of a line."""
        height, count = self.size.height, self.row_count
        top = int(self.scroll_offset.y)
        if not self.wrap:
            return [(row, None) for row in range(top, min(count, top + height))]
        at_end = top >= count - height
        found: list[tuple[int, str | None]] = []
        for row in range(count - 1, -1, -1) if at_end else range(top, count):
            pieces = chop_cells(self._text(row), max(1, self._width - 1)) or [""]
            found = [*((row, p) for p in pieces), *found] if at_end else [*found, *((row, p) for p in pieces)]
            if len(found) >= height:
                break
        return found[-height:] if at_end else found[:height]

    def _strip(self, row: int, text: str, width: int) -> Strip:
        marked = self._finding_on(row)
        style = _FOUND if marked else _BAD if _ERROR.search(text) else _PLAIN
        if self.mark is not None and min(self.mark, self.cursor) <= row <= max(self.mark, self.cursor):
            style += _MARKED
        if row == self.cursor and not self.follow:
            style += _CURSOR
            text = text + " " * max(0, width - 1 - cell_len(text))
        sign = Segment("▲" if marked else " ", _FOUND)
        if cell_len(text) + 1 > self._widest:
            self._widest = min(cell_len(text) + 1, 20_000)
        if not self.needle:
            return Strip([sign, Segment(text, style)])
        parts = re.split(f"({re.escape(self.needle)})", text, flags=re.IGNORECASE)
        pieces = [Segment(part, style + _MATCH if n % 2 else style) for n, part in enumerate(parts) if part]
        return Strip([sign, *pieces])

    def _finding_on(self, row: int) -> bool:
        if self.index is None or not self._findings:
            return False
        start, end = self.index.span(self._line(row))
        return any(start <= byte < end for byte in self._findings)

    def _line(self, row: int) -> int:
        return self._matches[row] if self.pattern else row

    def _text(self, row: int) -> str:
        return self.index.text(self._line(row)) if self.index else ""

    def _scan(self) -> bool:
        """Test further lines against the filter, for a short while."""
        if self.index is None or self.pattern is None:
            return False
        before, finish = len(self._matches), time.monotonic() + SCAN_SECONDS
        while self._scanned < len(self.index) and time.monotonic() < finish:
            if self.pattern.search(self.index.text(self._scanned)):
                self._matches.append(self._scanned)
            self._scanned += 1
        return len(self._matches) != before

    def _restart(self) -> None:
        self._matches, self._scanned, self._widest = [], 0, 1
        self.cursor, self.mark = 0, None

    def _shift(self, lines: int) -> None:
        """Lines were put before (positive) or dropped from (negative) the front."""
        self._matches = [line + lines for line in self._matches if line + lines >= 0]
        self._scanned = max(0, self._scanned + lines)
        if self.pattern is None:
            self.cursor = max(0, self.cursor + lines)
            if self.mark is not None:
                self.mark = max(0, self.mark + lines)

    def _fetch_older(self) -> None:
        if self.index is None or not (added := self.index.older()):
            return
        self._shift(added)
        if self.pattern:
            self.set_filter(self.pattern)

    def _reach(self, bytes_wanted: tuple[int, ...]) -> None:
        """Go back in the file until the first of these bytes is indexed."""
        for byte in bytes_wanted:
            while self.index is not None and byte < self.index.base:
                if not (added := self.index.older()):
                    return
                self._shift(added)

    def _settle(self) -> None:
        """Size, scroll position and picture after any change."""
        count = self.row_count
        width = self._width if self.wrap else max(self._widest, self._width)
        if self.virtual_size != (width, count):
            self.virtual_size = Size(width, count)
        if self.follow:
            self.cursor = max(0, count - 1)
        height, top = max(1, self.size.height), int(self.scroll_offset.y)
        if self.follow or self.cursor < top or self.cursor >= top + height:
            target = self.cursor - height + 1 if self.follow or self.cursor > top else self.cursor
            self.scroll_to(y=max(0, target), animate=False, immediate=True, force=True)
        self.refresh()

    def on_resize(self) -> None:
        self._settle()
