"""The console's own command: named as it can be typed again, refused where it could not train."""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from typer.testing import CliRunner

from console.cli import program as own
from console.cli.main import app

ROOT = Path(__file__).parents[2]


def script(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "lab"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_name_where_path_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(script(tmp_path))])
    assert own.program() == "lab"


@pytest.mark.parametrize(("typed", "told"), [(".venv/bin/lab", ".venv/bin/lab"), ("lab", "./lab")])
def test_the_path_as_typed_where_path_finds_none(
    typed: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    script(Path(typed).parent)
    monkeypatch.setattr(sys, "argv", [typed])
    assert own.program() == told


def test_another_lab_on_the_path_is_not_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "other")
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    here = script(tmp_path / "with space")
    monkeypatch.setattr(sys, "argv", [str(here)])
    assert own.program() == f"'{here}'"


def test_a_module_is_called_by_its_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(ROOT / "console" / "cli" / "main.py")])
    assert own.program() == f"{sys.executable} -m console.cli.main"


def test_a_demo_that_could_not_train_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(own, "distribution", missing)
    out = tmp_path / "lab"
    result = CliRunner().invoke(app, ["demo", "--headless", "--out", str(out)])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "ms-swift and torch are not installed here" in result.stderr
    assert f"{sys.executable} -m pip install 'lab-console[node]'" in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(("code", "accepted"), [(130, True), (1, False), (0, True)])
def test_make_demo_takes_leaving_for_no_failure(code: int, accepted: bool, tmp_path: Path) -> None:
    """The recipe's terminal branch, with a `lab` that ends with `code`."""
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    makefile = tmp_path / "Makefile"
    makefile.write_text("BIN := .\nOUT := out\ndemo:\n" + recipe[1].replace("[ -t 1 ]", "true"))
    script(tmp_path).write_text(f"#!/bin/sh\nexit {code}\n")
    made = subprocess.run(["make", "demo"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (made.returncode == 0) is accepted
    assert ("Error" in made.stderr) is not accepted
