"""An error of the console's own, met while screens are open: told in words, its details in a file."""

import os
import re
import sys
from pathlib import Path

from support.terminal import Terminal

EXAMPLE = Path(__file__).parents[2] / "examples" / "h200-pair"
BROKEN = """
from console.cli.main import main
from console.tui.screens.window import WindowScreen

def draw(self, experiment, now):
    raise RuntimeError("drawn wrongly")

WindowScreen.draw = draw
main()
"""


def test_a_fault_on_a_screen_ends_in_one_message(tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    terminal = Terminal([sys.executable, "-c", BROKEN, "replay", str(EXAMPLE)], environment)
    terminal.read_until(lambda seen: b"report the file" in seen, "the message")
    assert terminal.close() == 3
    said = terminal.seen.decode("utf-8")
    assert "the console met an error of its own: RuntimeError: drawn wrongly" in said
    assert "Traceback" not in said
    details = re.search(r"details are in (\S+)", said)
    assert details
    assert "drawn wrongly" in Path(details[1]).read_text()
