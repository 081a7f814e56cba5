"""Typed calls of the agent's service commands."""

import asyncio
from collections.abc import Callable
from typing import Any, Literal

from console.core.plan.custody import (
    AccountLine,
    Health,
    MemoryProof,
    RestoreOutcome,
    ServiceRecord,
    StopOutcome,
)
from console.core.plan.service import BorrowedService
from console.nodes.agent.calling import call, service_part
from console.nodes.agent.client import with_node
from console.nodes.agent.runner import Runner

Progress = Callable[[AccountLine], None]

_POLL_SECONDS = 1.0
_SLACK_SECONDS = 60.0


async def inspect(
    node: Runner, spec: BorrowedService, *, answers: bool = True, reference: bool = True
) -> ServiceRecord:
    """Note everything about the service without touching it.

    `answers`: ask its HTTP interface too; `reference`: send the reference completions.
    Raises `InputError` when there is no such service, `ServiceError` when it runs and does not answer at its
    address. A record with `can_be_restored` False says why it must not be stopped.
    """
    request = service_part(spec) | {"answers": answers, "reference": reference}
    answer = await call(node, "inspect", request, timeout=_SLACK_SECONDS + 3 * spec.canary.timeout_seconds)
    return ServiceRecord.model_validate(answer | {"node": node.name})


async def stop(
    node: Runner,
    spec: BorrowedService,
    record: ServiceRecord,
    *,
    experiment: str,
    answers: bool = True,
    force: bool = False,
    on_progress: Progress | None = None,
) -> StopOutcome:
    """Turn auto-restart off, drain, stop, and prove that the memory is free.

    Needs a live guard of the experiment on the node; raises `ServiceError` without one. `force` stops with
    requests in flight. Attaches to a stop that is going on.
    """
    request = _operation(spec, record, experiment, answers) | {"name": "stop", "force": force}
    return StopOutcome.model_validate(await _carried_out(node, request, on_progress))


async def prove_free(node: Runner, spec: BorrowedService, record: ServiceRecord) -> MemoryProof:
    """Look once more whether the memory of the stopped service is free."""
    request = service_part(spec) | {"record": record.model_dump(mode="json")}
    answer = await call(node, "prove-free", request, timeout=_SLACK_SECONDS)
    return MemoryProof.model_validate(answer | {"node": node.name})


async def restore(
    node: Runner,
    spec: BorrowedService,
    record: ServiceRecord,
    *,
    experiment: str,
    answers: bool = True,
    accept_held_memory: bool = False,
    again: bool = False,
    on_progress: Progress | None = None,
) -> RestoreOutcome:
    """Start the service by its owner and climb the health ladder; the restart policy is put back.

    Idempotent: attaches to a restore that is going on, starts nothing that runs. `accept_held_memory` starts
    although memory is not free (the override for memory that the driver keeps); `again` starts once more
    after a start that failed.
    """
    request = _operation(spec, record, experiment, answers) | {
        "name": "restore",
        "accept_held_memory": accept_held_memory,
        "again": again,
    }
    return RestoreOutcome.model_validate(await _carried_out(node, request, on_progress))


async def prove_health(
    node: Runner, spec: BorrowedService, record: ServiceRecord | None, *, answers: bool = True
) -> Health:
    """Climb the health ladder once, without waiting for readiness."""
    request = service_part(spec) | {
        "record": record.model_dump(mode="json") if record else None,
        "answers": answers,
    }
    timeout = _SLACK_SECONDS + 5 * spec.canary.timeout_seconds + spec.settle_seconds
    return Health.model_validate(await call(node, "prove-health", request, timeout=timeout))


async def service_log(
    node: Runner, spec: BorrowedService, *, since: float, limit_bytes: int = 200_000
) -> str:
    """The end of the service's own log since that time (node clock), both streams, secrets masked."""
    request = service_part(spec) | {"since": since, "limit_bytes": limit_bytes}
    text: str = (await call(node, "service-log", request, timeout=_SLACK_SECONDS))["text"]
    return text


def _operation(
    spec: BorrowedService, record: ServiceRecord, experiment: str, answers: bool
) -> dict[str, Any]:
    return service_part(spec) | {
        "root": "~/.lab",
        "experiment": experiment,
        "record": record.model_dump(mode="json"),
        "answers": answers,
        "by": "console",
    }


async def _carried_out(node: Runner, request: dict[str, Any], on_progress: Progress | None) -> dict[str, Any]:
    """Begin or join the operation on the node and follow its account until its outcome is there."""
    name: Literal["stop", "restore"] = request["name"]
    look = {"root": request["root"], "experiment": request["experiment"]}
    seen = (await call(node, "status", look, timeout=_SLACK_SECONDS))["account_lines"]
    begun = await call(node, "begin", request, timeout=_SLACK_SECONDS)
    while True:
        status = await call(node, "status", look | {"account_since": seen}, timeout=_SLACK_SECONDS)
        for line in status["account"]:
            seen = line["n"]
            if on_progress is not None:
                on_progress(AccountLine.model_validate(line))
        outcome = status[name]
        ended = status["operation"] != name
        if outcome is not None and (outcome.get("id") == begun["id"] or (ended and "id" not in outcome)):
            return with_node(node, outcome)
        await asyncio.sleep(_POLL_SECONDS)
