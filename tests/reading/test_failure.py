"""The cause of a failure, over one log and over those of several nodes."""

import pytest

from console.core.reading.failure import failure_cause
from console.core.reading.trainlog import read_whole
from tests.reading.samples import log


def test_interleaved_ranks_are_told_apart() -> None:
    kinds = [(seen.rank, seen.kind.rpartition(".")[2]) for seen in log("failed-node-a.log").tracebacks]
    assert kinds == [(0, "OutOfMemoryError"), (1, "RuntimeError"), (None, "ChildFailedError")]


def test_wrappers_and_aftermath_are_marked() -> None:
    first, peer, wrapper = log("failed-node-a.log").tracebacks
    assert (first.wrapper, first.secondary) == (False, False)
    assert peer.secondary
    assert wrapper.wrapper


def test_a_line_in_the_middle_does_not_end_a_traceback() -> None:
    first = log("failed-node-a.log").tracebacks[0]
    assert first.message.startswith("CUDA out of memory")
    assert first.text.startswith("[rank0]: Traceback (most recent call last):")


def test_the_cause_is_on_the_node_that_had_it() -> None:
    logs = {"node-b": log("failed-node-b.log"), "node-a": log("failed-node-a.log")}
    cause = failure_cause(logs)
    assert cause is not None
    assert (cause.node, cause.what.kind) == ("node-a", "torch.OutOfMemoryError")


def test_the_earliest_of_two_real_causes_wins() -> None:
    late = _failed("ValueError: late", "2026-03-01_10:00:09")
    early = _failed("KeyError: early", "2026-03-01_10:00:02")
    cause = failure_cause({"a": read_whole(late), "b": read_whole(early)})
    assert cause is not None
    assert (cause.node, cause.what.kind) == ("b", "KeyError")


def _failed(what: str, when: str) -> bytes:
    return (
        f'Traceback (most recent call last):\n  File "x.py", line 1\n{what}\nx FAILED\n'
        f"Root Cause (first observed failure):\n[0]:\n  time      : {when}\n"
        "  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 9)\n"
    ).encode()


def test_what_a_peer_says_counts_only_alone() -> None:
    cause = failure_cause({"node-b": log("failed-node-b.log")})
    assert cause is not None
    assert cause.what.secondary


def test_a_wrapper_alone_is_no_cause() -> None:
    text = (
        b'Traceback (most recent call last):\n  File "run.py", line 1\n'
        b"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    )
    assert failure_cause({"a": read_whole(text)}) is None


def test_a_healthy_log_has_no_cause() -> None:
    assert failure_cause({"a": log("swift-4x.log")}) is None


def test_a_stop_is_aftermath() -> None:
    (seen,) = log("stopped.log").tracebacks
    assert seen.kind.endswith("SignalException")
    assert seen.secondary


def test_the_table_of_failed_workers() -> None:
    (worker,) = log("failed-node-a.log").worker_failures
    assert (worker.rank, worker.exit_status, worker.pid, worker.root_cause) == (0, 1, 777, True)
    assert worker.at == "2026-03-01_10:15:00"


def test_an_exception_line_without_frames() -> None:
    (seen,) = read_whole(b"[rank0]: ValueError: global batch size (16) is odd\n").tracebacks
    assert (seen.framed, seen.rank, seen.kind) == (False, 0, "ValueError")
    assert seen.message == "global batch size (16) is odd"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            b"/opt/train/bin/python3: Error while finding module specification for 'swift.cli.main' "
            b"(ModuleNotFoundError: No module named 'swift')\n",
            "ModuleNotFoundError: No module named 'swift'",
        ),
        (b"python3.12: No module named torch\n", "ModuleNotFoundError: No module named torch"),
    ],
    ids=["its package", "the module"],
)
def test_a_module_that_cannot_be_started_is_the_cause(line: bytes, words: str) -> None:
    cause = failure_cause({"a": read_whole(line)})
    assert cause is not None
    assert cause.words == words


def test_a_module_that_a_library_does_without_is_no_cause() -> None:
    assert failure_cause({"a": read_whole(b"WARNING fused: No module named apex\n")}) is None


def test_a_last_line_without_an_end_is_read() -> None:
    text = b'Traceback (most recent call last):\n  File "x.py", line 1\nKeyError: 1'
    assert [seen.kind for seen in read_whole(text).tracebacks] == ["KeyError"]


def test_a_survived_exception_is_not_the_cause() -> None:
    text = (
        b'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 1\n'
        b"{'loss': 1.0, 'iteration': '1/8'}\n"
        b'Traceback (most recent call last):\n  File "b.py", line 1\nOSError: disk full\n'
    )
    cause = read_whole(text).first_cause()
    assert cause is not None
    assert cause.kind == "OSError"


KILLED = b"""\
Train:  12%|#2        | 3/24 [00:12<01:02,  2.96s/it]\
E0301 10:00:02.105000 8046 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: -9) \
local_rank: 0 (pid: 8204) of binary: /usr/bin/python3
Traceback (most recent call last):
  File "run.py", line 1
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\x20
Root Cause (first observed failure):
[0]:
  time      : 2026-03-01_10:00:02
  rank      : 1 (local_rank: 0)
  exitcode  : -9 (pid: 8204)
"""
SURVIVED = b'Traceback (most recent call last):\n  File "probe.py", line 1\nImportError: no apex\n'


def test_a_killed_worker_is_the_cause_and_not_the_stop_that_followed() -> None:
    cause = failure_cause({"a": log("stopped.log"), "b": read_whole(KILLED)})
    assert cause is not None
    assert (cause.node, cause.secondary) == ("b", False)
    assert cause.words.startswith("rank 1 (local rank 0) was killed by SIGKILL: torchrun saw exitcode -9")
    assert "dmesg on b" in cause.next_step


def test_what_was_survived_before_a_kill_is_not_the_cause() -> None:
    cause = failure_cause({"b": read_whole(SURVIVED + KILLED)})
    assert cause is not None
    assert "SIGKILL" in cause.words


def test_an_abort_has_its_words_in_the_exception() -> None:
    aborted = _failed("ValueError: why", "2026-03-01_10:00:02").replace(b"exitcode  : 1", b"exitcode  : -6")
    cause = failure_cause({"a": read_whole(aborted)})
    assert cause is not None
    assert cause.words == "ValueError: why"


def test_a_worker_that_was_told_to_stop_was_not_killed() -> None:
    assert failure_cause({"a": read_whole(KILLED.replace(b"-9", b"-15"))}) is None


def test_the_job_that_ended_first_counts_more_than_the_clocks_of_nodes() -> None:
    first = read_whole(_failed("ValueError: first", "2026-03-01_10:09:00"))
    second = read_whole(_failed("KeyError: second", "2026-03-01_10:00:02"))
    cause = failure_cause({"b": second, "a": first}, {"a": 100.0, "b": 104.0})
    assert cause is not None
    assert cause.node == "a"
