"""The smallest terminal that the screens fit on."""

from textual.geometry import Size

LEAST_CELLS, LEAST_ROWS = 40, 12
"""On a smaller terminal a screen would be broken: it says so instead."""

BLIND = frozenset({"leave", "quit", "close"})
"""Actions that can be asked for without seeing what they would change: they change nothing."""


def too_small(size: Size) -> bool:
    return size.width < LEAST_CELLS or size.height < LEAST_ROWS


def can_be_asked(action: str, size: Size) -> bool:
    """Whether a key may do that now: nobody decides what can't be seen."""
    return action in BLIND or not too_small(size)
