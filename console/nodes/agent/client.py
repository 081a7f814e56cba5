"""Typed calls of the guard on a node."""

from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from console.core.errors import AnswerUnreadable
from console.core.plan.custody import AccountLine, GuardSpec, GuardStatus, Lease, Sample
from console.core.plan.service import BorrowedService, NoService
from console.nodes.agent.calling import call, service_part
from console.nodes.agent.runner import Runner

Phase = Literal["idle", "training"]
_SECONDS = 30.0


class Followed(NamedTuple):
    """What is new about a guard: samples with `n` above the one asked for, oldest first, within a limit."""

    status: GuardStatus
    samples: list[Sample]


async def start_guard(
    node: Runner, spec: GuardSpec, service: NoService | BorrowedService, *, takeover: bool = False
) -> GuardStatus:
    """Start the guard, detached. The same holder gets the running guard's status back.

    Raises `InputError` for a floor above total memory or a window that is over, `ServiceError` when another
    console holds the node (unless `takeover`).
    """
    request = _request(
        spec.experiment, guard=spec.model_dump(mode="json"), takeover=takeover, **service_part(service)
    )
    return read_status(node, await call(node, "guard-start", request, timeout=_SECONDS))


async def renew_lease(
    node: Runner,
    experiment: str,
    *,
    holder: str,
    lease_seconds: float,
    window_seconds_left: float | None = None,
    phase: Phase | None = None,
) -> Lease:
    """Renew the lease; an expired lease is answered as such and stays expired.

    Raises `ServiceError` when another console holds the node, or the guard is gone.
    """
    request = _request(
        experiment,
        holder=holder,
        lease_seconds=lease_seconds,
        window_seconds_left=window_seconds_left,
        phase=phase,
    )
    return Lease.model_validate(await call(node, "lease", request, timeout=_SECONDS))


async def guard_status(node: Runner, experiment: str) -> GuardStatus:
    """What the node says about its guard, alive or not."""
    return read_status(node, await call(node, "status", _request(experiment), timeout=_SECONDS))


async def guard_account(node: Runner, experiment: str, since: int = 0) -> list[AccountLine]:
    """Lines of the guard's account with `n` > since."""
    answer = await call(node, "account", _request(experiment, since=since), timeout=_SECONDS)
    return [AccountLine.model_validate(line) for line in answer["lines"]]


async def follow_guard(node: Runner, experiment: str, since: int = 0, *, limit: int = 5000) -> Followed:
    """Status and samples in one call."""
    answer = await call(node, "follow", _request(experiment, since=since, limit=limit), timeout=_SECONDS)
    samples = [Sample.model_validate(sample) for sample in answer["samples"]]
    return Followed(read_status(node, answer["status"]), samples)


async def end_guard(node: Runner, experiment: str, *, holder: str, force: bool = False) -> GuardStatus:
    """End the guard. Refused with `ServiceError` while the service is not proven healthy, unless `force`."""
    request = _request(experiment, holder=holder, force=force)
    return read_status(node, await call(node, "guard-end", request, timeout=_SECONDS))


async def end_jobs(
    node: Runner, experiment: str, *, grace_seconds: float = 10.0, docker: tuple[str, ...] = ("docker",)
) -> list[int]:
    """End every process and container of the experiment on the node; the pids that were ended."""
    request = _request(experiment, grace_seconds=grace_seconds, docker=docker)
    pids: list[int] = (await call(node, "end-jobs", request, timeout=grace_seconds + 120))["pids"]
    return pids


def read_status(node: Runner, answer: dict[str, Any]) -> GuardStatus:
    """The typed status. Raises `AnswerUnreadable`."""
    document = {key: value for key, value in answer.items() if key != "account"}
    for name in ("stop", "restore"):
        if document.get(name):
            document[name] = with_node(node, document[name])
    try:
        return GuardStatus.model_validate(document | {"node": node.name})
    except ValidationError as trouble:
        raise AnswerUnreadable(node.name, "the guard's status can't be read", why=str(trouble)) from trouble


def with_node(node: Runner, outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome as the values know it: with the node's name, without the operation's id."""
    document = {key: value for key, value in outcome.items() if key != "id"} | {"node": node.name}
    if document.get("proof"):
        document["proof"] = document["proof"] | {"node": node.name}
    return document


def _request(experiment: str, **more: Any) -> dict[str, Any]:
    return {"root": "~/.lab", "experiment": experiment, **more}
