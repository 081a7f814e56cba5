"""What a screen may know and ask for. Screens touch neither nodes nor the journal; this is all they have."""

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Protocol

from console.core.plan.custody import Sample
from console.core.record.events import Event
from console.core.record.experiment import Experiment

Listener = Callable[[Experiment, Event], None]
LogListener = Callable[[str, str], None]


class Session(Protocol):
    """A live experiment, a watched one, or a replay.

    Asking methods return when the wish is in the journal, not when it is fulfilled; what comes of it arrives
    as events. They raise `LabError` when the wish can't be granted, always so when `read_only`.
    """

    read_only: bool
    folder: Path
    """The experiment's folder: mirrors under `logs/<node>/<run>.log`, `evidence/`, `exports/`."""

    @property
    def experiment(self) -> Experiment:
        """The state now."""

    def now(self) -> datetime:
        """The time that ages are counted from: the wall clock, or the replay's position."""

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after every event, in the event loop; returns the function that ends it."""

    def samples(self, node: str, *, since: datetime | None = None) -> Iterable[tuple[datetime, Sample]]:
        """Readings of a node, oldest first, with the laptop's time of arrival; to be read at once."""

    def log_path(self, run: str, node: str) -> Path:
        """The mirror of a run's log; the file may not exist yet."""

    def listen_logs(self, listener: LogListener) -> Callable[[], None]:
        """Call `listener(run, node)` after bytes of a log came, in the event loop; returns the function that
        ends it. Of a log that another console mirrors nothing is told: its file has to be looked at.
        """

    async def answer(self, decision: str, choice: str, reason: str) -> None:
        """Answer an open decision."""

    async def write_hypotheses(self, texts: dict[str, str]) -> None:
        """Seal the expectations, once, before the first run."""

    async def stop_run(self, run: str, reason: str) -> None:
        """End a run's jobs on all nodes."""

    async def restore_now(self, reason: str) -> None:
        """End the lab's jobs and bring the service back; after the lab's end it returns once that is done."""

    async def leave(self) -> None:
        """End the console in order; jobs go on."""
