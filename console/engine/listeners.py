"""Whoever wants to be told of every event, live or replayed."""

from collections.abc import Callable

from console.core.record.events import Event
from console.core.record.experiment import Experiment
from console.engine.session import Listener


class Listeners:
    """Tells each listener in the order of arrival; one that ends while it is told is told to the end."""

    def __init__(self) -> None:
        self._all: list[Listener] = []

    def add(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after every event; returns the function that ends it."""
        self._all.append(listener)

        def end() -> None:
            if listener in self._all:
                self._all.remove(listener)

        return end

    def tell(self, experiment: Experiment, event: Event) -> None:
        for listener in tuple(self._all):
            listener(experiment, event)
