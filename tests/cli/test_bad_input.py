"""What a user types wrong: one message with a remedy, the right exit code, and nothing left behind."""

import errno
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from console.cli.files import read_lab
from console.cli.kept import folder_to_open
from console.cli.main import app
from console.cli.options import chosen, parse_window
from console.core.errors import InputError
from console.engine.opening import open_recorder

FILE = "experiment.sqlite3"


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "lab-console" / "experiments"


def lab(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize(
    ("text", "hours"), [("4h", 4), ("90m", 1.5), ("4h30m", 4.5), ("4h30", 4.5), ("1.5h", 1.5)]
)
def test_window_lengths(text: str, hours: float) -> None:
    assert parse_window(text) == hours


@pytest.mark.parametrize("text", ["4", "0h", "0m", "x", "h", "m", "nanh", "-1h", "1e3h", "73h", "4h m"])
def test_window_that_is_none(text: str) -> None:
    with pytest.raises(InputError, match="--window"):
        parse_window(text)


def test_only_names_each_configuration_once() -> None:
    assert chosen("E0, E1,E0") == ("E0", "E1")
    assert chosen("") == ()
    with pytest.raises(InputError, match="names no configuration"):
        chosen(" ,")


def test_unknown_configuration_leaves_no_experiment(tmp_path: Path) -> None:
    result = lab("run", "embedded", "--only", "E9", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "choose among E0" in result.stderr
    assert not (tmp_path / "out" / FILE).exists()


def test_unreadable_experiment_does_not_bar_a_new_one(own_data_folder: Path) -> None:
    for name, content in (("embedded-20260101-000000", b""), ("embedded-20260102-000000", b"no database")):
        (own_data_folder / name).mkdir(parents=True)
        (own_data_folder / name / FILE).write_bytes(content)
    assert not folder_to_open(read_lab("embedded"), None).exists()


def test_other_configurations_than_begun_with(tmp_path: Path) -> None:
    files = read_lab("embedded")
    open_recorder(tmp_path, files, only=("E0", "E1")).journal.close()
    open_recorder(tmp_path, files, only=("E1", "E0")).journal.close()
    open_recorder(tmp_path, files).journal.close()
    with pytest.raises(InputError, match="begun with E0, E1, not with R1"):
        open_recorder(tmp_path, files, only=("R1",))


@pytest.mark.parametrize("command", ["status", "stop", "restore"])
def test_service_commands_tell_a_file_for_a_folder(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = lab("service", command, "spark-pair", "--out", tmp_path / "file")
    assert (result.exit_code, "next:" in result.stderr) == (2, True)


def test_profile_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_bytes(b"name: \xff\xfe\n")
    result = lab("plan", tmp_path / "lab.yaml")
    assert result.exit_code == 2
    assert "UTF-8" in result.stderr


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 3), (errno.EACCES, 2)])
def test_full_disk_is_no_bad_input(number: int, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), "/somewhere")

    monkeypatch.setattr(Path, "mkdir", fail)
    result = lab("run", "embedded", "--out", "anywhere")
    assert (result.exit_code, os.strerror(number) in result.stderr) == (code, True)


def test_a_profile_that_is_not_filled_in_runs_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    result = CliRunner().invoke(app, ["run", "spark-pair", "--out", str(folder)])
    assert result.exit_code == 2, result.output
    assert "spark-pair.yaml is not filled in: line " in result.stderr
    assert not folder.exists()
