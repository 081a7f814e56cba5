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
    has anything better. None if no log holds an exception.
    """
    raise NotImplementedError
