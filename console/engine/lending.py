"""The borrowed service: inspected, stopped node by node, and brought back, each step in the journal."""

import asyncio
import contextlib
import shlex
from collections.abc import Mapping

from console.core.errors import NodeError, ServiceError
from console.core.plan.custody import AccountLine, Health, RestoreOutcome, ServiceRecord, ServiceTimes
from console.core.plan.service import BorrowedService, NoService, start_order
from console.core.record import events as ev
from console.engine.crew import Crew, service_of
from console.engine.decisions import Decisions
from console.engine.guarding import Guarding
from console.engine.recorder import Recorder
from console.engine.returning import StartWatch, expected, history, measured
from console.nodes import service as adapters

FREE = ("stopped",)
BORROWED = ("memory free", "held by driver", "not released")
"""Of a node: nothing more is stopped there."""
BACK = ("healthy", "nothing to restore")
RETURNING = ("restoring", "not healthy")


class Lending:
    """Stops workers last and starts them first; records what it finds before it touches anything."""

    def __init__(self, recorder: Recorder, crew: Crew, guarding: Guarding, decisions: Decisions) -> None:
        self._recorder = recorder
        self._crew = crew
        self._guarding = guarding
        self._decisions = decisions

    @property
    def owed(self) -> bool:
        """The service was stopped by this experiment and is not proven healthy since."""
        return self._recorder.experiment.service.owed

    @property
    def returning(self) -> bool:
        """It is owed, and its way back has begun."""
        return self.owed and self._recorder.experiment.service.state in RETURNING

    @property
    def lab_over(self) -> str | None:
        """Why the lab was over when the way back began, empty when it was done; None while it is not over."""
        over = self._recorder.experiment.service.details.get("lab_over")
        return over if isinstance(over, str) else None

    def announce_return(self, words: str, *, lab_over: str | None = None) -> None:
        """Note that an owed service is to come back, before anything is done about it.

        With `lab_over` a later console, too, only brings it back, and does not take up the lab again.
        """
        if self.owed:
            self._say("restoring", words, details={} if lab_over is None else {"lab_over": lab_over})

    async def borrow(self) -> None:
        """Inspect and stop the service on its nodes, head first, and prove that the memory is free.

        Raises `ServiceError` when it can't be put back, so must not be stopped, when stopping failed, or when
        it is back although the journal has it stopped.
        """
        if isinstance(self._recorder.experiment.profile.service, NoService):
            self._say("none", "no service is borrowed")
            return
        known = self._recorder.experiment.service.nodes
        if all(node in known and known[node].state in BORROWED for node in self._nodes()):
            await self._still_borrowed()
            return
        records = await self._records()
        held = [node for node in reversed(self._nodes()) if not await self._stop(node, records[node])]
        words = f"the driver holds memory on {', '.join(held)}" if held else "its memory is free"
        state = "held by driver" if held else "memory free"
        self._say(state, f"stopped on every node; {words}", details=self._expected())

    async def _still_borrowed(self) -> None:
        """Raises `ServiceError` when a guard brought the service back while no console was here."""
        statuses, records = await self._guarding.statuses(), self._recorded()
        back = [
            node for node in self._nodes() if records[node].running and not statuses[node].service_touched
        ]
        for node in back:
            self._say("came back", "brought back by the guard while no console was here", node)
        if back:
            raise ServiceError(
                "the service was brought back while no console was here",
                node=back[0],
                why="the lease ran out, so the guard ended the lab's jobs and gave the machine back",
                next_step="the same command once more stops the service anew; or begin a new experiment",
            )

    async def give_back(self, *, again: bool = False) -> bool:
        """Bring the service back, workers first, and prove it healthy. Returns whether it is.

        A start that failed is never repeated blindly: it is a decision, which `again` says was made.
        """
        if isinstance(self._recorder.experiment.profile.service, NoService) or not self.owed:
            return True
        records = self._recorded()
        healthy = True
        for node in self._nodes():
            healthy = await self._restore(node, records[node], again) and healthy
        if healthy:
            self._say("healthy", "answers as before on every node")
        else:
            self._say("not healthy", "not proven on every node")
        return healthy

    async def health(self) -> dict[str, Health]:
        """The health ladder of every node of the service, climbed once; changes nothing."""
        records = self._recorded()
        return {
            node: await adapters.prove_health(
                self._crew[node].node,
                self._spec(node),
                records.get(node),
                answers=self._guarding.answers(node),
            )
            for node in self._nodes()
        }

    async def _records(self) -> dict[str, ServiceRecord]:
        """What was found, from the journal when an earlier console inspected already."""
        records = self._recorded()
        for node in self._nodes():
            if node in records:
                continue
            spec = self._spec(node)
            record = await adapters.inspect(self._crew[node].node, spec, answers=self._guarding.answers(node))
            if not record.can_be_restored:
                self._say("refused", record.refusal or "", node)
                raise ServiceError(
                    f"{spec.name} must not be stopped",
                    node=node,
                    why=record.refusal or "it could not be put back from what is known",
                    next_step=record.refusal_next_step or "",
                )
            records[node] = record
            self._say("serving", f"{spec.name} inspected", node, {"records": _dump(records)})
            for warning in record.warnings:
                self._recorder.note(warning, node=node)
        return records

    async def _stop(self, node: str, record: ServiceRecord) -> bool:
        """Stop it on one node; returns whether its memory is free there, or held by the driver."""
        spec, force = self._spec(node), False
        while True:
            self._say("stopping", _words(record, "stop"), node)
            outcome = await adapters.stop(
                self._crew[node].node,
                spec,
                record,
                experiment=self._recorder.experiment.name,
                answers=self._guarding.answers(node),
                force=force,
                on_progress=self._progress(node),
            )
            if outcome.state in FREE:
                self._say("stopped", outcome.detail, node)
                return True
            if outcome.state == "held by driver, perhaps reusable":
                self._say("held by driver", f"{outcome.detail}; {outcome.next_step}", node)
                return False
            force = await self._stop_failed(node, outcome.state, outcome.detail, outcome.next_step)

    async def _stop_failed(self, node: str, state: str, detail: str, next_step: str) -> bool:
        """Ask what to do about a stop that did not work; returns whether requests in flight are cut off."""
        if state == "came back by itself":
            self._say("came back", detail, node)
        elif state == "stopped but not released":
            self._say("not released", detail, node)
        attempt = sum(key.startswith(f"stop:{node}:") for key in self._recorder.experiment.decisions) + 1
        choice = await self._decisions.ask(
            f"stop:{node}:{attempt}",
            node=node,
            subject=f"the service on {node}: {state}",
            what_happened=f"{detail}. {next_step}",
            raw_error=detail,
            choices=(
                ev.Choice(
                    id="give up", words="Give up", leads_to="the service is brought back; no lab today"
                ),
                ev.Choice(id="again", words="Try again", leads_to="one more stop, draining requests first"),
                ev.Choice(id="cut off", words="Stop now", leads_to="requests in flight are lost"),
            ),
            policy="give up",
        )
        if choice == "give up":
            raise ServiceError(
                f"the service was not stopped: {state}", node=node, why=detail, next_step=next_step
            )
        return choice == "cut off"

    async def _restore(self, node: str, record: ServiceRecord, again: bool) -> bool:
        accept_held = False
        while True:
            self._say("restoring", _words(record, "start"), node)
            outcome, times = await self._start(node, record, again=again, accept_held=accept_held)
            if outcome.state in BACK:
                details = {"times": times.model_dump(mode="json")} if times else {}
                self._say("healthy", outcome.detail, node, details)
                return True
            self._say("not healthy", f"{outcome.state}: {outcome.detail}", node)
            attempt = (
                sum(key.startswith(f"restore:{node}:") for key in self._recorder.experiment.decisions) + 1
            )
            choice = await self._decisions.ask(
                f"restore:{node}:{attempt}",
                node=node,
                subject=f"the service on {node} is not back: {outcome.state}",
                what_happened=f"{outcome.detail}. {outcome.next_step}",
                raw_error=outcome.detail,
                choices=(
                    ev.Choice(id="leave", words="Leave it", leads_to="a person looks at it; exit code 3"),
                    ev.Choice(id="again", words="Start once more", leads_to="one more start"),
                    ev.Choice(
                        id="accept memory",
                        words="Start although memory is not free",
                        leads_to="the driver may reuse what it holds, or the start fails",
                    ),
                ),
                policy="leave",
            )
            if choice == "leave":
                return False
            again, accept_held = True, choice == "accept memory"

    async def _start(
        self, node: str, record: ServiceRecord, *, again: bool, accept_held: bool
    ) -> tuple[RestoreOutcome, ServiceTimes | None]:
        """One restore, and its lengths when it was a whole one; the log is read beside it."""
        member, spec = self._crew[node], self._spec(node)
        watch = StartWatch(self._recorder, member, spec, self._history()[node])
        tell = self._progress(node)

        def heard(line: AccountLine) -> None:
            tell(line)
            watch.heard(line)

        following = asyncio.create_task(watch.follow(), name=f"start of the service on {node}")
        try:
            outcome = await adapters.restore(
                member.node,
                spec,
                record,
                experiment=self._recorder.experiment.name,
                answers=self._guarding.answers(node),
                accept_held_memory=accept_held,
                again=again,
                on_progress=heard,
            )
        finally:
            following.cancel()
            await asyncio.wait({following})
        with contextlib.suppress(NodeError, ServiceError):
            await watch.look()
        return outcome, measured(spec, outcome, watch.stages)

    def _history(self) -> dict[str, list[ServiceTimes]]:
        return history(self._recorder.journal.folder, {node: self._spec(node) for node in self._nodes()})

    def _expected(self) -> dict[str, object]:
        """What the restore will take, for the state of the service."""
        specs = {node: self._spec(node) for node in self._nodes()}
        seconds, source = expected(specs, self._history())
        return {"restore_seconds": seconds, "restore_source": source}

    def _nodes(self) -> list[str]:
        return start_order(self._recorder.experiment.profile.service, list(self._crew))

    def _spec(self, node: str) -> BorrowedService:
        spec = service_of(self._recorder.experiment.profile, self._crew[node], list(self._crew))
        assert not isinstance(spec, NoService)
        return spec

    def _recorded(self) -> dict[str, ServiceRecord]:
        found = self._recorder.experiment.service.details.get("records", {})
        return {node: ServiceRecord.model_validate(record) for node, record in found.items()}

    def _progress(self, node: str) -> adapters.Progress:
        def tell(line: AccountLine) -> None:
            self._recorder.note(f"{line.what} {line.detail}".strip(), node=node, level="info")

        return tell

    def _say(
        self, state: str, words: str, node: str | None = None, details: Mapping[str, object] | None = None
    ) -> None:
        self._recorder.record(
            ev.ServiceChanged.model_validate(
                {
                    "at": self._recorder.now(),
                    "node": node,
                    "state": state,
                    "words": words,
                    "details": details or {},
                }
            )
        )


def _dump(records: dict[str, ServiceRecord]) -> dict[str, object]:
    return {node: record.model_dump(mode="json") for node, record in records.items()}


def _words(record: ServiceRecord, name: str) -> str:
    """The commands of that name as a person would type them."""
    return "; ".join(shlex.join(command) for command in record.commands.get(name, ()))
