"""Untrusted bytes to safe text: the one sanitiser between a node and everything else."""

from typing import NewType

SafeText = NewType("SafeText", str)
"""Text in which no character below 0x20 except newline and tab, nor 0x7f-0x9f, nor a bidi control is left."""


def clean(data: bytes | str) -> SafeText:
    """Return `data` without anything a terminal could act on.

    Bytes are decoded as UTF-8, undecodable ones shown as U+FFFD. ANSI sequences (CSI, OSC, DCS and the
    other string kinds, 7-bit and 8-bit, ended or not) are removed; other control characters are shown in
    caret notation; bidi and invisible format characters are removed.
    """
    raise NotImplementedError


def redact(text: str) -> tuple[str, int]:
    """Replace secrets (tokens, keys, passwords in URLs, PEM blocks) and say how many were replaced."""
    raise NotImplementedError
