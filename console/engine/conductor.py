"""The whole lab in order: prerequisites, service stopped, checklist, hypotheses, matrix, service back."""

import asyncio
from functools import partial
from typing import Any

from console.core.errors import LabError, LeaseOver
from console.core.plan.checklist import Verdict
from console.core.reading.diagnosis import Rules
from console.core.record import events as ev
from console.core.record.acceptance import accepted
from console.engine import prerequisites
from console.engine.choices import stop_lab
from console.engine.contact import with_contact
from console.engine.crew import Crew
from console.engine.decisions import Decisions
from console.engine.diagnosing import Diagnosing
from console.engine.guarding import Guarding, this_console
from console.engine.lending import Lending
from console.engine.matrix_walk import MatrixWalk
from console.engine.recorder import Recorder
from console.engine.running import Running
from console.engine.steps import StepRunner
from console.engine.walking import Walk, WalkStopped
from console.nodes import agent


class Conductor:
    """Takes an experiment from wherever its journal says it stands to its end."""

    def __init__(self, recorder: Recorder, crew: Crew, rules: Rules, *, headless: bool) -> None:
        self.recorder = recorder
        self.crew = crew
        self.headless = headless
        self.decisions = Decisions(recorder, headless=headless)
        self.diagnosing = Diagnosing(recorder, rules)
        self.guarding = Guarding(recorder, crew, sampled=self.diagnosing.sampled)
        self.lending = Lending(recorder, crew, self.guarding, self.decisions)
        self.running = Running(recorder, crew, self.diagnosing)
        self.matrix = MatrixWalk(recorder, crew, self.running, self.decisions)
        self._conducting = False
        self._work: asyncio.Task[None] | None = None
        self._restore_wish: str | None = None
        self._sealed = asyncio.Event()

    async def conduct(self) -> str:
        """Run to the end; returns the outcome. Cancelling leaves jobs and guards at work.

        Raises `LabError` when a person is needed; the service was then brought back if that was possible.
        """
        if self.recorder.experiment.outcome is not None:
            return self.recorder.experiment.outcome
        self._conducting = True
        try:
            return await self._conduct()
        finally:
            self._conducting = False

    async def _conduct(self) -> str:
        pid, host = this_console()
        self.recorder.record(
            ev.ConsoleAttached(at=self.recorder.now(), pid=pid, host=host, headless=self.headless)
        )
        try:
            await self.guarding.start()
            stopped, healthy = await self._guarded()
        except LabError:
            if not self.lending.owed and not self.recorder.experiment.running_jobs:
                await self.guarding.dismiss()
            raise
        if healthy:
            await with_contact(self.crew, self.guarding.end)
        return self._close(stopped, healthy)

    async def _guarded(self) -> tuple[str | None, bool]:
        """The lab under guard: why it was stopped early, if it was, and whether the service is back."""
        keeper = asyncio.create_task(self.guarding.keep(), name="guard keeper")
        try:
            stopped = await self._lab_until_stopped(keeper)
            if self.lending.lab_over is None:
                self.lending.announce_return(stopped or "the lab is done", lab_over=stopped or "")
            return stopped, await with_contact(self.crew, self.lending.give_back)
        finally:
            await _end(keeper)

    async def restore_now(self, reason: str) -> None:
        """End the lab's jobs and bring the service back, whatever is going on.

        Returns once the wish is in the journal; after the lab's end, once the service is back or a person
        decided to leave it. Raises `LabError` when that fails.
        """
        self._restore_wish = reason
        if self.lending.owed:
            self.lending.announce_return(reason, lab_over=reason)
        else:
            self.recorder.note(f"the end of the lab was asked for: {reason}", level="info")
        if not self._conducting:
            await self._restore_after_the_end(reason)
        elif self._work is not None:
            self._work.cancel()

    async def _restore_after_the_end(self, reason: str) -> None:
        await self._end_jobs(reason)
        if await with_contact(self.crew, partial(self.lending.give_back, again=True)):
            await with_contact(self.crew, self.guarding.end)

    async def leave(self) -> None:
        """Say goodbye in order: the guards keep the jobs until the last renewal runs out.

        A service that is on its way back is not kept waiting: the guards take it up at once.
        """
        until = await self.guarding.leave(hand_over=self.lending.returning)
        await self.running.look_once()
        jobs = tuple(f"{run} on {node}" for run, node in self.recorder.experiment.running_jobs)
        if jobs:
            words = f"jobs go on; without a console the nodes end them at {until:%H:%M} UTC"
            self.recorder.note(words, level="info")
        if self.lending.owed:
            words = (
                f"the service is not back; without a console the guards bring it back at {until:%H:%M} UTC"
            )
            self.recorder.note(words)
        self.recorder.record(ev.ConsoleLeft(at=self.recorder.now(), running=jobs))

    def seal(self, texts: dict[str, str]) -> None:
        """Write the hypotheses; the matrix waits for them."""
        self.matrix.seal(texts)
        self._sealed.set()

    async def _lab_until_stopped(self, keeper: asyncio.Task[Any]) -> str | None:
        """The lab; returns why it was stopped early, or None. The service is given back in every case.

        Nothing of the lab goes on once the way back has begun, be it in an earlier console.
        """
        over = self.lending.lab_over if self._restore_wish is None else self._restore_wish
        if over is not None:
            await self._end_jobs(over)
            return over or None
        self._work = asyncio.create_task(self._lab(), name="lab")
        try:
            await asyncio.wait({self._work, keeper}, return_when=asyncio.FIRST_COMPLETED)
            if keeper.done():
                keeper.result()
            if not self._work.cancelled():
                self._work.result()
                return None
            assert self._restore_wish is not None  # nothing else cancels the lab alone
            await self._end_jobs(self._restore_wish)
            return self._restore_wish
        except WalkStopped as wish:
            return wish.reason
        except LabError as error:
            await _end(self._work)
            await self._after_error(error)
            raise
        finally:
            await _end(self._work)

    async def _lab(self) -> None:
        experiment = self.recorder.experiment
        if not experiment.prerequisites:
            await prerequisites.check(self.recorder, self.crew)
        await with_contact(self.crew, self.lending.borrow)
        await self.guarding.phase("training")
        verdict = await Walk(
            self.recorder, StepRunner(self.recorder, self.crew, self.running), self.decisions
        ).walk()
        if verdict is Verdict.DOWN:
            await self._main_line_down()
        await self._hypotheses()
        await self.matrix.walk()

    async def _main_line_down(self) -> None:
        """Degrade, go on, or stop, as it is decided; the reason goes into the report's head."""
        experiment = self.recorder.experiment
        reasons = "; ".join(
            f"item {item.number} {item.title}: {view.reason}"
            for item in experiment.checklist.items
            if (view := experiment.items[item.id]).state.concluded and not view.state.good
        )
        choice = await self.decisions.ask(
            "walk",
            subject="the main line is down",
            what_happened="the experiment as planned is not possible on these machines",
            raw_error=reasons,
            choices=(
                ev.Choice(
                    id="degrade", words="Degrade", leads_to="the degraded path runs; its report says why"
                ),
                ev.Choice(id="go on", words="Go on", leads_to="the matrix as planned; runs may fail"),
                stop_lab(experiment.profile),
            ),
            policy=experiment.profile.policies.walk_failed,
        )
        if choice == "stop":
            raise WalkStopped("stop", f"main line down: {reasons}")
        if choice == "degrade" and experiment.degraded is None:
            known = experiment.profile.degraded
            reason = f"{known}. {reasons}" if known else reasons
            self.recorder.record(ev.Degraded(at=self.recorder.now(), reason=reason))

    async def _hypotheses(self) -> None:
        """Expectations are sealed before the first run; without a screen those of the profile are taken."""
        experiment = self.recorder.experiment
        if experiment.hypotheses_at is not None:
            return
        if self.headless:
            profile = experiment.profile
            self.seal({name: profile.configuration(name).expect for name in experiment.configurations})
            return
        await self._sealed.wait()

    async def _end_jobs(self, reason: str) -> None:
        """End every job of the experiment, and the open run with them.

        Where that can't be done it is noted: the restore on that node ends them before it starts the service.
        """
        for member in self.crew.values():
            try:
                await agent.end_jobs(member.node, self.recorder.experiment.name)
            except LabError as error:
                self.recorder.note(error.render(), node=member.name, level="error")
        open_run = self.recorder.experiment.current_run
        if open_run is not None:
            self.recorder.record(
                ev.RunEnded(at=self.recorder.now(), run=open_run.id, outcome="stopped", cause=reason)
            )

    async def _after_error(self, error: LabError) -> None:
        """Note the error; bring the service back if it was stopped, or say who will."""
        self.recorder.note(error.render(), level="error")
        if not self.lending.owed and not isinstance(error, LeaseOver):
            return
        self.lending.announce_return(error.what)
        try:
            await self._end_jobs(error.what)
            await with_contact(self.crew, self.lending.give_back)
        except LabError as second:
            words = f"{second.render()}\n  the guard on the node restores the service when its lease runs out"
            self.recorder.note(words, level="error")

    def _close(self, stopped: str | None, healthy: bool) -> str:
        good = stopped is None and healthy and accepted(self.recorder.experiment)
        outcome = "accepted" if good else "stopped" if stopped else "fell short"
        words = stopped or ("" if healthy else "the service is not proven healthy")
        self.recorder.record(
            ev.ExperimentClosed.model_validate(
                {"at": self.recorder.now(), "outcome": outcome, "words": words}
            )
        )
        return outcome


async def _end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for it; what it raised was looked at elsewhere, or comes too late to matter."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
