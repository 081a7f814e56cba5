"""`lab plan` in words: commands a shell takes as meant, time against the window, places not filled in."""

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from console.cli.main import app
from console.cli.plan_text import shell_word

ROOT = Path(__file__).parents[2]


def plan(*words: str) -> str:
    result = CliRunner().invoke(app, ["plan", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("~", "/home/me"),
        ("~/", "/home/me/"),
        ("~/lab-venv/bin/python", "/home/me/lab-venv/bin/python"),
        ("~/.lab/<experiment>/a b; $(false)", "/home/me/.lab/<experiment>/a b; $(false)"),
        ("~other/x", "~other/x"),
        ("a ~/b '$HOME'", "a ~/b '$HOME'"),
        ("", ""),
    ],
)
def test_a_word_means_the_same_to_a_shell(word: str, meant: str) -> None:
    script = f"KEY={shell_word(word)}; printf '%s\\n' {shell_word(word)} \"$KEY\""
    said = subprocess.run(
        ["sh", "-c", script], env={"HOME": "/home/me"}, capture_output=True, text=True, check=True
    )
    assert said.stdout == f"{meant}\n{meant}\n"


def test_a_printed_command_starts_the_interpreter_of_the_home_folder(tmp_path: Path) -> None:
    python = tmp_path / "lab-venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$NODE_RANK" "$@"\n')
    python.chmod(0o755)
    lines = plan("spark-pair", "--only", "E0").splitlines()
    start = next(n for n, line in enumerate(lines) if line.endswith("\\"))
    command = "\n".join(lines[start : start + 2])
    said = subprocess.run(
        ["sh", "-c", command],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert said[:4] == ["0", "-m", "swift.cli._megatron.main", "sft"]
    assert f"{tmp_path}/.lab/<experiment>/E0-1/out" in said


def test_the_time_is_compared_with_the_window_that_is_given() -> None:
    assert "warning: does not fit the window of 60.0 min" in plan("h200-pair", "--window", "1h")
    assert "fits the window of 3.0 h" in plan("h200-pair", "--window", "3h")
    document = json.loads(plan("h200-pair", "--window", "1h", "--json", "--only", "E0"))
    assert document["time"]["window_seconds"] == 3600
    assert document["time"]["runs"] == [config["time"] for config in document["configurations"]]
    assert document["configurations"][0]["time"]["steps"] == 20


def test_what_is_not_known_of_the_time_is_said() -> None:
    said = plan("embedded")
    assert "unknown: E0, E1, R1, G1: no step time: the profile names no device" in said
    assert "whether it fits the window of 4.0 h can't be told" in said


def test_the_paper_says_what_it_leaves_out_where_nodes_talk() -> None:
    """Else E2 seems to take half of the step time of E0."""
    words = "traffic between nodes and the pipeline's bubble come on top"
    assert words not in plan("spark-pair", "--only", "E0")
    assert words in plan("spark-pair", "--only", "E2")


def test_places_not_filled_in_are_named_until_they_are(tmp_path: Path) -> None:
    assert "warning: not filled in yet: line 8: ssh: {alias: spark-a}" in plan("spark-pair")
    own = tmp_path / "own.yaml"
    text = (ROOT / "profiles" / "spark-pair.yaml").read_text(encoding="utf-8")
    for name in ("alias: spark-a", "alias: spark-b", "address: spark-a.local", "address: spark-b.local"):
        text = text.replace(name, name.replace("spark", "dgx"))
    own.write_text(text, encoding="utf-8")
    assert "not filled in" not in plan(str(own))
    assert json.loads(plan(str(own), "--json"))["unfilled"] == []
