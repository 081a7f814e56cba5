"""A command that `lab` prints for the user leads where it says, typed as it is."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from support.lab_story import demo
from typer.testing import CliRunner

from console.cli import lab, recount
from console.cli.conducting import Wish
from console.cli.main import app
from console.journal import Journal


def typed(command: str, name: str) -> list[str]:
    """The words of `command` from the sub-command on: how the program itself is called differs here."""
    words = shlex.split(command)
    return words[words.index(name) :]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("call", ["run embedded", "demo --headless"])
def test_the_way_back_leads_to_the_same_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, lang: str
) -> None:
    wishes: list[Wish] = []

    async def conduct(wish: Wish) -> int:
        wishes.append(wish)
        return 0

    monkeypatch.setattr(lab, "conduct", conduct)
    name, *options = call.split()
    first = CliRunner().invoke(app, [name, *options, "--out", str(tmp_path / "my lab"), "--lang", lang])
    assert first.exit_code == 0, first.output
    again = CliRunner().invoke(app, typed(wishes[0].command, name))
    assert again.exit_code == 0, again.output
    assert wishes[0].lang == lang
    assert wishes[1] == wishes[0]


def test_recount_names_the_export_of_that_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data" / "lab-console" / "experiments" / "an old lab"
    with Journal(folder) as journal:
        for event in demo().events:
            journal.append(event)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def changed(_: Any) -> tuple[str, ...]:
        return ("E0",)

    monkeypatch.setattr(recount, "count_again", changed)
    said = CliRunner().invoke(app, ["recount", "an old lab"]).stdout
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    result = CliRunner().invoke(app, typed(said.rpartition("with:")[2], "export"))
    assert result.exit_code == 0, result.output
    assert (folder / "exports" / "record.md").is_file()
