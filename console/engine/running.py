"""One run from its plan to its end: started or adopted, watched, ended, and what became of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from console.core.errors import LabError, LeaseOver, NodeError
from console.core.plan.launch import Launch
from console.core.reading.facts import LogFact
from console.core.reading.failure import failure_cause
from console.core.reading.trainlog import TrainLog
from console.core.record import events as ev
from console.core.record.figures import Source
from console.core.record.views import RunView
from console.engine.contact import NEEDS_A_PERSON, with_contact
from console.engine.crew import Crew
from console.engine.diagnosing import Diagnosing
from console.engine.jobs_of_run import GONE, JobsOfRun
from console.engine.listeners import Listeners
from console.engine.recorder import Recorder
from console.engine.watching import LogWatch, mirrored_log, relative_mirror
from console.nodes.mirror import MirrorProof

LOOK_SECONDS = 1.0
ENDING_SECONDS = 15.0
"""What the other nodes get to end by themselves after one node's job failed."""

_NO_LAST_LINE = "exit 0, but the log lacks the framework's last line"

Outcome = Literal["done", "failed", "stopped", "timed out"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run to be carried out, or to be taken up again when the journal knows it already."""

    id: str
    config: str
    attempt: int
    purpose: Literal["matrix", "smoke"]
    framework: Literal["swift", "megatron"]
    launches: tuple[Launch, ...]
    settings: dict[str, object]
    limit_seconds: float | None = None

    @property
    def log_node(self) -> str:
        return next(launch.node for launch in self.launches if launch.shows_log)


class Running:
    """Carries out runs, one at a time."""

    def __init__(self, recorder: Recorder, crew: Crew, diagnosing: Diagnosing) -> None:
        self._recorder = recorder
        self._crew = crew
        self._diagnosing = diagnosing
        self.log_listeners = Listeners[str, str]()
        """Told of the run and the node whose log grew."""
        self._stop_wish: dict[str, str] = {}
        self._woken = asyncio.Event()

    def wish_stop(self, run: str, reason: str) -> None:
        """Have the run ended at the next look."""
        self._stop_wish[run] = reason
        self._woken.set()

    async def look_once(self) -> None:
        """Ask the nodes once about the run under way: what is then said of its jobs is no older than that."""
        run = self._recorder.experiment.current_run
        if run is None:
            return
        try:
            await JobsOfRun(self._recorder, self._crew, run.id, run.launches).look()
        except NodeError as error:
            self._recorder.trouble("its job could not be looked at", error, node=error.node, run=run.id)

    def abandon(self, run: str, why: str) -> None:
        """Record the end of a run that is waited for no longer; its jobs are ended before the next start."""
        self._end(run, "timed out", why, {})

    async def carry(self, request: RunRequest) -> RunView:
        """Start or adopt the run and return when it has ended and its logs are complete.

        A cancelled call leaves the jobs alone. A lost link is waited for. A run whose jobs can't be started
        is recorded as failed. Raises `NEEDS_A_PERSON`, `LeaseOver`.
        """
        if request.id not in self._recorder.experiment.runs:
            self._plan(request)
        launches = self._recorder.experiment.runs[request.id].launches
        jobs = JobsOfRun(self._recorder, self._crew, request.id, launches)
        try:
            await jobs.start()
        except (*NEEDS_A_PERSON, LeaseOver):
            raise
        except LabError as error:
            self._end(request.id, "failed", error.render(), {})
            return self._recorder.experiment.runs[request.id]
        self._diagnosing.begin(self._recorder.experiment.runs[request.id], request.framework)
        watches = {
            launch.node: LogWatch(
                self._recorder,
                self._crew[launch.node].node,
                request.id,
                counts=launch.node == request.log_node,
                framework=request.framework,
                told=partial(self._told, request.id),
                reader=self._diagnosing.reader(request.framework),
            )
            for launch in launches
        }
        try:
            for watch in watches.values():
                await watch.start()
            stopped = await self._until_over(request, jobs, watches)
            proofs = {node: await self._finished(watch) for node, watch in watches.items()}
        finally:
            for watch in watches.values():
                await watch.close()
            self._diagnosing.end()
        return self._conclude(request, jobs, proofs, stopped)

    def _told(self, run: str, node: str, facts: Sequence[LogFact]) -> None:
        self._diagnosing.told(node, facts)
        self.log_listeners.tell(run, node)

    async def _finished(self, watch: LogWatch) -> MirrorProof | None:
        """The proof of a complete log, or None with a note: a log that can't be had ends no lab."""
        try:
            return await with_contact(self._crew, watch.finish)
        except NEEDS_A_PERSON:
            raise
        except NodeError as error:
            watch.give_up(error)
            return None

    def _plan(self, request: RunRequest) -> None:
        self._recorder.record(
            ev.RunPlanned(
                at=self._recorder.now(),
                run=request.id,
                config=request.config,
                attempt=request.attempt,
                purpose=request.purpose,
                launches=tuple(
                    ev.NodeLaunch(node=launch.node, rank=launch.rank, argv=launch.argv, env=launch.env)
                    for launch in request.launches
                ),
                log_node=request.log_node,
                settings=request.settings,
            )
        )

    async def _until_over(
        self, request: RunRequest, jobs: JobsOfRun, watches: dict[str, LogWatch]
    ) -> Outcome | None:
        """Look until every node says that its job is over. Returns why it was ended by us, or None."""
        loop = asyncio.get_running_loop()
        planned = self._recorder.experiment.runs[request.id].planned_at
        used = (self._recorder.now() - planned).total_seconds()
        limit = None if request.limit_seconds is None else loop.time() + request.limit_seconds - used
        failed_at: float | None = None
        ended_by_us: Outcome | None = None
        while True:
            await jobs.look()
            for watch in watches.values():
                watch.look()
            self._diagnosing.look(jobs.states)
            if jobs.over:
                return ended_by_us
            if ended_by_us is None:
                failed_at = failed_at or (loop.time() if jobs.one_failed else None)
                if request.id in self._stop_wish:
                    ended_by_us = "stopped"
                elif limit is not None and loop.time() > limit:
                    ended_by_us = "timed out"
                elif failed_at is not None and loop.time() - failed_at > ENDING_SECONDS:
                    ended_by_us = "failed"
            if ended_by_us is not None:
                await jobs.stop()
            await self._wait()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()

    def _conclude(
        self,
        request: RunRequest,
        jobs: JobsOfRun,
        proofs: dict[str, MirrorProof | None],
        ended_by_us: Outcome | None,
    ) -> RunView:
        folder = self._recorder.journal.folder
        logs = {node: mirrored_log(folder, node, request.id, request.framework) for node in proofs}
        sources = {
            node: Source(
                words="the whole log" if proof.same else "the log; the node's copy differs now",
                file=relative_mirror(node, request.id),
                node=node,
                start_byte=0,
                end_byte=proof.size_bytes,
                sha256=proof.sha256,
            )
            for node, proof in proofs.items()
            if proof is not None
        }
        outcome, cause = self._outcome(request, jobs, logs, ended_by_us)
        if outcome == "failed" and cause == _NO_LAST_LINE and request.log_node not in sources:
            cause = "exit 0, but its log could not be fetched whole from the node"
        self._end(request.id, outcome, cause, sources)
        return self._recorder.experiment.runs[request.id]

    def _outcome(
        self, request: RunRequest, jobs: JobsOfRun, logs: dict[str, TrainLog], ended_by_us: Outcome | None
    ) -> tuple[Outcome, str]:
        """Success is exit 0 on every node and the framework's own last line; nothing else is."""
        if ended_by_us in ("stopped", "timed out"):
            default = f"not ended after {request.limit_seconds:g} s" if request.limit_seconds else "time box"
            return ended_by_us, self._stop_wish.pop(request.id, default)
        codes = {node: state.exit_code for node, state in jobs.states.items()}
        if all(code == 0 for code in codes.values()) and logs[request.log_node].ended:
            return "done", ""
        ours = [node for node in codes if node in jobs.stopped_by_us]
        ended = (
            f"; {' and '.join(ours)} {'were' if ours[1:] else 'was'} then ended by the console"
            if ours
            else ""
        )
        found = failure_cause(logs, jobs.ended_badly)
        vanished = [node for node, state in jobs.states.items() if state.state in GONE]
        if vanished and (found is None or found.secondary):
            words = "the job is gone without an exit status (killed, or a restart)"
            return "failed", f"{', '.join(vanished)}: {words}{ended}"
        if found is not None:
            advice = f"\n  next: {found.next_step}" if found.next_step else ""
            return "failed", f"{found.node}: {found.words}{ended}{advice}"
        bad = ", ".join(f"{node} exit {code}" for node, code in codes.items() if code and node not in ours)
        return "failed", (bad or _NO_LAST_LINE) + ended

    def _end(self, run: str, outcome: Outcome, cause: str, logs: dict[str, Source]) -> None:
        self._recorder.record(
            ev.RunEnded(at=self._recorder.now(), run=run, outcome=outcome, cause=cause, logs=logs)
        )
