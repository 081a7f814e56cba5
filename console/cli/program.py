"""This program itself: how it is called where the user stands, and whether it can train here."""

import os
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from console.core.errors import InputError
from console.core.plan.profile import Profile
from console.engine.crew import CONSOLE_PYTHON

TRAINING = ("ms-swift", "torch")
"""What the extra `node` brings."""


def program() -> str:
    """How to call `lab` again from here: `lab` where PATH finds this one, else its path as it was typed."""
    script = Path(sys.argv[0])
    found = shutil.which("lab")
    if found and script.exists() and script.samefile(found):
        return "lab"
    if script.name == "lab" and os.access(script, os.X_OK):
        return shlex.quote(str(script) if script.parent.name else f"./{script}")
    return f"{shlex.quote(sys.executable)} -m console.cli.main"


def require_training(profile: Profile) -> None:
    """See that nodes which train with the console's own interpreter can. Raises `InputError`."""
    if all(node.python != CONSOLE_PYTHON for node in profile.nodes):
        return
    missing = [name for name in TRAINING if not _installed(name)]
    if missing:
        install = f"{shlex.quote(sys.executable)} -m pip install 'lab-console[node]'"
        raise InputError(
            f"{profile.name} trains on this computer, and {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed here; install with: {install}"
        )


def _installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True
