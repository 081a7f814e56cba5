"""Typed calls of the agent's service commands."""

from collections.abc import Callable

from console.core.plan.custody import (
    AccountLine,
    Health,
    MemoryProof,
    RestoreOutcome,
    ServiceRecord,
    StopOutcome,
)
from console.core.plan.service import BorrowedService
from console.nodes.agent.runner import Runner

Progress = Callable[[AccountLine], None]


async def inspect(
    node: Runner, spec: BorrowedService, *, answers: bool = True, reference: bool = True
) -> ServiceRecord:
    """Note everything about the service without touching it.

    `answers`: ask its HTTP interface too; `reference`: send the reference completion.
    Raises `ServiceError` when there is no such service, its owner is not the one of the profile, or its address
    does not answer. A record with `can_be_restored` False says why it must not be stopped.
    """
    raise NotImplementedError


async def stop(
    node: Runner,
    spec: BorrowedService,
    record: ServiceRecord,
    *,
    experiment: str,
    force: bool = False,
    on_progress: Progress | None = None,
) -> StopOutcome:
    """Turn auto-restart off, drain, stop, and prove that the memory is free.

    Needs a live guard of the experiment on the node. `force` stops with requests in flight.
    """
    raise NotImplementedError


async def prove_free(node: Runner, spec: BorrowedService, record: ServiceRecord) -> MemoryProof:
    """Look once more whether the memory of the stopped service is free."""
    raise NotImplementedError


async def restore(
    node: Runner,
    spec: BorrowedService,
    record: ServiceRecord,
    *,
    experiment: str,
    accept_held_memory: bool = False,
    on_progress: Progress | None = None,
) -> RestoreOutcome:
    """Start the service by its owner and climb the health ladder; the restart policy is put back.

    Idempotent: attaches to a restore that is going on, and starts nothing that runs. `accept_held_memory` starts
    although memory is not free (the override for memory that the driver keeps).
    """
    raise NotImplementedError


async def prove_health(
    node: Runner, spec: BorrowedService, record: ServiceRecord | None, *, answers: bool = True
) -> Health:
    """Climb the health ladder once, without waiting for readiness."""
    raise NotImplementedError


async def service_log(node: Runner, spec: BorrowedService, *, since: float, limit_bytes: int = 200_000) -> str:
    """The end of the service's own log since that time (node clock), both streams."""
    raise NotImplementedError
