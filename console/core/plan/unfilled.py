"""Places of a profile that a person has to fill in and has not."""

from collections.abc import Iterable

MARK = "FILL IN"


def unfilled(text: str, patterns: Iterable[str]) -> list[str]:
    """The marked lines of a profile's text with their numbers.

    A mark in a comment counts while the line is word for word one of `patterns`, the profiles that a lab
    begins with: whoever changes the value may leave the comment. A line of nothing but a comment is no place.
    """
    untouched = {line.strip() for pattern in patterns for line in pattern.splitlines()}
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        value, _, comment = line.strip().partition("#")
        if MARK in value or (value and MARK in comment and line.strip() in untouched):
            found.append(f"line {number}: {value.strip()}")
    return found
