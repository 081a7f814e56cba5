"""Venvs made, verified and left alone; images known by digest."""

import hashlib
import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Ask

DIGEST = "sha256:" + "5e" * 32
IMAGE = f"registry.example/lab@{DIGEST}"


def small_wheel(folder: Path, version: str) -> Path:
    """A wheel that holds one module."""
    place = folder / f"labtoy-{version}-py3-none-any.whl"
    info = f"labtoy-{version}.dist-info"
    files = {
        "labtoy.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: labtoy\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(place, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]))
    return place


def test_the_interpreter_as_it_is_with_its_list(ask: Ask) -> None:
    answer = ask("environment", {"kind": "venv", "path": None, "python": sys.executable})
    assert answer["ok"] is True
    assert answer["isolated"] == (sys.prefix != sys.base_prefix)
    assert answer["packages"] == len(answer["freeze"]) > 0
    text = "\n".join(answer["freeze"]) + "\n"
    assert answer["freeze_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert any(line.startswith("pydantic==") for line in answer["freeze"])


def test_a_venv_is_made_once_and_filled_when_its_requirements_change(ask: Ask, tmp_path: Path) -> None:
    first, second = small_wheel(tmp_path, "1.0"), small_wheel(tmp_path, "1.1")
    args = {"kind": "venv", "path": str(tmp_path / "venv"), "create": True, "requirements": [str(first)]}
    made = ask("environment", args)
    assert (made["ok"], made["created"], made["isolated"]) == (True, True, True), made
    assert any(line.startswith("labtoy==1.0") for line in made["freeze"])
    again = ask("environment", args)
    assert (again["created"], again["freeze_sha256"]) == (False, made["freeze_sha256"])
    changed = ask("environment", args | {"requirements": [str(second)]})
    assert changed["created"] is True
    assert changed["freeze_sha256"] != made["freeze_sha256"]
    only_looked_at = ask("environment", {"kind": "venv", "path": args["path"], "create": False})
    assert only_looked_at["freeze_sha256"] == changed["freeze_sha256"]


def test_a_requirement_that_does_not_install_keeps_pips_words(ask: Ask, tmp_path: Path) -> None:
    missing = tmp_path / "not-there-1.0-py3-none-any.whl"
    answer = ask(
        "environment",
        {"kind": "venv", "path": str(tmp_path / "venv"), "create": True, "requirements": [str(missing)]},
    )
    assert (answer["ok"], answer["kind"]) == (False, "install")
    assert "not-there-1.0" in answer["error"]


def test_a_venv_that_is_not_there_is_not_made_unasked(ask: Ask, tmp_path: Path) -> None:
    answer = ask("environment", {"kind": "venv", "path": str(tmp_path / "venv"), "create": False})
    assert (answer["ok"], answer["kind"]) == (False, "missing")
    assert not (tmp_path / "venv").exists()


def test_a_folder_that_is_no_venv_is_left_alone(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "thesis.tex").write_text("precious")
    answer = ask("environment", {"kind": "venv", "path": str(tmp_path / "venv"), "create": True})
    assert answer["kind"] == "not a venv"
    assert [place.name for place in (tmp_path / "venv").iterdir()] == ["thesis.tex"]


def test_an_image_is_known_by_its_digest(ask: Ask, programs: Callable[[str, str], dict[str, str]]) -> None:
    inspected = json.dumps(
        [{"RepoDigests": [f"lab@{DIGEST}"], "Id": "sha256:1", "Architecture": "arm64", "Size": 9}]
    )
    listed = json.dumps({"python": "3.12.3", "executable": "/usr/bin/python3", "freeze": ["torch==2.13.0"]})
    env = programs("docker", f"case $1 in image) echo '{inspected}';; run) echo '{listed}';; esac\n")
    answer = ask("environment", {"kind": "container", "image": IMAGE}, env=env)
    assert (answer["isolated"], answer["reproducible"]) == (True, True)
    assert (answer["image_digest"], answer["image_architecture"]) == (DIGEST, "arm64")
    assert answer["freeze"] == ["torch==2.13.0"]


def test_another_image_of_that_name_is_not_taken(
    ask: Ask, programs: Callable[[str, str], dict[str, str]]
) -> None:
    inspected = json.dumps([{"RepoDigests": ["lab@sha256:" + "00" * 32], "Id": "sha256:1"}])
    env = programs(
        "docker", f"case $1 in image) echo '{inspected}';; run) echo no python >&2; exit 1;; esac\n"
    )
    answer = ask("environment", {"kind": "container", "image": IMAGE}, env=env)
    assert (answer["reproducible"], answer["image_digest"]) == (False, None)
    assert answer["missing"]["freeze"] == "no python"


@pytest.mark.parametrize(("image", "kind"), [("lab:latest", "bad arguments"), (IMAGE, "missing")])
def test_an_image_that_can_not_be_used_is_told(
    ask: Ask, programs: Callable[[str, str], dict[str, str]], image: str, kind: str
) -> None:
    env = programs("docker", "echo 'Error response from daemon: No such image: lab' >&2; exit 1\n")
    answer = ask("environment", {"kind": "container", "image": image}, env=env)
    assert (answer["ok"], answer["kind"]) == (False, kind)


def test_without_docker_there_is_no_container(ask: Ask, tmp_path: Path) -> None:
    answer = ask(
        "environment", {"kind": "container", "image": IMAGE}, env={"PATH": str(tmp_path), "HOME": os.sep}
    )
    assert (answer["kind"], answer["error"]) == ("missing", "no docker on this machine")
