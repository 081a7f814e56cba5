"""The jobs of one run on their nodes: started or adopted together, looked at, stopped together."""

import asyncio
from collections.abc import Sequence
from functools import partial

from console.core.errors import LabError, NodeError, Unreachable
from console.core.record import events as ev
from console.core.record.events import NodeLaunch
from console.engine.contact import NEEDS_A_PERSON, with_contact
from console.engine.crew import Crew
from console.engine.guarding import require_time
from console.engine.recorder import Recorder
from console.nodes import agent, jobs

GONE = ("vanished", "absent")
"""Without an exit status; absent: even the run folder is gone."""
OVER = ("ended", *GONE)
GRACE_SECONDS = 20.0
"""Between SIGTERM and SIGKILL."""


class JobsOfRun:
    """Talks to all nodes of a run at once; a node without contact keeps its last known state."""

    def __init__(self, recorder: Recorder, crew: Crew, run: str, launches: Sequence[NodeLaunch]) -> None:
        self._recorder = recorder
        self._crew = crew
        self._run = run
        self._launches = launches
        self.states: dict[str, jobs.JobState] = {}
        self.stopped_by_us: set[str] = set()
        """Nodes whose job was still going when it was told to stop."""
        self._stopped: set[str] = set()
        self._troubles: dict[tuple[str, str], str] = {}

    @property
    def over(self) -> bool:
        """Every job has ended or is gone, as its own node says."""
        return len(self.states) == len(self._launches) and all(s.state in OVER for s in self.states.values())

    @property
    def one_failed(self) -> bool:
        """A job ended badly or is gone while another goes on."""
        bad = [s for s in self.states.values() if s.state in GONE or s.exit_code not in (None, 0)]
        return bool(bad) and not self.over

    @property
    def ended_badly(self) -> dict[str, float]:
        """When each job that failed by itself was seen to be over, in seconds of the journal's clock."""
        seen = self._recorder.experiment.runs[self._run].jobs
        return {
            node: since.timestamp()
            for node, state in self.states.items()
            if state.state in OVER
            and state.exit_code != 0
            and node not in self.stopped_by_us
            and node in seen
            and (since := seen[node].since) is not None
        }

    async def start(self) -> None:
        """Start what was not started, waiting for nodes out of contact.

        Raises the first `NodeError` or `LeaseOver`, after stopping what did start.
        """
        began = await asyncio.gather(
            *(with_contact(self._crew, partial(self._start, launch)) for launch in self._launches),
            return_exceptions=True,
        )
        failed = [result for result in began if isinstance(result, BaseException)]
        if failed:
            await self.stop()
            raise next((error for error in failed if isinstance(error, LabError)), failed[0])

    async def look(self) -> None:
        """Ask every node that can be reached; record what changed. Raises `NEEDS_A_PERSON`."""
        await asyncio.gather(*(self._look(launch.node) for launch in self._launches))

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """End the jobs on every node that can be reached; what can't be ended is noted.

        Called again, it turns to the nodes that could not be reached before.
        """
        nodes = [launch.node for launch in self._launches if launch.node not in self._stopped]
        self.stopped_by_us.update(
            node for node in nodes if node in self.states and self.states[node].state not in OVER
        )
        await asyncio.gather(*(self._stop(node, grace_seconds) for node in nodes))

    async def _start(self, launch: NodeLaunch) -> None:
        await self._end_leftovers(launch.node)
        node, experiment = self._crew[launch.node].node, self._recorder.experiment.name
        require_time(launch.node, await agent.guard_status(node, experiment))
        plan = jobs.JobPlan(experiment=experiment, run=self._run, argv=launch.argv, env=launch.env)
        began = await jobs.start(node, plan)
        self._recorder.record(
            ev.JobStarted(
                at=self._recorder.now(),
                node=launch.node,
                run=self._run,
                pid=began.pid,
                rung=began.rung,
                run_dir=began.run_dir,
                adopted=began.adopted,
            )
        )
        if began.note:
            self._recorder.note(began.note, node=launch.node, run=self._run)

    async def _end_leftovers(self, node: str) -> None:
        """End jobs of runs that were given up without contact: they would share the memory with ours."""
        for run in self._recorder.experiment.runs.values():
            job = run.jobs.get(node)
            if run.outcome is None or job is None or job.state in ("ended", "vanished"):
                continue
            earlier = JobsOfRun(self._recorder, self._crew, run.id, run.launches)
            await earlier._look(node)
            if (state := earlier.states.get(node)) is not None and state.state not in OVER:
                await earlier._stop(node, GRACE_SECONDS)
                await earlier._look(node)

    async def _look(self, node: str) -> None:
        try:
            state = await jobs.look(self._crew[node].node, self._recorder.experiment.name, self._run)
        except NEEDS_A_PERSON:
            raise
        except Unreachable:
            return
        except NodeError as error:
            self._trouble(node, "the job could not be looked at", error)
            return
        before = self._recorder.experiment.runs[self._run].jobs.get(node)
        self.states[node] = state
        if before is None or (before.state, before.exit_code) != (state.state, state.exit_code):
            self._recorder.record(
                ev.JobSeen(
                    at=self._recorder.now(),
                    node=node,
                    run=self._run,
                    state=state.state,
                    exit_code=state.exit_code,
                    why="the node was restarted" if state.boot_changed else "",
                )
            )

    async def _stop(self, node: str, grace_seconds: float) -> None:
        try:
            report = await jobs.stop(
                self._crew[node].node, self._recorder.experiment.name, self._run, grace_seconds
            )
        except NodeError as error:
            self._trouble(node, "the job could not be stopped", error)
            if not isinstance(error, Unreachable):
                self._stopped.add(node)
            return
        self._stopped.add(node)
        if report.left:
            words = f"processes left after stopping: {', '.join(map(str, report.left))}"
            self._recorder.note(words, node=node, run=self._run)

    def _trouble(self, node: str, what: str, error: NodeError) -> None:
        """Note a trouble when it begins or changes, not at every look."""
        if self._troubles.get((node, what)) != type(error).__name__:
            self._troubles[node, what] = type(error).__name__
            self._recorder.trouble(what, error, node=node, run=self._run)
