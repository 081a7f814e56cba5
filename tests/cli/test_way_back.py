"""A command that `lab` prints for the user leads where it says, typed as it is."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from support.lab_story import demo, spark
from typer.testing import CliRunner

from console.cli import lab, recount
from console.cli.conducting import Wish
from console.cli.main import app
from console.core.record import events as ev
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


def test_a_lab_that_ended_without_its_service_says_how_to_bring_it_back(tmp_path: Path) -> None:
    """It ends with 3 however good its figures are, each time that it is asked for."""
    story = spark()
    profile = tmp_path / "pair.yaml"
    opened = story.events[0]
    assert isinstance(opened, ev.ExperimentOpened)
    text = opened.profile_text.replace("checklist: short", "checklist: walked")
    story.events[0] = opened.model_copy(update={"profile_text": text})
    profile.write_text(text, encoding="utf-8")
    story.add(ev.ServiceChanged, state="stopped")
    story.add(ev.ServiceChanged, state="not healthy", words="crashed: exit status 1")
    story.close("accepted")
    folder = tmp_path / "a lab"
    with Journal(folder) as journal:
        for event in story.events:
            journal.append(event)
    result = CliRunner().invoke(app, ["run", str(profile), "--out", str(folder)])
    assert result.exit_code == 3, result.output
    assert f"{folder} holds an experiment that has ended: nothing is run" in result.stderr
    assert "the service is not back" in result.stderr
    assert "crashed: exit status 1" in result.stderr
    (told,) = [line for line in result.stderr.splitlines() if "service restore" in line]
    assert typed(told, "service") == ["service", "restore", str(profile), "--out", str(folder)]


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
