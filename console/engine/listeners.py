"""Whoever wants to be told: of every event, live or replayed, and of logs that grow."""

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Listeners(Generic[P]):
    """Tells each listener in the order of arrival; one that ends while it is told is told to the end."""

    def __init__(self) -> None:
        self._all: list[Callable[P, None]] = []

    def add(self, listener: Callable[P, None]) -> Callable[[], None]:
        """Call `listener` whenever something is told; returns the function that ends it."""
        self._all.append(listener)

        def end() -> None:
            if listener in self._all:
                self._all.remove(listener)

        return end

    def tell(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for listener in tuple(self._all):
            listener(*args, **kwargs)
