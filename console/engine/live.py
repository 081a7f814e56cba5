"""The live experiment as screens see it."""

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from console.core.errors import InputError
from console.core.plan.custody import Sample
from console.core.record.experiment import Experiment
from console.engine.conductor import Conductor
from console.engine.session import Listener, LogListener
from console.engine.watching import mirror_path


class LiveSession:
    """A conductor behind the `Session` that screens know."""

    read_only = False

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._recorder = conductor.recorder
        self.folder: Path = self._recorder.journal.folder

    @property
    def experiment(self) -> Experiment:
        return self._recorder.experiment

    def now(self) -> datetime:
        return self._recorder.now()

    def listen(self, listener: Listener) -> Callable[[], None]:
        return self._recorder.listen(listener)

    def samples(self, node: str, *, since: datetime | None = None) -> Iterable[tuple[datetime, Sample]]:
        return self._recorder.journal.samples(node, since)

    def log_path(self, run: str, node: str) -> Path:
        return mirror_path(self.folder, node, run)

    def listen_logs(self, listener: LogListener) -> Callable[[], None]:
        return self._conductor.running.log_listeners.add(listener)

    async def answer(self, decision: str, choice: str, reason: str) -> None:
        await self._conductor.decisions.answer(decision, choice, reason)

    async def write_hypotheses(self, texts: dict[str, str]) -> None:
        if self.experiment.hypotheses_at is not None:
            raise InputError("the hypotheses are sealed", why="they were written before the first run")
        self._conductor.seal(texts)

    async def stop_run(self, run: str, reason: str) -> None:
        view = self.experiment.runs.get(run)
        if view is None or view.outcome is not None:
            raise InputError(f"{run} is not running", next_step="see the Runs screen for what is")
        self._conductor.running.wish_stop(run, reason)

    async def restore_now(self, reason: str) -> None:
        await self._conductor.restore_now(reason)

    async def leave(self) -> None:
        """Nothing to do here: the console's end says goodbye when it takes the conductor down."""
