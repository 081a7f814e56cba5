"""How far two rows have to lie apart before a difference is claimed of them."""

from math import hypot

from console.core.record.figures import Row

ALIKE = 0.03
"""Differences below this share are not claimed from one run each."""


def resolution(one: Row, other: Row) -> float:
    """The smallest difference of two rows that is claimed, as a share."""
    return max(ALIKE, scatter(one, other) or 0.0)


def scatter(one: Row, other: Row) -> float | None:
    """Twice the standard error of the rows' ratio, by the scatter of their steps; None if unknown of one."""
    if one.step_error is None or other.step_error is None:
        return None
    return 2 * hypot(one.step_error, other.step_error)
