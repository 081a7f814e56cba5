"""Why a run failed, over the logs of all its nodes."""

from collections.abc import Mapping
from dataclasses import dataclass

from console.core.reading.facts import Traceback
from console.core.reading.trainlog import TrainLog


@dataclass(frozen=True, slots=True)
class FailureCause:
    node: str
    traceback: Traceback


def failure_cause(logs: Mapping[str, TrainLog]) -> FailureCause | None:
    """The earliest real exception over all nodes.

    Never torchrun's ChildFailedError; what a peer says about a broken connection counts only if no node
    has anything better. Logs carry no common clock, except that torchrun prints when it saw its first worker
    fail: that orders the nodes, and where it is missing the order of `logs` does. None if no log holds an
    exception.
    """
    candidates = []
    for order, (node, log) in enumerate(logs.items()):
        cause = log.first_cause()
        if cause is not None:
            failed_at = min((one.at for one in log.worker_failures if one.at), default="9999")
            candidates.append(((cause.secondary, failed_at, order), FailureCause(node, cause)))
    return min(candidates, key=lambda candidate: candidate[0])[1] if candidates else None
