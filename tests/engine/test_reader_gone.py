"""Output that nobody reads any more (`lab run | head -1`), or without room: the lab goes on to its end."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from support.borrowed_lab import CHECKLIST, profile_with

from console.core.record.folding import fold
from console.journal import read_journal

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / f"unread-{os.getpid()}"


def begun(folder: Path, *, stdout: IO[str] | int, stderr: int, as_json: bool) -> "subprocess.Popen[str]":
    """A lab in a process of its own that ends with its first run."""
    trainer = folder.with_name("trainer")
    trainer.write_text("#!/bin/sh\nexit 3\n")
    trainer.chmod(0o755)
    profile = profile_with({}, trainer=trainer).replace("run_failed: retry", "run_failed: stop")
    wish = {"folder": str(folder), "profile": profile, "checklist": CHECKLIST, "as_json": as_json}
    told = folder.with_name("told.json")
    told.write_text(json.dumps(wish))
    return subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "support" / "lab_process.py"), str(told)],
        stdout=stdout,
        stderr=stderr,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "text"])
@pytest.mark.parametrize("messages", [subprocess.PIPE, subprocess.STDOUT], ids=["apart", "with it"])
def test_the_lab_goes_on_without_its_reader(folder: Path, as_json: bool, messages: int) -> None:
    process = begun(folder, stdout=subprocess.PIPE, stderr=messages, as_json=as_json)
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


def test_the_lab_goes_on_where_its_output_has_no_room(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        process = begun(folder, stdout=full, stderr=subprocess.PIPE, as_json=False)
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert errors.count("No space left on device: standard output; the lab goes on") == 1
    assert fold(read_journal(folder)).outcome == "stopped"
