"""The notes of a row: everything about a run that its numbers don't say."""

from collections.abc import Mapping, Sequence
from math import isfinite

from console.core.plan.matrix import Settings
from console.core.reading.facts import StepMetrics
from console.core.record.cells import LoggedRun
from console.core.record.computers import computer_of
from console.core.record.experiment import Experiment
from console.core.record.views import RunView

_ENDS = {"failed": "failed", "stopped": "was stopped", "timed out": "ran out of time"}


def remarks(
    experiment: Experiment,
    run: RunView,
    logs: Mapping[str, LoggedRun],
    settings: Settings,
    node: str | None,
) -> tuple[str, ...]:
    """How the run ended, unsound steps, attempts, adoption, transport, findings. `node` logged the steps."""
    steps = logs[node].log.steps if node is not None else ()
    return (
        *_outcome(run, steps),
        *_unsound(steps),
        *_unread(logs),
        *_attempts(experiment, run),
        *_adopted(run),
        *_transport(run, settings),
        *_same_machine(experiment, run, settings),
        *_findings(experiment, run),
    )


def unsound_steps(steps: Sequence[StepMetrics]) -> tuple[int, ...]:
    """Steps whose loss or gradient norm is not finite; a filtered NaN is printed as loss 0.0."""
    return tuple(step.step for step in steps if _bad(step.loss) or _bad(step.grad_norm))


def _bad(value: float | None) -> bool:
    return value is not None and not isfinite(value)


def _outcome(run: RunView, steps: Sequence[StepMetrics]) -> tuple[str, ...]:
    if run.outcome == "done":
        return ()
    last = steps[-1] if steps else None
    where = (
        f" at step {last.step}" + (f" of {last.total}" if last.total else "")
        if last
        else " before its first step"
    )
    if run.outcome is None:
        return (f"not ended yet{where if last else ''}",)
    return (f"run {_ENDS[run.outcome]}{where}" + (f": {run.cause}" if run.cause else ""),)


def _unsound(steps: Sequence[StepMetrics]) -> tuple[str, ...]:
    unsound = unsound_steps(steps)
    if not unsound:
        return ()
    shown = ", ".join(map(str, unsound[:5])) + (" …" if len(unsound) > 5 else "")
    hidden = any(step.loss == 0 and _bad(step.grad_norm) for step in steps)
    why = "; loss 0.0 there is a NaN that the framework filtered" if hidden else ""
    return (f"loss or grad_norm not finite in {len(unsound)} of {len(steps)} steps ({shown}){why}",)


def _unread(logs: Mapping[str, LoggedRun]) -> tuple[str, ...]:
    return tuple(
        f"{logged.log.unread_lines} lines of {logged.file} look like metrics and were not read, the first is "
        f"line {logged.log.unread[0].line}"
        for logged in logs.values()
        if logged.log.unread_lines
    )


def _attempts(experiment: Experiment, run: RunView) -> tuple[str, ...]:
    earlier = [other for other in experiment.runs_of(run.config) if other.attempt < run.attempt]
    if not earlier:
        return ()
    ends = "; ".join(f"{other.id} {other.outcome or 'open'}" for other in earlier)
    return (f"attempt {run.attempt} (before it: {ends})",)


def _adopted(run: RunView) -> tuple[str, ...]:
    nodes = [job.node for job in run.jobs.values() if job.adopted]
    return (f"adopted while running, on {', '.join(nodes)}",) if nodes else ()


def _transport(run: RunView, settings: Settings) -> tuple[str, ...]:
    seen = dict.fromkeys(transport.words for transport in run.transports)
    if seen:
        return (f"transport: {'; '.join(seen)}",)
    if len(run.nodes) < 2:
        return ()
    if settings.use_cpu:
        return ("transport: gloo over TCP (no CUDA)",)
    return ("transport: not known, the log holds no NCCL lines",)


def _same_machine(experiment: Experiment, run: RunView, settings: Settings) -> tuple[str, ...]:
    if len({computer_of(experiment, node) for node in run.nodes}) == len(run.nodes):
        return ()
    if settings.use_cpu:
        return ("nodes of this run share one computer: they slow each other down",)
    devices = [experiment.profile.node(node).gpu for node in run.nodes]
    if len(set(devices)) < len(devices):
        return ("nodes of this run share a computer, perhaps a device: its peak may count more than once",)
    return ("the nodes of this run are devices of one computer: nothing crosses a network between them",)


def _findings(experiment: Experiment, run: RunView) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for active in experiment.findings:
        if active.run == run.id and active.finding.severity != "note":
            where = f"{active.node}: " if active.node else ""
            found[f"{active.finding.severity}: {where}{active.finding.title} ({active.finding.seen})"] = None
    return tuple(found)
