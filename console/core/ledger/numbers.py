"""Checks and words for numbers."""

from math import isfinite

from console.core.errors import InputError

GIB = 2**30
GB = 10**9


def require_positive(**values: float) -> None:
    """Raise InputError unless every value is a finite number above zero."""
    for name, value in values.items():
        label = name.replace("_", " ")
        if not isfinite(value) or value <= 0:
            raise InputError(
                f"{label} {value}", why="must be a finite number above 0", next_step=f"{label} 1"
            )


def gib(count: float) -> str:
    """Bytes as GiB (2^30) with one decimal, as MiB below 0.1 GiB."""
    return f"{count / GIB:.1f} GiB" if count >= 0.1 * GIB else f"{count / 2**20:.1f} MiB"


def gb(count: float) -> str:
    """Bytes as GB (10^9), whole above 10."""
    return f"{count / GB:.0f} GB" if count >= 10 * GB else f"{count / GB:.1f} GB"
