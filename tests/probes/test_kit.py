"""The frame of every probe: one JSON document whatever happens, and programs that can't hang it."""

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.waiting import until

from console.nodes.probes import PROBES, kit, probe_source


def run_probe_text(body: str, *argv: str) -> dict[str, Any]:
    program = "from console.nodes.probes import kit\nimport os, sys\n" + textwrap.dedent(body)
    done = subprocess.run([sys.executable, "-c", program, *argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1, done.stdout
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def test_what_libraries_print_does_not_get_into_the_answer() -> None:
    answer = run_probe_text(
        """
        def probe(args):
            print("noise")
            os.write(1, b"noise of C code")
            os.system("echo noise of a child")
            return {"seen": args}
        kit.answer(probe)
        """,
        '{"a": 1}',
    )
    assert answer == {"ok": True, "seen": {"a": 1}}


def test_an_expected_failure_keeps_its_raw_text_and_facts() -> None:
    answer = run_probe_text(
        """
        def probe(args):
            raise kit.Failed("port taken", "EADDRINUSE é", port=5)
        kit.answer(probe)
        """
    )
    assert answer == {"ok": False, "kind": "port taken", "error": "EADDRINUSE é", "port": 5}


def test_an_unexpected_failure_is_an_answer_with_the_traceback() -> None:
    answer = run_probe_text("kit.answer(lambda args: 1 / 0)")
    assert answer["ok"] is False
    assert answer["kind"] == "unexpected"
    assert "ZeroDivisionError" in answer["error"]


@pytest.mark.parametrize("argument", ["[1]", "{", ""])
def test_bad_arguments_are_answered(argument: str) -> None:
    assert run_probe_text("kit.answer(lambda args: {})", argument)["ok"] is False


def test_numbers_that_json_lacks_become_null() -> None:
    answer = run_probe_text('kit.answer(lambda args: {"a": float("nan"), "b": [float("inf"), 1.5]})')
    assert answer == {"ok": True, "a": None, "b": [None, 1.5]}


@pytest.mark.parametrize("name", sorted(PROBES))
def test_every_probe_is_packed_whole_and_answers_senseless_arguments(name: str) -> None:
    source = probe_source(name)
    compile(source, name, "exec")
    done = subprocess.run(
        [sys.executable, "-I", "-", "7"], input=source.encode(), capture_output=True, cwd="/", check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["kind"] == "bad arguments"


def test_an_unknown_probe_is_refused() -> None:
    with pytest.raises(KeyError):
        probe_source("../../core/errors")


def test_a_program_that_is_not_there_has_status_127() -> None:
    ran = kit.bounded(["no-such-program-anywhere"], 5)
    assert (ran.status, ran.ok) == (127, False)
    assert "no-such-program-anywhere" in ran.error


async def test_a_program_is_ended_with_its_children_at_the_limit(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    ran = kit.bounded(["sh", "-c", f"sleep 300 & echo $! > {mark}; wait"], 1)
    assert ran.status is None
    assert "no answer within" in ran.error
    child = int(mark.read_text())
    await until(
        lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE,
        "the child is gone",
    )


def test_a_child_that_left_its_group_does_not_hold_the_probe() -> None:
    began = time.monotonic()
    ran = kit.bounded(["sh", "-c", "setsid sleep 6 & wait"], 0.5)
    assert ran.status is None
    assert time.monotonic() - began < 6


def test_a_signal_is_named_in_the_error() -> None:
    assert "SIGSEGV" in kit.bounded(["sh", "-c", "kill -SEGV $$"], 5).error


def test_a_child_answers_beside_its_own_noise() -> None:
    program = """import os, sys
print("noise")
os.write(int(sys.argv[1]), b'{"got": ' + sys.argv[2].encode() + b"}")
"""
    said, ran = kit.ask_child(program, {"x": 1}, 20)
    assert said == {"got": {"x": 1}}
    assert ran.out == "noise\n"


def test_a_large_answer_of_a_child_is_whole() -> None:
    program = (
        "import json, os, sys\n"
        "with os.fdopen(int(sys.argv[1]), 'w') as stream: json.dump({'a': 'x' * 300_000}, stream)"
    )
    said, ran = kit.ask_child(program, {}, 20)
    assert said is not None, ran.error
    assert len(said["a"]) == 300_000


def test_a_child_that_writes_no_json_has_no_answer() -> None:
    said, _ = kit.ask_child("import os, sys; os.write(int(sys.argv[1]), b'{half')", {}, 20)
    assert said is None


@pytest.mark.parametrize(
    ("number", "kind"),
    [(2, "missing"), (13, "no access"), (30, "no access"), (28, "disk full"), (5, "os error")],
)
def test_what_the_system_refuses_has_a_word(number: int, kind: str) -> None:
    assert kit.os_kind(OSError(number, "x")) == kind
