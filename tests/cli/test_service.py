"""`lab service` where no experiment holds the service."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from console.cli.files import read_lab, shipped
from console.cli.main import app
from console.engine.opening import open_recorder
from console.journal.lock import ExperimentLock

SERVICE = """service:
  kind: command
  name: stand-in
  start: [sleep, "600"]
  pid_file: "~/stand-in.pid"
  log_file: "~/stand-in.log"
  base_url: http://127.0.0.1:9
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Two embedded nodes with a service that does not run."""
    text = (shipped("profiles") / "embedded.yaml").read_text(encoding="utf-8")
    held, count = re.subn(r"service:\n  kind: none\n", SERVICE, text)
    assert count == 1
    path = tmp_path / "held.yaml"
    path.write_text(held, encoding="utf-8")
    return path


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where experiments are kept when none is named."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


def test_restore_without_a_stop_says_so_and_shows_what_is(profile: Path, kept: Path) -> None:
    result = CliRunner().invoke(app, ["service", "restore", str(profile)])
    assert result.exit_code == 3, result.output
    assert "nothing to restore" in result.stdout
    assert "node-a: not healthy" in result.stdout
    assert not kept.exists()


def test_status_leaves_nothing_on_this_computer(profile: Path, kept: Path) -> None:
    result = CliRunner().invoke(app, ["service", "status", str(profile)])
    assert result.exit_code == 3, result.output
    assert "node-a: not healthy" in result.stdout
    assert "node-a: guard not running" in result.stdout
    assert not kept.exists()


def test_status_beside_an_experiment_adds_nothing_to_it(profile: Path, tmp_path: Path) -> None:
    folder = tmp_path / "experiment"
    recorder = open_recorder(folder, read_lab(str(profile)))
    with ExperimentLock(folder):  # of the console that works on it
        result = CliRunner().invoke(app, ["service", "status", str(profile), "--out", str(folder)])
    assert result.exit_code == 3, result.output
    assert "node-a: not healthy" in result.stdout
    assert len(list(recorder.journal.events())) == 1
    recorder.journal.close()


@pytest.mark.parametrize("command", ["restore", "status"])
def test_a_mistyped_folder_is_refused_and_not_made(profile: Path, tmp_path: Path, command: str) -> None:
    nowhere = tmp_path / "nowhere"
    result = CliRunner().invoke(app, ["service", command, str(profile), "--out", str(nowhere)])
    assert result.exit_code == 2, result.output
    assert f"no experiment in {nowhere}" in result.stderr
    assert not nowhere.exists()
