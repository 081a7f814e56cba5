"""SIGTERM and a closed terminal end the screens as leaving them does."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes import end_processes_of
from support.terminal import Terminal

from console.core.record.events import ConsoleLeft
from console.journal import Journal

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "h200-pair"
ALTERNATE_SCREEN_LEFT = b"\x1b[?1049l"


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path: Path) -> Iterator[None]:
    """A console that leaves in order leaves its guards, for as long as the window lasts."""
    yield
    end_processes_of(tmp_path)


def lab(tmp_path: Path, *words: str) -> Terminal:
    """`lab …`, with its screens drawn."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "HOME": str(tmp_path),
    }
    terminal = Terminal([sys.executable, "-m", "console.cli.main", *words], environment)
    terminal.read_until(lambda seen: b"keys" in seen, "the screens")
    return terminal


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_looking_on_ends_quietly(tmp_path: Path, number: signal.Signals) -> None:
    terminal = lab(tmp_path, "replay", str(EXAMPLE))
    os.kill(terminal.pid, number)
    terminal.read_until(
        lambda seen: ALTERNATE_SCREEN_LEFT in seen and terminal.kept_as_typed(), "the terminal as it was"
    )
    assert terminal.kept_as_typed()
    assert terminal.close() == 0


def conducted(tmp_path: Path) -> Terminal:
    return lab(tmp_path, "open", "embedded", "--out", str(tmp_path / "experiment"))


def assert_left(tmp_path: Path) -> None:
    with Journal(tmp_path / "experiment", read_only=True) as journal:
        events = [event for _, event in journal.events()]
    assert isinstance(events[-1], ConsoleLeft)


def test_a_console_that_conducts_says_goodbye_on_sigterm(tmp_path: Path) -> None:
    terminal = conducted(tmp_path)
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.read_until(lambda seen: b"return with:" in seen, "the goodbye")
    assert terminal.kept_as_typed()
    assert terminal.close() == 130
    assert_left(tmp_path)


def test_a_console_whose_terminal_is_closed_leaves_in_order(tmp_path: Path) -> None:
    assert conducted(tmp_path).hang_up() == 130
    assert_left(tmp_path)
