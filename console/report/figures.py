"""Numbers as the report writes them. A missing number is an en dash, never 0."""

from math import isfinite

MISSING = "–"

GIB, MIB = 1 << 30, 1 << 20


def number(value: float | None) -> str:
    """Four significant digits, thousands separated."""
    if value is None or not isfinite(value):
        return MISSING
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def size(count: float | None) -> str:
    """Bytes as GiB (2^30), or MiB below 0.1 GiB; three digits."""
    if count is None:
        return MISSING
    if count < GIB / 10:
        return f"{count / MIB:.1f} MiB"
    return f"{count / GIB:.1f} GiB" if count >= 10 * GIB else f"{count / GIB:.2f} GiB"


def percent(share: float | None) -> str:
    """A fraction in percent, three significant digits at most."""
    if share is None or not isfinite(share):
        return MISSING
    return f"{share * 100:.1f} %" if share >= 0.01 else f"{share * 100:.2g} %"


def times(ratio: float | None) -> str:
    """A ratio, e.g. 1.82×."""
    return MISSING if ratio is None else f"{ratio:.2f}×"
