"""Draw the picture that the README shows: `python tests/tui/draw_readme.py`."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1]))

from console.tui.app import render_screenshot
from tui.support import story

PICTURE = Path(__file__).with_name("screens") / "window.svg"


async def draw_window(folder: Path) -> str:
    """The Window screen in the middle of an experiment."""
    return await render_screenshot(story(folder), "window", (100, 28))


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    PICTURE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        PICTURE.write_text(asyncio.run(draw_window(Path(scratch))))
