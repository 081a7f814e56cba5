"""`lab parse-log` as a user calls it: exit codes, strict JSON, one message for bad input."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from console.cli.main import app
from tests.reading.samples import ALL, FIXTURES, HEALTHY, log, steady


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["parse-log", *arguments])


def parsed(file: Path) -> dict[str, Any]:
    result = call(str(file), "--json")
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout, parse_constant=_refused)
    return document


def _refused(word: str) -> float:
    raise ValueError(f"{word} is not strict JSON")


@pytest.mark.parametrize("name", ALL)
def test_every_log_gives_strict_json(name: str) -> None:
    document, read = parsed(FIXTURES / name), log(name)
    assert document["framework"] == read.framework
    assert [step["step"] for step in document["steps"]] == [step.step for step in read.steps]
    assert document["steady_step_seconds"] == steady(read).seconds
    assert document["ended"] is read.ended
    assert isinstance(document["findings"], list)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_has_no_findings(name: str) -> None:
    assert parsed(FIXTURES / name)["findings"] == []


def test_a_step_has_its_own_time_and_its_place() -> None:
    steps = parsed(FIXTURES / "swift-4x.log")["steps"]
    assert steps[0]["step_seconds"] == pytest.approx(9.0)
    assert steps[10]["step_seconds"] == pytest.approx(0.5, rel=1e-3), "the evaluation is taken out"
    assert steps[10]["line"] == log("swift-4x.log").steps[10].line


def test_memory_is_given_where_printed() -> None:
    assert parsed(FIXTURES / "megatron-4x-last-rank.log")["steps"][-1]["memory_gib"] == 21.0
    assert parsed(FIXTURES / "swift-4x.log")["steps"][-1]["memory_gib"] is None


def test_what_is_not_finite_is_null_and_named() -> None:
    steps = parsed(FIXTURES / "swift-logging-nan.jsonl")["steps"]
    assert steps[0]["nonfinite"] == []
    assert (steps[2]["loss"], steps[2]["nonfinite"]) == (None, ["loss"])
    assert (steps[4]["grad_norm"], steps[4]["nonfinite"]) == (None, ["loss", "grad_norm"])


def test_a_failed_run_names_its_cause() -> None:
    document = parsed(FIXTURES / "failed-node-a.log")
    assert document["cause"]["kind"] == "torch.OutOfMemoryError"
    assert document["ended"] is False
    assert document["steady_step_seconds"] is None
    assert document["steady"]["reason"]


def test_text_for_a_person() -> None:
    result = call(str(FIXTURES / "swift-4x.log"))
    assert result.exit_code == 0
    assert "steady      0.5 s/it, median of 25 intervals" in result.stdout
    assert "no findings" in result.stdout


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\x00" * 5000, b"caf\xc3\xa9 \xff\n"])
def test_a_file_that_says_nothing_is_no_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "log"
    file.write_bytes(content)
    document = parsed(file)
    assert (document["framework"], document["steps"], document["ended"]) == ("unknown", [], False)


def test_a_truncated_log_that_begins_with_nuls_is_read(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"\x00" * 3_000_000 + (FIXTURES / "swift-4x.log").read_bytes())
    assert len(parsed(file)["steps"]) == 30


def test_bad_files_are_one_message_and_exit_2(tmp_path: Path) -> None:
    binary = tmp_path / "model.bin"
    binary.write_bytes(bytes(range(256)) * 64)
    for file, word in (
        (tmp_path / "missing.log", "No such file"),
        (tmp_path, "folder"),
        (binary, "no text"),
        (Path("/dev/zero"), "no ordinary file"),
    ):
        result = call(str(file), "--json")
        assert result.exit_code == 2
        assert word in result.stderr
        assert "Traceback" not in result.stderr
        assert result.stdout == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"x")
    file.chmod(0)
    assert call(str(file)).exit_code == 2


def test_a_control_character_in_a_name_does_not_reach_the_terminal(tmp_path: Path) -> None:
    result = call(str(tmp_path / "a\x1b[2Jb"))
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr


def test_a_killed_worker_is_named(tmp_path: Path) -> None:
    file = tmp_path / "killed.log"
    file.write_text(
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-03-01_10:00:02\n"
        "  rank      : 1 (local_rank: 0)\n  exitcode  : -9 (pid: 8204)\n"
    )
    assert "cause       rank 1 (local rank 0) was killed by SIGKILL" in call(str(file)).stdout
    assert [one["exit_status"] for one in parsed(file)["failed_workers"]] == [-9]


def test_a_text_that_is_no_training_log_is_told_so(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("Dear diary,\nnothing was trained today.\n")
    said = call(str(file))
    assert said.exit_code == 0
    assert "it holds no line of ms-swift or Megatron" in said.stdout
    assert "no findings" not in said.stdout
    assert parsed(file)["training_log"] is False


@pytest.mark.parametrize("name", ALL)
def test_every_training_log_is_seen_as_one(name: str) -> None:
    assert parsed(FIXTURES / name)["training_log"] is True


@pytest.mark.parametrize(("rank", "world", "elsewhere"), [(0, 2, True), (1, 2, False), (0, 1, False)])
def test_a_megatron_rank_without_metrics_points_to_the_last(
    rank: int, world: int, elsewhere: bool, tmp_path: Path
) -> None:
    file = tmp_path / "rank.log"
    file.write_text(
        "[INFO:swift] swift.__version__: 4.6.0\n"
        f"[INFO:swift] rank: {rank}, local_rank: 0, world_size: {world}, local_world_size: 1\n"
        "run sh: `/opt/py/bin/python3 -m torch.distributed.run /opt/py/swift/cli/_megatron/sft.py`\n"
    )
    document = parsed(file)
    assert (document["framework"], document["steps"]) == ("megatron", [])
    assert document["metrics_elsewhere"] is elsewhere
    assert (
        "none logged by rank 0: the last rank prints them, see the log of rank 1" in call(str(file)).stdout
    ) is (elsewhere)
