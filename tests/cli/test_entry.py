"""Ctrl-C while `lab` is still being loaded."""

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SLOW = """
import time
print("loading", flush=True)
try:
    time.sleep(60)
except BaseException:
    print("swallowed", flush=True)
    time.sleep(60)
"""


def loading(tmp_path: Path, *before: str) -> "subprocess.Popen[str]":
    """`lab` as the installed script calls it, with a library that takes long to load."""
    (tmp_path / "typer.py").write_text(SLOW)
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["lab"].partition(":")
    process = subprocess.Popen(
        [*before, sys.executable, "-c", f"from {module} import {function}; {function}()"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "loading\n"
    return process


def test_it_ends_with_130_and_without_a_word(tmp_path: Path) -> None:
    process = loading(tmp_path)
    process.send_signal(signal.SIGINT)
    try:
        rest, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, rest, errors) == (130, "", "")


def test_one_that_the_caller_ignores_is_ignored(tmp_path: Path) -> None:
    process = loading(tmp_path, "sh", "-c", 'trap "" INT; exec "$@"', "sh")
    process.send_signal(signal.SIGINT)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
    finally:
        process.kill()
        process.communicate()
