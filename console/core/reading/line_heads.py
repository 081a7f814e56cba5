"""What stands in front of a log line: time, rank, process. Without it the same text is the same."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_DATE = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_HEADS = (
    rf"\[?{_DATE}\]?(?: - |[:,]? +|$)",
    r"\[\d\d:\d\d:\d\d(?:\.\d+)?\] *",
    r"\[?[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +(?:\d+ )?",
    r"\[(?:rank|default|local_rank)? ?\d{1,5}\]:? *",
    r"[Rr]ank \d{1,5}(?:: |\| ?)",
    r"\S{1,64}:\d+:\d+ \[\d+\] (?=NCCL )",
)
_HEAD = re.compile(f"(?:{'|'.join(_HEADS)})+")
_HEAD_BEHIND_A_BAR = re.compile(r"(?:\[(?:rank|default)\d{1,9}\]:)?\[?[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ ")
_STAMP = re.compile(_DATE)
_RUN_STAMP = " time of running main: "
_STEP = re.compile(
    r"""['"](?:iteration|global_step(?:/max_steps)?)['"]: ?['"]?(\d{1,12})"""
    r"|^ *iteration +(\d{1,12})/ *\d+ \|"
)


@dataclass(frozen=True, slots=True)
class Head:
    """A line taken apart. `stamp` is in seconds since 1970, a time without zone read as UTC."""

    body: str
    step: int | None
    stamp: float | None


def head_of(text: str) -> Head:
    """Take a line apart. Only times with a date count as stamps; others merely stand in front."""
    found = _HEAD.match(text)
    end = found.end() if found else 0
    step = _STEP.search(text) if "iteration" in text or "global_step" in text else None
    stamp = None
    if end or _RUN_STAMP in text:
        stamp = _seconds(text[:end] or text.partition(_RUN_STAMP)[2])
    return Head(text[end:], int(step[1] or step[2]) if step else None, stamp)


def without_bar(text: str, end: int) -> str:
    """`text` from the log head on that a progress bar stands in front of, if one does before `end`.

    A bar has no line end, so whatever is logged next stands on its line.
    """
    bar = text.find("%|", 0, end)
    head = _HEAD_BEHIND_A_BAR.search(text, bar, end) if bar >= 0 else None
    return text[head.start() :] if head else text


def _seconds(text: str) -> float | None:
    found = _STAMP.search(text)
    if found is None:
        return None
    try:
        at = datetime.fromisoformat(found[0].replace(",", "."))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
