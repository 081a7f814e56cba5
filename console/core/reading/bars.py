"""Progress bars of tqdm and datasets: what is being counted, and how far it got."""

import re

BAR_MARKS = (b"%|", b" examples [")

_LABEL = r"([A-Za-z][\w .-]{0,60}?)(?: \([^)]{0,60}\))?"
_BAR = re.compile(_LABEL + r":?\s{1,8}\d{1,3}%\|[^|]{0,300}\|\s{0,8}(\d{1,15})/(\d{1,15}) \[")
_COUNT = re.compile(_LABEL + r": (\d{1,15}) examples \[")


_BEFORE, _BEHIND = 160, 400
"""Characters of a bar on either side of its mark."""


def bar(text: str) -> tuple[str, int, int | None] | None:
    """Label, done, total (None if the bar doesn't know it) of the last bar in `text`; None if it is none."""
    if match := _BAR.search(_around(text, "%|")):
        return match[1], int(match[2]), int(match[3])
    if match := _COUNT.search(_around(text, " examples [")):
        return match[1], int(match[2]), None
    return None


def _around(text: str, mark: str) -> str:
    """The neighbourhood of the last `mark`, so that a damaged line is not searched from every letter."""
    place = text.rfind(mark)
    return text[max(0, place - _BEFORE) : place + _BEHIND] if place >= 0 else ""
