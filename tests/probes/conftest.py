"""Probes as a node runs them: packed into one text, over standard input, outside the checkout."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from console.nodes.probes import probe_source

Ask = Callable[..., dict[str, Any]]


def ask_locally(
    name: str,
    args: Mapping[str, Any] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    interpreter: str = sys.executable,
    timeout: float = 120,
) -> dict[str, Any]:
    """The answer of a probe run by a plain interpreter; fails unless it is exactly one JSON document."""
    done = subprocess.run(
        [interpreter, "-", json.dumps(dict(args or {}))],
        input=probe_source(name).encode(),
        capture_output=True,
        cwd="/",
        env={**os.environ, **(env or {})},
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 1, done.stdout
    answer = json.loads(lines[0])
    assert isinstance(answer, dict)
    return answer


@pytest.fixture
def ask() -> Ask:
    return ask_locally


@pytest.fixture
def programs(tmp_path: Path) -> Callable[[str, str], dict[str, str]]:
    """`programs("nvidia-smi", script)`: a program of that name, first on the PATH that is returned."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(name: str, script: str) -> dict[str, str]:
        place = folder / name
        place.write_text("#!/bin/sh\n" + script)
        place.chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    return make
