"""Typed calls of the guard on a node."""

from typing import Literal

from console.core.plan.custody import AccountLine, GuardSpec, GuardStatus, Lease, Sample
from console.core.plan.service import BorrowedService, NoService
from console.nodes.agent.runner import Runner

Phase = Literal["idle", "training"]


async def start_guard(
    node: Runner, spec: GuardSpec, service: NoService | BorrowedService, *, takeover: bool = False
) -> GuardStatus:
    """Start the guard, detached. The same holder gets the running guard's status back.

    Raises `InputError` for a floor above total memory or a window that is over, `ServiceError` when another console
    holds the node (unless `takeover`).
    """
    raise NotImplementedError


async def renew_lease(
    node: Runner,
    experiment: str,
    *,
    holder: str,
    lease_seconds: float,
    window_seconds_left: float | None = None,
    phase: Phase | None = None,
) -> Lease:
    """Renew the lease; an expired lease is answered as such and stays expired."""
    raise NotImplementedError


async def guard_status(node: Runner, experiment: str) -> GuardStatus:
    """What the node says about its guard, alive or not."""
    raise NotImplementedError


async def guard_account(node: Runner, experiment: str, since: int = 0) -> list[AccountLine]:
    """Lines of the guard's account with `n` > since."""
    raise NotImplementedError


async def read_samples(node: Runner, experiment: str, since: int = 0, *, limit: int = 5000) -> list[Sample]:
    """Samples with `n` > since, oldest first, at most `limit`."""
    raise NotImplementedError


async def end_guard(node: Runner, experiment: str, *, holder: str, force: bool = False) -> GuardStatus:
    """End the guard. Refused with `ServiceError` while the service is not proven healthy, unless `force`."""
    raise NotImplementedError


async def end_jobs(node: Runner, experiment: str, *, grace_seconds: float = 10.0) -> list[int]:
    """End every process and container of the experiment on the node; the pids that were ended."""
    raise NotImplementedError
