"""`lab doctor` in words: places that nobody filled in, and what it has changed."""

import json

import pytest
from typer.testing import CliRunner

from console.cli import doctor
from console.cli.main import app
from console.engine.doctoring import Look


@pytest.fixture
def all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def examine(*_profile: object, **_how: object) -> list[Look]:
        return [Look("spark-a", "reach", True, "logged in")]

    monkeypatch.setattr(doctor, "examine", examine)


@pytest.mark.usefixtures("all_there")
def test_a_place_not_filled_in_fails() -> None:
    result = CliRunner().invoke(app, ["doctor", "spark-pair", "--json"])
    looks = json.loads(result.stdout)["looks"]
    assert result.exit_code == 3
    assert [look["node"] for look in looks if not look["good"]] == ["profile"] * 4
    assert looks[0]["words"].startswith("line 8: ssh: {alias: spark-a}")


@pytest.mark.usefixtures("all_there")
def test_a_profile_without_such_places_does_not() -> None:
    result = CliRunner().invoke(app, ["doctor", "h200-pair"])
    assert result.exit_code == 0
    assert "all there; nothing was changed\n" in result.stdout


def test_a_key_that_was_accepted_is_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    async def examine(*_profile: object, **_how: object) -> list[Look]:
        return [Look("spark-a", "host key", True, "now in known_hosts", changed=True)]

    monkeypatch.setattr(doctor, "examine", examine)
    said = CliRunner().invoke(app, ["doctor", "h200-pair", "--accept-new"]).stdout
    assert "nothing was changed on a node; a host key was accepted" in said
