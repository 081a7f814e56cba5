"""Numbered rows of text with a cursor, a mark and a needle: only those in sight are asked for and drawn."""

import re
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

_ERROR = re.compile(r"\b(?:Traceback|[A-Z]\w*(?:Error|Exception)\b|CUDA out of memory|ERROR\b|FATAL)")
_PLAIN, _BAD, _FOUND = Style(), Style(color="red"), Style(color="yellow", bold=True)
_MATCH, _CURSOR, _MARKED = Style(reverse=True, bold=True), Style(reverse=True), Style(underline=True)


class Drawn(NamedTuple):
    """All that a line of the screen is drawn from."""

    text: str
    finding: bool
    marked: bool
    chosen: bool
    needle: str


class LogRows(ScrollView, can_focus=True):
    """Draws rows; whose they are says the subclass with `row_count`, `_text` and `_finding_on`."""

    DEFAULT_CSS = """
    LogRows {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
    }
    """
    virtual_size = Reactive(Size(0, 0), repaint=False)
    """Of all rows. Nothing else depends on it: a log that grows lays out no screen and repaints no row."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.follow = True
        self.wrap = True
        self.cursor = 0
        self.mark: int | None = None
        self.needle = ""
        self._widest = 1
        self._picture: list[Drawn] = []

    @property
    def row_count(self) -> int:
        """Rows there are."""
        raise NotImplementedError

    def _text(self, row: int) -> str:
        raise NotImplementedError

    def _finding_on(self, row: int) -> bool:
        """Whether a finding rests on this row."""
        raise NotImplementedError

    def toggle_wrap(self) -> None:
        self.wrap = not self.wrap
        self._settle()

    def marked_text(self) -> str:
        """The line under the cursor, or all from the marked one to it."""
        if not self.row_count:
            return ""
        first, last = sorted((self.cursor if self.mark is None else self.mark, self.cursor))
        return "\n".join(self._text(row) for row in range(first, last + 1))

    @property
    def _width(self) -> int:
        """Cells beside the scroll bar."""
        return self.scrollable_content_region.width

    def render_lines(self, crop: Region) -> list[Strip]:
        self._picture = self._drawn()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self._width
        if y >= len(self._picture):
            return Strip.blank(width)
        strip = self._strip(self._picture[y], width)
        left = 0 if self.wrap else int(self.scroll_offset.x)
        return strip.crop_extend(left, left + width, _PLAIN)

    def _drawn(self) -> list[Drawn]:
        """The lines of the screen as they are to be drawn now."""
        first, last = sorted((self.cursor if self.mark is None else self.mark, self.cursor))
        return [
            Drawn(
                self._text(row) if piece is None else piece,
                self._finding_on(row),
                self.mark is not None and first <= row <= last,
                row == self.cursor and not self.follow,
                self.needle,
            )
            for row, piece in self._layout()
        ]

    def _redraw(self) -> None:
        """Draw the lines anew that are no longer as they were drawn last."""
        pairs = zip_longest(self._picture, self._drawn())
        changed = [Region(0, y, self.size.width, 1) for y, (old, new) in enumerate(pairs) if old != new]
        if changed:
            self.refresh(*changed)

    def _layout(self) -> list[tuple[int, str | None]]:
        """The rows in sight, top to bottom; with wrapping, a row for every piece of a line."""
        height, count = self.size.height, self.row_count
        top = int(self.scroll_offset.y)
        if not self.wrap:
            return [(row, None) for row in range(top, min(count, top + height))]
        at_end = top >= count - height
        found = self._pieces_up_to(count - 1) if at_end else self._pieces_from(top)
        wanted = not self.follow and top <= self.cursor < top + height
        if wanted and all(row != self.cursor for row, _ in found):
            return self._pieces_from(self.cursor) if at_end else self._pieces_up_to(self.cursor)
        return found

    def _pieces_from(self, first: int) -> list[tuple[int, str | None]]:
        """As many pieces of lines as there is room for, from this row down."""
        found: list[tuple[int, str | None]] = []
        for row in range(first, self.row_count):
            found += self._pieces(row)
            if len(found) >= self.size.height:
                break
        return found[: self.size.height]

    def _pieces_up_to(self, last: int) -> list[tuple[int, str | None]]:
        """As many pieces of lines as there is room for, so that this row's are the lowest."""
        found: list[tuple[int, str | None]] = []
        for row in range(last, -1, -1):
            found = [*self._pieces(row), *found]
            if len(found) >= self.size.height:
                break
        return found[-self.size.height :]

    def _pieces(self, row: int) -> list[tuple[int, str | None]]:
        return [(row, piece) for piece in chop_cells(self._text(row), max(1, self._width - 1)) or [""]]

    def _strip(self, line: Drawn, width: int) -> Strip:
        text = line.text
        style = _FOUND if line.finding else _BAD if _ERROR.search(text) else _PLAIN
        if line.marked:
            style += _MARKED
        if line.chosen:
            style += _CURSOR
            text = text + " " * max(0, width - 1 - cell_len(text))
        sign = Segment("▲" if line.finding else " ", _FOUND)
        if cell_len(text) + 1 > self._widest:
            self._widest = min(cell_len(text) + 1, 20_000)
        if not line.needle:
            return Strip([sign, Segment(text, style)])
        parts = re.split(f"({re.escape(line.needle)})", text, flags=re.IGNORECASE)
        pieces = [Segment(part, style + _MATCH if n % 2 else style) for n, part in enumerate(parts) if part]
        return Strip([sign, *pieces])

    def _restart(self) -> None:
        self._widest, self.cursor, self.mark = 1, 0, None

    def _shift(self, rows: int) -> None:
        """Rows were put before (positive) or dropped from (negative) the front."""
        self.cursor = max(0, self.cursor + rows)
        if self.mark is not None:
            self.mark = max(0, self.mark + rows)

    def _settle(self) -> None:
        """Size, scroll position and picture after any change."""
        count = self.row_count
        width = self._width if self.wrap else max(self._widest, self._width)
        if self.virtual_size != (width, count):
            self.virtual_size = Size(width, count)
            self.vertical_scrollbar.window_virtual_size = count
        if self.follow:
            self.cursor = max(0, count - 1)
        height, top = max(1, self.size.height), int(self.scroll_offset.y)
        if self.follow or self.cursor < top or self.cursor >= top + height:
            target = self.cursor - height + 1 if self.follow or self.cursor > top else self.cursor
            self.scroll_to(y=max(0, target), animate=False, immediate=True, force=True)
        self._redraw()

    def on_resize(self) -> None:
        self._settle()
