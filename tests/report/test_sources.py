"""Cited files held against the record: one that is gone or differs is named, and nothing else is."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from console.engine.replay import ReadSession
from console.report.sources import unsound_sources

ROOT = Path(__file__).parents[2]
LOG = "logs/h200-b/E1-1.log"
EVIDENCE = "evidence/1-baseline/bench-h200-a-1.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the example experiment."""
    return Path(shutil.copytree(ROOT / "examples" / "h200-pair", tmp_path / "example"))


def found(folder: Path) -> dict[str, str]:
    with ReadSession(folder) as session:
        return {one.file: one.fault for one in unsound_sources(session.experiment, folder)}


def export(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "console.cli.main", "export", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)


def into_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def changed(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(b"?" + data[1:])


@pytest.mark.parametrize(
    ("file", "damage", "fault"),
    [
        (LOG, Path.unlink, "missing"),
        (LOG, into_a_folder, "not a file"),
        (LOG, lambda path: path.write_bytes(path.read_bytes()[:-1]), "shorter than cited"),
        (LOG, changed, "not the recorded sha256"),
        (EVIDENCE, Path.unlink, "missing"),
        (EVIDENCE, lambda path: path.write_bytes(path.read_bytes()[:-2]), "not whole"),
    ],
)
def test_what_differs_is_named(folder: Path, file: str, damage: Callable[[Path], object], fault: str) -> None:
    assert found(folder) == {}
    damage(folder / file)
    assert found(folder) == {file: fault}


def test_the_sheet_and_the_words_name_every_file_that_is_gone(folder: Path) -> None:
    whole = export(folder)
    assert whole.stderr == ""
    assert "not as recorded" not in (folder / "exports" / "record.md").read_text(encoding="utf-8")
    shutil.rmtree(folder / "logs")
    gone = found(folder)
    assert LOG in gone
    said = export(folder)
    for file in gone:
        assert f"{file}: missing" in said.stderr
    sheet = (folder / "exports" / "record.md").read_text(encoding="utf-8")
    assert f"## Sources that are not as recorded\n\n- {next(iter(gone))}: missing\n" in sheet
    assert f"- {LOG}：不存在" in export(folder, "--format", "md", "--lang", "zh").stdout
