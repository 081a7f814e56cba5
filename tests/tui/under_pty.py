"""Run the whole app on the terminal it is given: `python under_pty.py hostile|harmless FOLDER`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from console.tui.app import LabApp
from tui.support import hostile_story, page, story


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    session = hostile_story(folder) if kind == "hostile" else story(folder)
    left = LabApp(session, return_command="lab open", one_page=page).run()
    print("left with", len(left.running) if left else None)


main()
