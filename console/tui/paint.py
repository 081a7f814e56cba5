"""Rich text from untrusted strings: sanitised here once more, and never read as markup."""

from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.text import Text
from textual.color import Color
from textual.filter import LineFilter

from console.core.text import clean
from console.tui.signs import Sign
from console.tui.words import Words


def plain(text: object) -> str:
    """One line of safe text: line breaks and tabs become blanks."""
    safe = clean(str(text))
    return safe.replace("\n", " ").replace("\t", " ") if "\n" in safe or "\t" in safe else safe


def say(*parts: str | tuple[str, str] | Text) -> Text:
    """Parts put together: plain strings, (string, style) pairs, or texts. Line breaks in strings are kept."""
    text = Text(no_wrap=False, end="")
    for part in parts:
        if isinstance(part, Text):
            text.append_text(part)
        elif isinstance(part, tuple):
            text.append(clean(part[0]), part[1])
        else:
            text.append(clean(part))
    return text


def chip(sign: Sign, state: str, words: Words) -> Text:
    """Glyph and word of a state in its colour."""
    return Text(f"{sign.glyph} {plain(words.state(state))}", sign.style)


def lines(rows: Iterable[Text]) -> Text:
    return Text("\n").join(rows)


def fit(text: str, width: int) -> str:
    """Exactly `width` cells: padded, or cut with an ellipsis."""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, max(0, width - 1)) + "…" if width > 0 else ""


def fit_right(text: str, width: int) -> str:
    """As `fit`, with the padding to the left."""
    return " " * (width - cell_len(text)) + cut(text, width)


def cut(text: str, width: int) -> str:
    """At most `width` cells."""
    return text if cell_len(text) <= width else fit(text, width)


def columns(cells: Iterable[Text], widths: Iterable[int], gap: int = 2) -> Text:
    """Cells of one row at fixed widths, cut where they don't fit."""
    row = Text(end="")
    for cell, width in zip(cells, widths, strict=True):
        piece = cell.copy()
        piece.truncate(width, overflow="ellipsis", pad=True)
        row.append_text(piece)
        row.append(" " * gap)
    row.rstrip()
    return row


class OnlyPrintable(LineFilter):
    """The last net before the terminal: nothing but printable characters leaves any widget."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.text.isprintable()
            else Segment(plain(segment.text), segment.style, segment.control)
            for segment in segments
        ]
