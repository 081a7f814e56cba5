"""Why a run failed, over the logs of all its nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from console.core.reading.facts import Traceback, WorkerFailure
from console.core.reading.trainlog import TrainLog

SAME_TIME_SECONDS = 2.0
"""Jobs whose ends were seen closer than this are not ordered by them."""

_KILL = 9
_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", _KILL: "SIGKILL", 11: "SIGSEGV"}
"""Linux's numbers: the console's own system may count otherwise."""


@dataclass(frozen=True, slots=True)
class FailureCause:
    """The exception that ended the run, or the worker that a signal ended."""

    node: str
    what: Traceback | WorkerFailure

    @property
    def secondary(self) -> bool:
        """Aftermath: what a rank says whose peer has died, or which was told to stop."""
        return isinstance(self.what, Traceback) and self.what.secondary

    @property
    def words(self) -> str:
        what = self.what
        if isinstance(what, Traceback):
            return f"{what.kind}: {what.message}"
        local = "" if what.local_rank is None else f" (local rank {what.local_rank})"
        name = _SIGNALS.get(-what.exit_status, f"signal {-what.exit_status}")
        seen = f" at {what.at}" if what.at else ""
        return (
            f"rank {what.rank}{local} was killed by {name}: torchrun saw exitcode {what.exit_status} "
            f"(pid {what.pid}){seen}"
        )

    @property
    def next_step(self) -> str:
        """Where to look when the log can't say more, else empty."""
        if isinstance(self.what, WorkerFailure) and self.what.exit_status == -_KILL:
            return (
                f"find who killed it: the kernel when memory ran out (dmesg on {self.node}), the guard at "
                "its memory floor (the timeline has its words), or a person"
            )
        return ""


def failure_cause(
    logs: Mapping[str, TrainLog], ended_badly: Mapping[str, float] | None = None
) -> FailureCause | None:
    """The earliest real failure over all nodes.

    Never torchrun's ChildFailedError; what a peer says about a broken connection, or a job about being told
    to stop, counts only if no node has anything better. `ended_badly`: when each node's job was seen to have
    ended badly by itself, in seconds of one clock. Where that does not tell, the time at which torchrun saw
    its first worker fail orders the nodes, by their own clocks, then the order of `logs`. None if no log
    holds a failure.
    """
    seen = ended_badly or {}
    first = min(seen.values(), default=0.0)
    candidates = []
    for order, (node, log) in enumerate(logs.items()):
        what = _of_one(log)
        if what is not None:
            cause = FailureCause(node, what)
            later = (seen[node] - first) // SAME_TIME_SECONDS if node in seen else inf
            failed_at = min((one.at for one in log.worker_failures if one.at), default="9999")
            candidates.append(((cause.secondary, later, failed_at, order), cause))
    return min(candidates, key=lambda candidate: candidate[0])[1] if candidates else None


def _of_one(log: TrainLog) -> Traceback | WorkerFailure | None:
    """SIGKILL leaves a worker no words: exceptions of that log are survived ones, or other workers'."""
    exception, killed = log.first_cause(), log.first_killed()
    if killed is not None and (killed.exit_status == -_KILL or exception is None or exception.secondary):
        return killed
    return exception
