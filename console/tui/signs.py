"""A state as a glyph, a colour and a word, each enough by itself. All glyphs are one cell wide."""

from dataclasses import dataclass

GOOD, BUSY, WARN, BAD, DIM = "green", "cyan", "yellow", "red", "grey62"


@dataclass(frozen=True, slots=True)
class Sign:
    glyph: str
    style: str


_GOOD, _RUN = Sign("●", GOOD), Sign("▶", BUSY)
_CHECK, _CROSS, _NOTE = Sign("✓", GOOD), Sign("✗", f"bold {BAD}"), Sign("!", f"bold {WARN}")
_WAIT, _WARN, _LOST = Sign("·", DIM), Sign("○", WARN), Sign("✗", f"bold {BAD}")
UNKNOWN = Sign("?", WARN)

LINK = {"up": _GOOD, "connecting": _WARN, "down": _LOST}
STREAM = {"live": _GOOD, "waiting": _WAIT, "stalled": _WARN, "lost": _LOST, "ended": Sign("■", DIM)}
JOB = {
    "none": _WAIT,
    "absent": _WAIT,
    "starting": Sign("○", BUSY),
    "running": _RUN,
    "ended": Sign("■", DIM),
    "vanished": _LOST,
}
RUN = {
    "planned": _WAIT,
    "starting": Sign("○", BUSY),
    "running": _RUN,
    "done": _CHECK,
    "failed": _CROSS,
    "stopped": Sign("■", WARN),
    "timed out": _CROSS,
}
ITEM = {
    "waiting": _WAIT,
    "running": _RUN,
    "passed": _CHECK,
    "passed with a line closed": _NOTE,
    "failed": _CROSS,
    "failed (timebox)": _CROSS,
    "skipped": Sign("–", WARN),
}
STEP = {
    "passed": _CHECK,
    "failed": _CROSS,
    "noted": _NOTE,
    "skipped": Sign("–", WARN),
    "timed out": _CROSS,
}
SERVICE = {
    "unknown": UNKNOWN,
    "none": _WAIT,
    "serving": _GOOD,
    "draining": _WARN,
    "stopping": _WARN,
    "stopped": _WARN,
    "memory free": Sign("●", BUSY),
    "not released": _CROSS,
    "held by driver": _NOTE,
    "came back": _NOTE,
    "restoring": Sign("○", BUSY),
    "healthy": _CHECK,
    "not healthy": _CROSS,
    "refused": _CROSS,
}
FINDING = {"note": Sign("·", BUSY), "warning": Sign("▲", WARN), "failure": _CROSS}
LEVEL = {"info": Sign(" ", ""), "warning": Sign("!", WARN), "error": _CROSS}


def sign(table: dict[str, Sign], state: str) -> Sign:
    """The sign of a state; a question mark for one that the table does not know."""
    return table.get(state, UNKNOWN)
