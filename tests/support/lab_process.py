"""A console without a screen in a process of its own: `lab_process.py FILE`, which says what lab it runs."""

import asyncio
import json
import sys
from pathlib import Path

from console.cli.conducting import Wish, conduct
from console.core.errors import LabError
from console.engine.opening import LabFiles

told = json.loads(Path(sys.argv[1]).read_text())
files = LabFiles(told["profile"], "test.yaml", told["checklist"])
wish = Wish(
    files=files, folder=Path(told["folder"]), command="lab run test", as_json=told.get("as_json", False)
)
try:
    sys.exit(asyncio.run(conduct(wish)))
except LabError as error:
    print(error.render(), file=sys.stderr)
    sys.exit(error.exit_code)
