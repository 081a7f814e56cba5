"""The walk through the matrix: every configuration once, again when it was decided so, each with its row."""

from dataclasses import dataclass

from console.core.plan.matrix import hypothesis_hash
from console.core.record import events as ev
from console.core.record.figures import Source
from console.core.record.rows import LoggedRun
from console.core.record.views import RunView
from console.engine.choices import passing, stop_lab
from console.engine.contact import with_contact
from console.engine.counting import count, logs_of
from console.engine.crew import Crew
from console.engine.decisions import Decisions
from console.engine.planning import matrix_run
from console.engine.recorder import Recorder
from console.engine.running import Running, RunRequest
from console.engine.walking import WalkStopped


@dataclass(slots=True)
class MatrixWalk:
    """Runs what has no result yet; a run that an earlier console left under way is adopted."""

    recorder: Recorder
    crew: Crew
    running: Running
    decisions: Decisions

    async def walk(self) -> None:
        """Every chosen configuration in order. Raises `WalkStopped`, `NodeError`."""
        for config_id in self.recorder.experiment.configurations:
            while not await self._settled(config_id):
                await self.running.carry(await self._request(config_id))

    def seal(self, texts: dict[str, str]) -> None:
        """Write the hypotheses, once."""
        self.recorder.record(
            ev.HypothesesWritten(at=self.recorder.now(), texts=texts, sha256=hypothesis_hash(texts))
        )

    async def _settled(self, config_id: str) -> bool:
        """The newest attempt ended, has its row, and is not to be tried again."""
        runs = self.recorder.experiment.runs_of(config_id)
        if not runs or runs[-1].outcome is None:
            return False
        row = self.recorder.experiment.rows.get(config_id)
        if row is None or row.run != runs[-1].id:
            self._row(runs[-1])
        return runs[-1].outcome == "done" or await self._after_failure(runs[-1]) == "go on"

    async def _request(self, config_id: str) -> RunRequest:
        experiment = self.recorder.experiment
        config = experiment.profile.configuration(config_id)
        runs = experiment.runs_of(config_id)
        open_run = bool(runs) and runs[-1].outcome is None
        attempt = runs[-1].attempt if open_run else len(runs) + 1
        return await with_contact(
            self.crew,
            lambda: matrix_run(
                experiment.profile, self.crew, experiment.name, config, attempt, resumed=open_run
            ),
        )

    def _row(self, run: RunView) -> None:
        logs = logs_of(self.recorder, run)
        self._transports(run, logs)
        row = count(self.recorder, run, logs)
        self.recorder.record(ev.RowRecorded(at=self.recorder.now(), run=run.id, row=row))

    def _transports(self, run: RunView, logs: dict[str, LoggedRun]) -> None:
        """What NCCL said it uses, node by node, when it said something."""
        for node, logged in logs.items():
            found = logged.log.transport
            if found is None:
                continue
            first = found.lines[0]
            ways = ", ".join(found.paths) or "no channel named"
            self.recorder.record(
                ev.TransportSeen(
                    at=self.recorder.now(),
                    node=node,
                    run=run.id,
                    words=f"NCCL {found.version or '?'}: network {found.network or 'unsaid'}; {ways}",
                    source=Source(
                        words="NCCL's own log",
                        file=logged.file,
                        node=node,
                        start_byte=first.start_byte,
                        end_byte=first.end_byte,
                        line=first.line,
                    ),
                )
            )

    async def _after_failure(self, run: RunView) -> str:
        """`go on` or `retry`; a decision that was made already is not asked again."""
        go_on = ev.Choice(
            id="go on", words="Go on", leads_to="its row stays with blanks; the next one follows"
        )
        retry = ev.Choice(
            id="retry", words="Retry", leads_to="the same configuration once more, as a new run"
        )
        may_pass = run.attempt == 1 and run.outcome != "stopped" and passing(run.cause)
        choice = await self.decisions.ask(
            f"run:{run.id}",
            run=run.id,
            subject=f"{run.config} {run.outcome} (attempt {run.attempt})",
            what_happened=f"{run.config} ended without a result; its logs are kept",
            raw_error=run.cause,
            choices=(
                *((retry, go_on) if may_pass else (go_on, retry)),
                stop_lab(self.recorder.experiment.profile),
            ),
            policy=self._policy(run),
        )
        if choice == "stop":
            raise WalkStopped("stop", f"stopped after {run.id} {run.outcome}")
        return choice

    def _policy(self, run: RunView) -> str:
        policy = self.recorder.experiment.profile.policies.run_failed
        return "go on" if policy == "retry" and run.attempt > 1 else policy
