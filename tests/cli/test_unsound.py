"""What shows or exports an experiment says which cited files are not as recorded, in the same words."""

from pathlib import Path

import pytest
from support.lab_story import CHECKLIST, demo
from typer.testing import CliRunner

from console.cli.conducting import Wish, conduct
from console.cli.main import app
from console.engine.opening import LabFiles
from console.journal import Journal

SAID = "a source is not as recorded: logs/node-a/E0-1.log: missing"
IN_THE_SHEET = "## Sources that are not as recorded\n\n- logs/node-a/E0-1.log: missing\n"


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A closed experiment whose logs are gone."""
    story = demo()
    folder = tmp_path / story.name
    with Journal(folder) as journal:
        for event in story.events:
            journal.append(event)
    return folder


@pytest.mark.parametrize("call", ["export", "export --format md", "replay --json"])
def test_what_shows_an_experiment_names_them(closed: Path, call: str) -> None:
    command, *options = call.split()
    result = CliRunner().invoke(app, [command, str(closed), *options])
    assert result.exit_code == 0, result.output
    assert SAID in result.stderr


def test_a_replay_knows_the_sources_of_what_it_shows(closed: Path) -> None:
    result = CliRunner().invoke(app, ["replay", str(closed), "--json", "--until", "3"])
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 3
    assert result.stderr == ""


async def test_the_export_at_the_end_of_a_lab_names_them(
    closed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = demo()
    files = LabFiles(story.events[0].profile_text, "story.yaml", CHECKLIST)
    assert await conduct(Wish(files=files, folder=closed, command="lab run story.yaml")) == 0
    assert SAID in capsys.readouterr().err
    assert IN_THE_SHEET in (closed / "exports" / "record.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("form", "files"), [("json", ["record.json"]), ("md", ["record.md", "summary.md"])])
def test_one_format_goes_where_it_is_wanted(
    closed: Path, tmp_path: Path, form: str, files: list[str]
) -> None:
    out = tmp_path / "sheet"
    printed = CliRunner().invoke(app, ["export", str(closed), "--format", form])
    written = CliRunner().invoke(app, ["export", str(closed), "--format", form, "--out", str(out)])
    assert written.exit_code == 0, written.output
    assert sorted(path.name for path in out.iterdir()) == files
    assert sorted(written.stdout.splitlines()) == [str(out / name) for name in files]
    assert (out / files[0]).read_text(encoding="utf-8") in printed.stdout
    assert not (closed / "exports").exists()
