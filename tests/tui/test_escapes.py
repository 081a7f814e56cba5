"""Nothing that came from a node acts on the operator's terminal: checked on the bytes the terminal gets."""

import os
import re
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from support.terminal import Terminal
from textual.color import Color

from console.tui.paint import OnlyPrintable, plain, say

SEQUENCE = re.compile(
    rb"\x1b\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\|\x1b[^\[\]P]"
)
KEYS = [bytes([key]) for key in b"\x1b2\r\x1b3]wb\x1bovv]b\x1bvlappp45\r\x1b61d\x1bR\x1bs\x1b?\x1bLq"]


def run_app(kind: str, folder: Path) -> bytes:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "TZ": "UTC",
    }
    terminal = Terminal(
        [sys.executable, str(Path(__file__).with_name("under_pty.py")), kind, str(folder)], environment
    )
    terminal.read_until(lambda seen: b"restore now" in seen, "the first screen")
    for key in KEYS:
        terminal.press(key)
    terminal.press(b"y")
    terminal.read_until(lambda seen: b"left with" in seen, "the end of the app")
    assert terminal.close() == 0
    return terminal.seen


def kinds_of(seen: bytes) -> set[bytes]:
    """The sequences with their numbers taken out; colours are all one kind."""
    return {re.sub(rb"[0-9;:]+", b"#", sequence) for sequence in SEQUENCE.findall(seen)}


def test_no_byte_of_a_hostile_node_reaches_the_terminal_as_a_command(tmp_path: Path) -> None:
    harmless = run_app("harmless", tmp_path / "harmless")
    hostile = run_app("hostile", tmp_path / "hostile")
    assert b"left with 2" in hostile
    assert b"overwritten" in hostile, "the hostile text itself was on screen"
    assert kinds_of(hostile) <= kinds_of(harmless), "only the driver's own kinds of sequences"
    rest = SEQUENCE.sub(b"", hostile).decode("utf-8")
    assert not re.findall("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", rest)
    assert not re.findall("[\u202a-\u202e\u2066-\u2069\u200b-\u200f]", rest)
    for attack in (b"aG9zdGlsZQ", b"\x1b]0;", b"\x1b[6n", b"\x1bc", b";77m", b"\x1b[2J\x1b[31"):
        assert attack not in hostile


@given(st.text())
def test_text_for_the_screen_is_printable(text: str) -> None:
    unsafe = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
    assert not unsafe.search(plain(text))
    assert not unsafe.search(say(text, (text, "bold")).plain)
    shown = OnlyPrintable().apply([Segment(text)], Color(0, 0, 0))
    assert not unsafe.search("".join(segment.text for segment in shown))
