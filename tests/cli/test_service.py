"""`lab service`: which experiment it means, and that status always answers."""

import asyncio
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.borrowed_lab import profile_with, quick_standins, serving
from support.docker_engine import Standin
from support.window import healthy
from typer.testing import CliRunner

from console.cli import service
from console.cli.files import read_lab, shipped
from console.cli.kept import experiments_folder, folder_to_open, folder_to_stop_in
from console.cli.main import app
from console.core.errors import InputError
from console.core.record.events import ServiceChanged
from console.engine.crew import assembled
from console.engine.opening import open_recorder
from console.journal.journal import FILE
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


WINDOW = "window: {hours: 4}"


@pytest.mark.parametrize(
    "window",
    ["window: {end: 2026-01-01T00:00:00+00:00}", "window: {start: 2126-01-01T00:00:00+00:00}"],
    ids=["over", "not begun"],
)
def test_status_answers_outside_the_window(profile: Path, kept: Path, window: str) -> None:
    text = profile.read_text(encoding="utf-8")
    assert WINDOW in text
    profile.write_text(text.replace(WINDOW, window), encoding="utf-8")
    result = CliRunner().invoke(app, ["service", "status", str(profile)])
    assert result.exit_code == 3, result.output
    assert "node-a: not healthy" in result.stdout


def begun(profile: Path, name: str, *states: str, hours_ago: float = 0) -> Path:
    """A kept experiment in which the service went through these states."""
    folder, at = experiments_folder() / name, datetime.now(UTC) - timedelta(hours=hours_ago)
    with open_recorder(folder, read_lab(str(profile)), now=lambda: at) as recorder:
        for state in states:
            recorder.record(ServiceChanged.model_validate({"at": recorder.now(), "state": state}))
    return folder


STOPPED = ("stopping", "stopped", "memory free")


@pytest.mark.usefixtures("kept")
def test_a_lab_is_not_run_in_an_experiment_that_only_stopped_the_service(profile: Path) -> None:
    files = read_lab(str(profile))
    lab = begun(profile, "embedded-20260101-000000")
    begun(profile, "embedded-service-20260102-000000", *STOPPED, "healthy")
    assert folder_to_open(files, None) == lab


@pytest.mark.usefixtures("kept")
def test_a_lab_is_refused_while_the_service_is_stopped_by_itself(profile: Path) -> None:
    files = read_lab(str(profile))
    folder = begun(profile, "embedded-service-20260102-000000", *STOPPED)
    result = CliRunner().invoke(app, ["run", str(profile)])
    assert result.exit_code == 2, result.output
    assert f"service restore {profile}" in result.stderr
    assert f"--out {folder}" in result.stderr
    assert folder_to_open(files, folder) == folder
    assert folder_to_stop_in(files) == folder


@pytest.mark.usefixtures("kept")
def test_a_stop_begins_anew_after_a_restore(profile: Path) -> None:
    settled = begun(profile, "embedded-service-20260102-000000", *STOPPED, "healthy")
    fresh = folder_to_stop_in(read_lab(str(profile)))
    assert fresh != settled
    assert not fresh.exists()


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("name", "hours_ago"), [("embedded-20260103-000000", 0), ("embedded-service-20260103-000000", 5)]
)
def test_a_stop_waits_for_the_way_back_of_another(profile: Path, name: str, hours_ago: float) -> None:
    folder = begun(profile, name, *STOPPED, hours_ago=hours_ago)
    result = CliRunner().invoke(app, ["service", "stop", str(profile)])
    assert result.exit_code == 2, result.output
    assert str(folder) in result.stderr
    assert f"service restore {profile}" in result.stderr


@pytest.mark.usefixtures("kept")
def test_restore_asks_which_of_two(profile: Path) -> None:
    folders = [begun(profile, f"embedded-{name}", *STOPPED) for name in ("20260101-000000", "service")]
    result = CliRunner().invoke(app, ["service", "restore", str(profile)])
    assert result.exit_code == 2, result.output
    assert all(str(folder) in result.stderr for folder in folders)
    assert "--out" in result.stderr


@pytest.mark.usefixtures("kept")
def test_a_profile_that_was_edited_since_does_not_hide_the_experiment(profile: Path) -> None:
    folder = begun(profile, "embedded-20260101-000000", *STOPPED)
    text = profile.read_text(encoding="utf-8")
    profile.write_text(text.replace(WINDOW, "window: {hours: 5}"), encoding="utf-8")
    result = CliRunner().invoke(app, ["service", "status", str(profile)])
    assert result.exit_code == 3, result.output
    assert f"experiment: {folder}\n" in result.stdout


@pytest.mark.usefixtures("kept")
def test_a_new_lab_is_refused_while_an_older_one_holds_the_service(profile: Path) -> None:
    folder = begun(profile, "embedded-20260101-000000", *STOPPED)
    text = profile.read_text(encoding="utf-8")
    profile.write_text(text.replace(WINDOW, "window: {hours: 5}"), encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(f"{folder} stopped the service")):
        folder_to_open(read_lab(str(profile)), None)


@pytest.mark.usefixtures("kept")
def test_an_experiment_that_cannot_be_read_may_hold_the_service(profile: Path) -> None:
    folder = begun(profile, "embedded-20260101-000000", *STOPPED)
    (folder / FILE).write_bytes(b"SQLite format 3\0" + b"damaged" * 100)
    result = CliRunner().invoke(app, ["service", "restore", str(profile)])
    assert result.exit_code == 2, result.output
    assert "it can't be told" in result.stderr
    assert str(folder) in result.stderr


def test_an_experiment_of_another_profile_is_refused(profile: Path, tmp_path: Path) -> None:
    folder = tmp_path / "experiment"
    open_recorder(folder, read_lab("embedded")).journal.close()
    profile.write_text(profile.read_text(encoding="utf-8").replace("name: embedded", "name: other", 1))
    result = CliRunner().invoke(app, ["service", "restore", str(profile), "--out", str(folder)])
    assert result.exit_code == 2, result.output
    assert "holds an experiment of embedded, not of other" in result.stderr


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


@pytest.fixture
def standins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Standin]]:
    yield from quick_standins(tmp_path, monkeypatch)


@pytest.mark.usefixtures("kept")
def test_restore_finds_the_experiment_and_names_it(tmp_path: Path, standins: dict[str, Standin]) -> None:
    path = tmp_path / "lent.yaml"
    path.write_text(profile_with(standins), encoding="utf-8")
    folder = begun(path, f"embedded-{os.getpid()}")
    asyncio.run(serving(standins, folder))
    stopped = CliRunner().invoke(app, ["service", "stop", str(path), "--out", str(folder)])
    assert stopped.exit_code == 0, stopped.output
    assert not any(healthy(standin) for standin in standins.values())
    restored = CliRunner().invoke(app, ["service", "restore", str(path)])
    assert restored.exit_code == 0, restored.output
    assert f"experiment: {folder}\n" in restored.stdout
    assert all(healthy(standin) for standin in standins.values())
    again = CliRunner().invoke(app, ["service", "restore", str(path)])
    assert again.exit_code == 0, again.output
    assert "nothing to restore: no kept experiment" in again.stdout


async def test_a_service_is_brought_back_after_the_window_too(
    tmp_path: Path, standins: dict[str, Standin]
) -> None:
    path, folder = tmp_path / "lent.yaml", tmp_path / f"lent-{os.getpid()}"
    path.write_text(profile_with(standins), encoding="utf-8")
    files, later = read_lab(str(path)), timedelta()

    def now() -> datetime:
        return datetime.now(UTC) + later

    with open_recorder(folder, files, now=now) as recorder:
        await serving(standins, folder)
        async with assembled(files.profile, folder, recorder=recorder) as crew:
            hands = service.Hands(recorder, crew)
            assert await service._stop(hands) == 0
            assert not any(healthy(standin) for standin in standins.values())
            later = timedelta(hours=5)
            assert await service._restore(hands) == 0
            assert all(healthy(standin) for standin in standins.values())
            assert not hands.lending.owed
