"""Experiments that are only looked at: finished ones replayed, and live ones of another console."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Self

from console.core.errors import JournalError, LabError
from console.core.plan.custody import Sample
from console.core.record.events import Event
from console.core.record.experiment import Experiment
from console.core.record.folding import apply, fold
from console.engine.listeners import Listeners
from console.engine.recorder import utc_now
from console.engine.session import Listener, LogListener
from console.engine.watching import mirror_path
from console.journal import Journal

WATCH_SECONDS = 0.5


class ReadSession:
    """Everything of an experiment that is in its journal; every wish is refused.

    Used as a context: the journal is closed at its end, when nothing draws or follows any more.
    """

    read_only = True

    def __init__(self, folder: Path, *, until: int | None = None) -> None:
        """`until`: show only the first so many events. Raises `JournalError`."""
        self.folder = folder
        self._journal = Journal(folder, read_only=True)
        numbered = list(self._journal.events())[:until]
        if not numbered:
            raise JournalError(
                f"the experiment in {folder} has no events yet", next_step="wait for it to begin"
            )
        self._seen = numbered[-1][0]
        self._experiment = fold(event for _, event in numbered)
        self._listeners = Listeners[Experiment, Event]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()

    @property
    def experiment(self) -> Experiment:
        return self._experiment

    def now(self) -> datetime:
        """The time of the newest event shown: in a replay nothing has an age beyond it."""
        return self._experiment.last_at

    def listen(self, listener: Listener) -> Callable[[], None]:
        return self._listeners.add(listener)

    def samples(self, node: str, *, since: datetime | None = None) -> Iterable[tuple[datetime, Sample]]:
        return (found for found in self._journal.samples(node, since) if found[0] <= self.now())

    def log_path(self, run: str, node: str) -> Path:
        return mirror_path(self.folder, node, run)

    def listen_logs(self, listener: LogListener) -> Callable[[], None]:
        return lambda: None

    async def answer(self, decision: str, choice: str, reason: str) -> None:
        raise self._refusal()

    async def write_hypotheses(self, texts: dict[str, str]) -> None:
        raise self._refusal()

    async def stop_run(self, run: str, reason: str) -> None:
        raise self._refusal()

    async def restore_now(self, reason: str) -> None:
        raise self._refusal()

    async def leave(self) -> None:
        """Nothing to do here: screens still draw until they are gone."""

    def _refusal(self) -> LabError:
        return LabError(
            "this view only looks on",
            next_step="act in the console that works on the experiment, or open it there",
        )

    def _advance(self, event: Event) -> None:
        self._experiment = apply(self._experiment, event)
        self._listeners.tell(self._experiment, event)


class WatchSession(ReadSession):
    """Follows the journal that another console writes. Any number of these can look on."""

    def now(self) -> datetime:
        return utc_now()

    async def follow(self) -> None:
        """Take in new events until cancelled."""
        while True:
            for seq, event in self._journal.events(after=self._seen):
                self._seen = seq
                self._advance(event)
            await asyncio.sleep(WATCH_SECONDS)
