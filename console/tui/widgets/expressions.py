"""Regular expressions that a user types: refused or given up before they hold up the keys."""

import math
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

import regex

LIMIT_SECONDS = 0.05
"""Processor time; ordinary expressions take half a millisecond for a block of a log."""
MOST_REPEATS = 100_000
"""`regex` lays counted repeats out in memory: `((a{1000}){1000}){1000}` would fill it."""

Pattern: TypeAlias = regex.Pattern[str]


class BadExpression(ValueError):
    """Not a regular expression, or one that repeats too often."""


class TooSlow(Exception):
    """An expression took too long on a text."""

    def __init__(self, line: str) -> None:
        super().__init__(f"takes too long on {line[:80]!r}")
        self.line = line


class _OutOfTime(Exception):
    pass


def expression(text: str) -> Pattern:
    """Raises `BadExpression`."""
    counts = regex.findall(r"\{(?:\d*,)?(\d+),?\}", text)
    repeats = math.prod(max(1, int(count[:9])) for count in counts)
    if repeats > MOST_REPEATS:
        raise BadExpression(f"it repeats more than {MOST_REPEATS} times")
    try:
        return regex.compile(text)
    except regex.error as error:
        raise BadExpression(str(error)) from error


def matching(pattern: Pattern, lines: Sequence[str]) -> list[int]:
    """Numbers of the lines that hold a match. Raises `TooSlow`. To be called in the main thread."""
    found, number = [], 0
    try:
        with _processor_limit(LIMIT_SECONDS):
            for number, line in enumerate(lines):
                if pattern.search(line):
                    found.append(number)
    except _OutOfTime:
        raise TooSlow(lines[number]) from None
    return found


@contextmanager
def _processor_limit(seconds: float) -> Iterator[None]:
    """A timer over many searches: `regex` heeds signals, and its own `timeout` costs each search twice."""
    signal.signal(signal.SIGVTALRM, _give_up)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, _let_go)


def _give_up(number: int, frame: FrameType | None) -> None:
    raise _OutOfTime


def _let_go(number: int, frame: FrameType | None) -> None:
    """A signal that was already on its way when the work was done."""
