"""The guard on every node: started before anything is stopped, kept by renewals, read for its samples."""

import asyncio
import getpass
import os
import socket
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from console.core.errors import LeaseOver, NodeError, ServiceError
from console.core.plan.custody import Floors, GuardSpec, GuardStatus, Sample
from console.core.plan.service import answers_on, start_order
from console.core.record import events as ev
from console.engine.contact import with_contact
from console.engine.crew import Crew, Member, service_of
from console.engine.recorder import Recorder
from console.engine.together import together
from console.nodes import agent

SAMPLES_SECONDS = 1.0
RENEWALS_PER_LEASE = 15
SECONDS_APART = 5.0
"""Between one node's restore by its guard and the next."""
LEAVING_SECONDS = 24 * 3600.0
"""Lease left behind by a console that ends in order when no window limits it."""
HAND_OVER_SECONDS = 1.0
"""Lease left behind when the service is already on its way back: the guards take that up at once."""


def require_time(node: str, status: GuardStatus) -> None:
    """Raises `LeaseOver` when the guard ends the lab's time on the node, or has done so.

    A guard that is gone without having seen its lease end is none of these: it is replaced.
    """
    if status.expired or (status.alive and status.lease.state != "held"):
        raise LeaseOver(node, status.lease.state)


class Remarks(NamedTuple):
    """What a guard says beside its lease."""

    risk: str = ""
    came_back_at: datetime | None = None


class Guarding:
    """One guard per node, in the name of this console."""

    def __init__(
        self, recorder: Recorder, crew: Crew, *, sampled: Callable[[str, Sample], None] | None = None
    ) -> None:
        self._recorder = recorder
        self._crew = crew
        self._sampled = sampled
        self._lease_seconds = recorder.experiment.profile.policies.lease_seconds
        self._holder = recorder.experiment.holder or f"{getpass.getuser()}@{socket.gethostname()}"
        self._lost: dict[str, str] = {}
        self._remarks: dict[str, Remarks] = {}
        self._joined: set[str] = set()

    @property
    def holder(self) -> str:
        return self._holder

    @property
    def window_over(self) -> bool:
        left = self._window_left()
        return left is not None and left <= 0

    async def start(self) -> None:
        """Start, or find, the guard of every node. Raises `InputError`, `ServiceError`, `NodeError`."""
        statuses = await together(self._start(member) for member in self._crew.values())
        for member, status in zip(self._crew.values(), statuses, strict=True):
            self._take(member.name, status)
            self._seen(member.name, status.phase, self._lease_seconds, status.detail)
            require_time(member.name, status)

    async def keep(self) -> None:
        """Renew the leases and collect samples until cancelled; a node without contact is tried again.

        Raises `LeaseOver` once a guard has begun to bring the service back.
        """
        await together(self._keep(member) for member in self._crew.values())

    async def phase(self, phase: agent.Phase) -> None:
        """Tell the guards what is going on, which decides the floor they hold; a lost link is waited for."""
        await together(
            with_contact(self._crew, partial(self._renew, member, self._lease_seconds, phase))
            for member in self._crew.values()
        )

    async def leave(self, *, hand_over: bool = False) -> datetime:
        """The last renewal, before the console ends with jobs running. Returns when the first one ends.

        `hand_over`: the guards bring the service back now and not when the window ends.
        """
        longest = HAND_OVER_SECONDS if hand_over else LEAVING_SECONDS
        seconds = min(self._window_left() or longest, longest)
        await together(self._renew_last(member, seconds) for member in self._crew.values())
        ends = [node.lease_until for node in self._recorder.experiment.nodes.values() if node.lease_until]
        return min(ends, default=self._recorder.now())

    async def _renew_last(self, member: Member, seconds: float) -> None:
        try:
            await self._renew(member, seconds, None)
        except (NodeError, ServiceError) as error:
            words = "the last renewal failed, so the lease before it counts"
            self._recorder.trouble(words, error, node=member.name)

    async def end(self) -> None:
        """End the guards; refused by a node whose service is not proven healthy."""
        for member in self._crew.values():
            await self._end(member)

    async def dismiss(self) -> None:
        """After a failure with nothing left to guard: end the guards that this console started or joined.

        One that can't be reached ends with its lease.
        """
        for member in self._crew.values():
            if member.name not in self._joined:
                continue
            try:
                await self._end(member)
            except (NodeError, ServiceError) as error:
                self._recorder.trouble("the guard stays until its lease ends", error, node=member.name)

    async def _end(self, member: Member) -> None:
        await self._collect(member)
        status = await agent.end_guard(member.node, self._recorder.experiment.name, holder=self._holder)
        self._seen(member.name, "ended", None, status.detail)

    async def statuses(self) -> dict[str, GuardStatus]:
        """What every node says of its guard, alive or not."""
        name = self._recorder.experiment.name
        found = await together(agent.guard_status(m.node, name) for m in self._crew.values())
        return dict(zip(self._crew, found, strict=True))

    async def _start(self, member: Member) -> GuardStatus:
        profile = self._recorder.experiment.profile
        spec = GuardSpec(
            experiment=self._recorder.experiment.name,
            holder=self._holder,
            lease_seconds=self._lease_seconds,
            window_seconds_left=self._window_left(),
            floors=Floors(
                training_bytes=profile.policies.floor_bytes,
                restoring_bytes=profile.policies.restoring_floor_bytes,
                hold_seconds=profile.policies.floor_hold_seconds,
            ),
            answers=self.answers(member.name),
            restore_delay_seconds=self._restore_delay(member.name),
            gpu=member.spec.gpu or 0,
        )
        status = await agent.start_guard(member.node, spec, service_of(profile, member, list(self._crew)))
        self._joined.add(member.name)
        return status

    def answers(self, node: str) -> bool:
        """Whether the service's HTTP interface is on this node."""
        return answers_on(self._recorder.experiment.profile.service, node, list(self._crew))

    def _restore_delay(self, node: str) -> float:
        """Without a console the head waits so that the workers start first."""
        order = start_order(self._recorder.experiment.profile.service, list(self._crew))
        return SECONDS_APART * order.index(node) if node in order else 0.0

    def _window_left(self) -> float | None:
        ends = self._recorder.experiment.window_ends
        return None if ends is None else (ends - self._recorder.now()).total_seconds()

    async def _keep(self, member: Member) -> None:
        loop = asyncio.get_running_loop()
        renew_at = loop.time()
        while True:
            try:
                status = await self._collect(member)
                require_time(member.name, status)
                if not status.alive or loop.time() >= renew_at:
                    await self._renew(member, self._lease_seconds, None)
                    renew_at = loop.time() + self._lease_seconds / RENEWALS_PER_LEASE
                self._lost.pop(member.name, None)
            except LeaseOver:
                raise
            except NodeError as error:
                if member.node.link.state == "up":  # a lost link tells of itself, once
                    self._once(member.name, error)
            except ServiceError as error:
                await self._start_again(member, error)
            await asyncio.sleep(SAMPLES_SECONDS)

    async def _start_again(self, member: Member, error: ServiceError) -> None:
        """A guard that is gone is replaced while there is time left: its node may hold the service.

        Raises `LeaseOver` when it ended because the time was over, or the window is over now.
        """
        news = self._once(member.name, error)
        try:
            status = await agent.guard_status(member.node, self._recorder.experiment.name)
            if status.alive:
                return  # it stands and refused: a full disk, or another holder
            if news:
                self._seen(member.name, "gone", None, error.what)
            require_time(member.name, status)
            if self.window_over:
                raise LeaseOver(member.name, "window over")
            status = await self._start(member)
        except LeaseOver:
            raise
        except (NodeError, ServiceError) as second:
            self._once(member.name, second)
            return
        self._seen(member.name, status.phase, self._lease_seconds, "started again: it was gone")

    async def _collect(self, member: Member) -> GuardStatus:
        journal = self._recorder.journal
        guard = self._recorder.experiment.name
        newest = journal.newest_sample(member.name, guard)
        status, samples = await agent.follow_guard(member.node, guard, since=max(newest, 0))
        if self._take(member.name, status):
            self._seen(member.name, status.lease.state, status.lease.seconds_left, status.detail)
        if samples:
            journal.add_samples(member.name, guard, samples, self._recorder.now())
            if self._sampled is not None:
                self._sampled(member.name, samples[-1])
        return status

    def _take(self, node: str, status: GuardStatus) -> bool:
        """Take in what the guard remarks on; returns whether that is new."""
        back = None
        if status.came_back_at is not None:
            back = self._recorder.now() - timedelta(seconds=max(0.0, status.at - status.came_back_at))
        before, after = self._remarks.get(node, Remarks()), Remarks(status.risk, back)
        if (before.risk, before.came_back_at is None) == (after.risk, after.came_back_at is None):
            return False
        self._remarks[node] = after
        if after.risk and after.risk != before.risk:
            self._recorder.note(f"the guard may be ended: {after.risk}", node=node)
        if back is not None and before.came_back_at is None:
            self._recorder.note("the service came back by itself; it takes memory from the runs", node=node)
        return True

    async def _renew(self, member: Member, seconds: float, phase: agent.Phase | None) -> None:
        lease = await agent.renew_lease(
            member.node,
            self._recorder.experiment.name,
            holder=self._holder,
            lease_seconds=seconds,
            window_seconds_left=self._window_left(),
            phase=phase,
        )
        self._seen(member.name, lease.state, lease.seconds_left, "")
        if lease.state != "held":
            raise LeaseOver(member.name, lease.state)

    def _seen(self, node: str, state: str, seconds_left: float | None, words: str) -> None:
        now = self._recorder.now()
        self._recorder.record(
            ev.GuardSeen(
                at=now,
                node=node,
                state=state,
                lease_until=None if seconds_left is None else now + timedelta(seconds=seconds_left),
                floor_bytes=self._recorder.experiment.profile.policies.floor_bytes or None,
                words=words,
                risk=self._remarks.get(node, Remarks()).risk,
                came_back_at=self._remarks.get(node, Remarks()).came_back_at,
            )
        )

    def _once(self, node: str, error: NodeError | ServiceError) -> bool:
        """Note a trouble when it begins or changes, not at every turn; returns whether it was noted."""
        if self._lost.get(node) == error.what:
            return False
        self._lost[node] = error.what
        self._recorder.trouble("guard", error, node=node)
        return True


def this_console() -> tuple[int, str]:
    """pid and host name, as the journal notes them."""
    return os.getpid(), socket.gethostname()
