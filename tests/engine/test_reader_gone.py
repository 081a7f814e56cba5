"""Output that nobody reads any more (`lab run | head -1`): the lab goes on to its end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.borrowed_lab import CHECKLIST, profile_with

from console.core.record.experiment import fold
from console.journal import read_journal

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "text"])
@pytest.mark.parametrize("messages", [subprocess.PIPE, subprocess.STDOUT], ids=["apart", "with it"])
def test_the_lab_goes_on_without_its_reader(tmp_path: Path, as_json: bool, messages: int) -> None:
    trainer = tmp_path / "trainer"
    trainer.write_text("#!/bin/sh\nexit 3\n")
    trainer.chmod(0o755)
    profile = profile_with({}, trainer=trainer).replace("run_failed: retry", "run_failed: stop")
    folder = tmp_path / f"unread-{os.getpid()}"
    wish = {"folder": str(folder), "profile": profile, "checklist": CHECKLIST, "as_json": as_json}
    told = tmp_path / "told.json"
    told.write_text(json.dumps(wish))
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "support" / "lab_process.py"), str(told)],
        stdout=subprocess.PIPE,
        stderr=messages,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        assert process.stdout is not None
        assert "attached" in process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read() if process.stderr else ""
        assert process.wait(60) == 1
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in errors
    assert fold(read_journal(folder)).outcome == "stopped"
