"""How long bringing the service back takes: measured in this lab or an earlier one, or from the profile."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from console.core.errors import LabError, NodeError, ServiceError
from console.core.plan.custody import AccountLine, RestoreOutcome, ServiceTimes
from console.core.plan.service import BorrowedService
from console.core.record.events import ServiceChanged
from console.engine.crew import Member
from console.engine.recorder import Recorder
from console.journal import Journal
from console.journal.journal import FILE
from console.nodes import service as adapters
from console.nodes.service.stages import WORDS, StageClock, eta_seconds, read_start

LOOK_SECONDS = 5.0
"""Between two looks at the starting service's log."""
EARLIER_EXPERIMENTS = 10
TO_THE_FIRST_ANSWER = ("running", "health")


def measured(
    spec: BorrowedService, outcome: RestoreOutcome, stages: Mapping[str, float]
) -> ServiceTimes | None:
    """The lengths of a restore that started the service and proved it; None for any other."""
    if outcome.health is None or not outcome.health.healthy or outcome.started_at is None:
        return None
    load = sum(rung.seconds for rung in outcome.health.rungs if rung.name in TO_THE_FIRST_ANSWER)
    return ServiceTimes(
        service=spec.name,
        load_seconds=load,
        ready_seconds=outcome.health.seconds - load,
        whole_seconds=outcome.seconds,
        stages=dict(stages),
    )


def expected(
    specs: Mapping[str, BorrowedService], history: Mapping[str, Sequence[ServiceTimes]]
) -> tuple[float, str]:
    """Seconds from the first node's start to the last one's proof, and where the figure comes from.

    Nodes are brought back one after another. `history` holds earlier restores by node, newest first.
    """
    if all(history.get(node) for node in specs):
        return sum(history[node][0].whole_seconds for node in specs), "measured at the last restore"
    if all(spec.restore_seconds is not None for spec in specs.values()):
        return sum(spec.restore_seconds or 0.0 for spec in specs.values()), "profile"
    longest = sum(spec.ready_timeout_seconds for spec in specs.values())
    return longest, "not measured yet; the longest the profile allows"


def history(folder: Path, specs: Mapping[str, BorrowedService]) -> dict[str, list[ServiceTimes]]:
    """Restores of this service by node, newest first: of this experiment, then of those beside it."""
    found: dict[str, list[ServiceTimes]] = {node: [] for node in specs}
    for place in (folder, *_beside(folder)):
        for node, times in _measured_in(place):
            if node in specs and times.service == specs[node].name:
                found[node].append(times)
    return found


def _beside(folder: Path) -> list[Path]:
    """The newest experiments in the same place."""
    try:
        dated = [(file.stat().st_mtime, file.parent) for file in folder.parent.glob(f"*/{FILE}")]
    except OSError:
        return []
    return [place for _, place in sorted(dated, reverse=True) if place != folder][:EARLIER_EXPERIMENTS]


def _measured_in(folder: Path) -> list[tuple[str, ServiceTimes]]:
    """What one journal tells, newest first; one that can't be read tells nothing: no restore waits for it."""
    try:
        with Journal(folder, read_only=True) as journal:
            changes = [event for _, event in journal.events(kind="service changed")]
        return [
            (event.node, ServiceTimes.model_validate(event.details["times"]))
            for event in reversed(changes)
            if isinstance(event, ServiceChanged) and event.node and "times" in event.details
        ]
    except (LabError, ValidationError, OSError):
        return []


class StartWatch:
    """Reads the log of a service while it starts, and tells each new stage with the time that is left."""

    def __init__(
        self, recorder: Recorder, member: Member, spec: BorrowedService, earlier: Sequence[ServiceTimes]
    ) -> None:
        self._recorder = recorder
        self._member = member
        self._spec = spec
        self._earlier = [times.stages for times in earlier if times.stages]
        self._clock: StageClock | None = None
        self._since = 0.0
        self._told = ""

    @property
    def stages(self) -> Mapping[str, float]:
        """Seconds of every stage that has ended."""
        return self._clock.times if self._clock else {}

    def heard(self, line: AccountLine) -> None:
        """Take in a line of the account: the one that announces the start begins the watch."""
        if line.what == "starting":
            self._since, self._clock = line.at, StageClock(asyncio.get_running_loop().time())

    async def follow(self) -> None:
        """Look until cancelled, or until the service's log can't be had."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except ServiceError as error:
                self._recorder.note(f"{error.what}: {error.why}", node=self._member.name, level="info")
                return
            except NodeError:
                continue  # a lost link is told by the link itself

    async def look(self) -> None:
        """One look. Raises `ServiceError`, `NodeError`."""
        if self._clock is None:
            return
        log = await adapters.service_log(self._member.node, self._spec, since=self._since)
        start = read_start(log)
        in_stage = self._clock.saw(start, asyncio.get_running_loop().time())
        if start.stage == self._told:
            return
        self._told = start.stage
        left, source = eta_seconds(start, in_stage, self._earlier)
        rest = f"; about {max(1, round(left / 60))} min more ({source})" if left else ""
        self._recorder.record(
            ServiceChanged(
                at=self._recorder.now(),
                node=self._member.name,
                state="restoring",
                words=f"{WORDS[start.stage]}{rest}",
            )
        )
