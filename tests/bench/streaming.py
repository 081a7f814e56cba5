"""What the benchmarks of watching share: a log that grows at a rate, and a log view that notes its paints.

As a program it is the writer or the reader of such a log, in a process of its own so that its clock does not
wait for the console's: `streaming.py write PATH LINES_PER_SECOND SECONDS`, `streaming.py arrivals PATH`.
"""

import asyncio
import os
import struct
import sys
import time
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from rich.console import RenderableType
from textual._compositor import CompositorUpdate
from textual.app import App, ComposeResult
from textual.screen import Screen

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from console.tui.widgets.log_view import LogView  # noqa: E402

_ARRIVAL = struct.Struct("<dQ")
_FILLER = "node-a:81:97 [0] NCCL INFO Channel 07/24 : 0 1 2 3 4 5 6 7"

Arrival = tuple[float, int]
"""When (monotonic seconds, one clock for all processes) everything before this offset was there."""


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def write_lines(path: Path, lines_per_second: float, seconds: float) -> None:
    """Append lines that begin with the time they were written at, one write a line, on schedule."""
    log = os.open(path, os.O_WRONLY | os.O_APPEND)
    began = time.monotonic()
    for number in range(int(lines_per_second * seconds)):
        while (wait := began + number / lines_per_second - time.monotonic()) > 0:
            time.sleep(wait)
        os.write(log, f"{time.monotonic():.6f} {number} {_FILLER}\n".encode())
    os.close(log)


async def written(*logs: Path, lines_per_second: float, seconds: float) -> None:
    """Write these logs at this rate each; returns when all are written."""
    writers = [
        await asyncio.create_subprocess_exec(
            sys.executable, __file__, "write", str(log), str(lines_per_second), str(seconds)
        )
        for log in logs
    ]
    for writer in writers:
        if await writer.wait():
            raise SystemExit("the writer of a log failed")


def note_arrivals(path: Path) -> None:
    """Note when which byte of standard input came."""
    seen = 0
    with path.open("wb", buffering=0) as notes:
        while data := os.read(0, 1 << 16):
            seen += len(data)
            notes.write(_ARRIVAL.pack(time.monotonic(), seen))


def arrivals_in(path: Path) -> list[Arrival]:
    """What `note_arrivals` noted so far."""
    notes = path.read_bytes() if path.exists() else b""
    return list(_ARRIVAL.iter_unpack(notes[: len(notes) // _ARRIVAL.size * _ARRIVAL.size]))


def latencies(log: bytes, first: int, arrivals: Sequence[Arrival]) -> list[float]:
    """Seconds from writing to arrival of every line from offset `first` on that arrived whole."""
    ends = [end for _, end in arrivals]
    found, at = [], first
    for line in log[first:].splitlines(keepends=True):
        at += len(line)
        place = bisect_left(ends, at)
        if place < len(ends):
            found.append(arrivals[place][0] - float(line.split(b" ", 1)[0]))
    return found


class NotingView(LogView):
    """A log view that knows up to which offset it drew last."""

    drawn_end = 0

    def _layout(self) -> list[tuple[int, str | None]]:
        rows = super()._layout()
        if rows and self.index is not None:
            self.drawn_end = self._span(rows[-1][0])[1]
        return rows


class ViewApp(App[None]):
    """A log view alone on a screen; whoever appends to its log calls `view.grew`, as the runs screen does.

    `painted`: when which offset was on screen; `fresh` is set by every paint. The bytes for the terminal are
    made, as without a terminal they would not be, and thrown away.
    """

    CSS = "LogView { height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self.painted: list[Arrival] = []
        self.fresh = asyncio.Event()

    def compose(self) -> ComposeResult:
        yield NotingView()

    @property
    def view(self) -> NotingView:
        return self.query_one(NotingView)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if isinstance(renderable, CompositorUpdate):
            renderable.render_segments(self.console)
        super()._display(screen, renderable)
        views = self.query(NotingView)
        if renderable is not None and views:
            self.painted.append((time.monotonic(), views.first().drawn_end))
            self.fresh.set()

    def shown(self) -> str:
        """The text that the screen holds."""
        return "\n".join(strip.text for strip in self.screen._compositor.render_strips(self.size))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write_lines(Path(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
    else:
        note_arrivals(Path(sys.argv[2]))
