"""The cause of a failure, over one log and over those of several nodes."""

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
    assert (cause.node, cause.traceback.kind) == ("node-a", "torch.OutOfMemoryError")


def test_the_earliest_of_two_real_causes_wins() -> None:
    late = _failed("ValueError: late", "2026-03-01_10:00:09")
    early = _failed("KeyError: early", "2026-03-01_10:00:02")
    cause = failure_cause({"a": read_whole(late), "b": read_whole(early)})
    assert cause is not None
    assert (cause.node, cause.traceback.kind) == ("b", "KeyError")


def _failed(what: str, when: str) -> bytes:
    return (
        f'Traceback (most recent call last):\n  File "x.py", line 1\n{what}\nx FAILED\n'
        f"Root Cause (first observed failure):\n[0]:\n  time      : {when}\n"
        "  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 9)\n"
    ).encode()


def test_what_a_peer_says_counts_only_alone() -> None:
    cause = failure_cause({"node-b": log("failed-node-b.log")})
    assert cause is not None
    assert cause.traceback.secondary


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
