"""Printed values -> numbers: quoted or plain, NaN and infinity, `1h 2m 3s`."""

import math
import re

_DURATION = re.compile(r"(?:(\d{1,9})d )?(?:(\d{1,9})h )?(?:(\d{1,9})m )?(\d{1,9})s$")
_CLOCK = re.compile(r"(?:(\d{1,9}) days?, )?(\d{1,9}):(\d\d):(\d\d)$")
_WRAPPED = re.compile(r"[\w.]+\(\s*([^,)]+)[^)]*\)$")


def number(text: str | None) -> float | None:
    """The number in `text`, also inside `tensor(...)` or `np.float64(...)`; None if it is none."""
    if text is None:
        return None
    wrapped = _WRAPPED.match(text)
    try:
        return float(wrapped[1] if wrapped else text)
    except ValueError:
        return None


def whole(text: str | None) -> int | None:
    """`text` as a whole number; None if it is none or not finite."""
    value = number(text)
    return int(value) if value is not None and math.isfinite(value) else None


def duration(text: str | None) -> float | None:
    """Seconds of `12s`, `1m 3s`, `2h 5m 59s`, `4d 20h 25m 7s` or `1:02:03`."""
    if text is None:
        return None
    match = _DURATION.match(text) or _CLOCK.match(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def half_unit(value: float, *, quoted: bool) -> float:
    """Half of the last printed digit: 6 decimals when plain, 4 significant digits (`%.4g`) when quoted."""
    if not quoted:
        return 0.5e-6
    if value <= 0 or not math.isfinite(value):
        return 0.0
    return float(0.5 * 10.0 ** (math.floor(math.log10(value)) - 3))
