"""Progress bars of tqdm and datasets: what is being counted, and how far it got."""

import re

BAR_MARKS = (b"%|", b" examples [")

_LABEL = r"([A-Za-z][\w .-]{0,60}?)(?: \([^)]{0,60}\))?"
_BAR = re.compile(_LABEL + r":?\s{1,8}\d{1,3}%\|[^|]{0,300}\|\s{0,8}(\d{1,15})/(\d{1,15}) \[")
_COUNT = re.compile(_LABEL + r": (\d{1,15}) examples \[")


def bar(text: str) -> tuple[str, int, int | None] | None:
    """Label, done, total (None if the bar doesn't know it); None if `text` is no bar."""
    if match := _BAR.search(text):
        return match[1], int(match[2]), int(match[3])
    if match := _COUNT.search(text):
        return match[1], int(match[2]), None
    return None
