"""Numbers, times and ages as a person reads them. A missing value is never shown as 0."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import takewhile

GIB = float(1 << 30)
STALE_SECONDS = 10.0
"""A figure older than this is never shown without its age."""
MISSING = "–"


def span(seconds: float) -> str:
    """A length of time in at most two units: `3 s`, `4m 05s`, `2h 11m`, `3d 4h`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"


def clock(seconds: float) -> str:
    """Minutes and seconds of a timebox: `14:59`; more than an hour as `1:02:03`."""
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60:02d}:{rest % 60:02d}"


def since(then: datetime, now: datetime) -> float:
    """Seconds from `then` to `now`, never negative: clocks of two computers may differ."""
    return max(0.0, (now - then) / timedelta(seconds=1))


def stale(then: datetime, now: datetime) -> str:
    """The age of a figure, or an empty text while it is fresh."""
    age = since(then, now)
    return span(age) if age > STALE_SECONDS else ""


def gib(size: float | None, digits: int = 1) -> str:
    """Bytes as GiB, without the unit."""
    return MISSING if size is None else f"{size / GIB:.{digits}f}"


def number(value: float | None, digits: int = 4) -> str:
    """A value with `digits` significant digits; NaN and infinities by name."""
    if value is None:
        return MISSING
    if not math.isfinite(value):
        return str(value)
    if value and (abs(value) >= 1e6 or abs(value) < 1e-4):
        return f"{value:.{max(digits - 1, 0)}e}"
    places = max(0, digits - 1 - (math.floor(math.log10(abs(value))) if value else 0))
    return f"{value:.{min(places, digits)}f}"


def percent(fraction: float | None) -> str:
    return MISSING if fraction is None else f"{fraction * 100:.1f}%"


def count(value: float) -> str:
    """A large count in words of the field: `7.62 B`, `40.4 M`."""
    for limit, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.0f}"


def time_of_day(at: datetime) -> str:
    """Hours and minutes in the zone of this computer."""
    return at.astimezone().strftime("%H:%M")


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Names without what they all begin with, up to its last separator: spark-a, spark-b -> a, b."""
    least, greatest = (min(names), max(names)) if len(names) > 1 else ("", "")
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(least, greatest, strict=False))
    common = "".join(letter for letter, _ in pairs)
    cut = max(common.rfind(mark) for mark in "-._") + 1
    return {name: name[cut:] or name for name in names}


def bar(fraction: float, width: int) -> tuple[str, str]:
    """The full and the empty part of a bar of `width` cells."""
    full = round(min(1.0, max(0.0, fraction)) * width)
    return "█" * full, "░" * (width - full)
