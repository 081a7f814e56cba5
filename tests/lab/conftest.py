"""One whole lab with real training, shared by all tests here: begun, killed in the middle, taken up again."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from lab_support import Told, lab, pids_of, steps_of, wait_for

from console.journal import read_journal

BEGIN_SECONDS = 600
END_SECONDS = 600


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """`lab demo --headless --only E0,E1`, killed with -9 in the middle of E1 and started once more."""
    pytest.importorskip("swift", reason="the 'node' extra is not installed")
    root = tmp_path_factory.mktemp("lab")
    folder = root / "whole-lab"
    command = lab("demo", "--headless", "--out", str(folder), "--only", "E0,E1")
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "LANG": "C.UTF-8"}
    with (
        (root / "first.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=env) as first,
    ):
        try:
            wait_for(
                lambda: len(steps_of(folder, "E1-1")) >= 4 or first.poll() is not None,
                BEGIN_SECONDS,
                "four steps of E1",
            )
            assert first.poll() is None, (root / "first.log").read_text()[-3000:]
        finally:
            first.send_signal(signal.SIGKILL)
            first.wait()
    shown = read_journal(folder)
    alive = pids_of(folder, "E1-1")
    again = subprocess.run(command, capture_output=True, text=True, env=env, timeout=END_SECONDS, check=False)
    yield Told(folder, again.returncode, again.stdout + again.stderr, shown, alive)
    for run in ("E0-1", "E1-1", "smoke-ordinary-1", "smoke-megatron-1"):
        for pid in pids_of(folder, run):
            os.kill(pid, signal.SIGKILL)
