"""The one place where events become state: written to the journal first, folded and told after that."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, Self

from console.core.errors import LabError
from console.core.record.events import Event, ExperimentOpened, Noted
from console.core.record.experiment import Experiment
from console.core.record.folding import apply
from console.engine.listeners import Listeners
from console.engine.session import Listener
from console.journal import Journal


def utc_now() -> datetime:
    return datetime.now(UTC)


class Recorder:
    """Appends events, keeps the current state, tells the listeners. Its clock stamps every event.

    Used as a context: the journal is closed at its end.
    """

    def __init__(
        self, journal: Journal, experiment: Experiment, *, now: Callable[[], datetime] = utc_now
    ) -> None:
        self.journal = journal
        self.now = now
        self._experiment = experiment
        self._listeners = Listeners[Experiment, Event]()

    @classmethod
    def begin(
        cls, journal: Journal, opened: ExperimentOpened, *, now: Callable[[], datetime] = utc_now
    ) -> "Recorder":
        """Write the first event of a new journal."""
        experiment = Experiment.opened(opened)
        journal.append(opened)
        return cls(journal, experiment, now=now)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.close()

    @property
    def experiment(self) -> Experiment:
        return self._experiment

    def record(self, event: Event) -> None:
        """Make `event` part of the experiment: durable, then visible. Raises `JournalError`."""
        changed = apply(self._experiment, event)
        self.journal.append(event)
        self._experiment = changed
        self._listeners.tell(changed, event)

    def note(
        self,
        words: str,
        *,
        node: str | None = None,
        run: str | None = None,
        level: Literal["info", "warning", "error"] = "warning",
    ) -> None:
        """Record one line for the timeline. Raises `JournalError`."""
        self.record(Noted(at=self.now(), node=node, run=run, words=words, level=level))

    def trouble(self, what: str, error: LabError, *, node: str | None, run: str | None = None) -> None:
        """Note what an error means here, with its cause as far as it is known. Raises `JournalError`."""
        cause = "; ".join(part for part in (error.what, error.why) if part)
        self.note(f"{what}: {cause}", node=node, run=run)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after every event; returns the function that ends it."""
        return self._listeners.add(listener)
