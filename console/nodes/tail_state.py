"""Whether a tail delivers: what was last heard from its reader, and when."""

import time
from dataclasses import dataclass
from typing import Literal

_STALLED_SECONDS = 10.0


@dataclass(frozen=True)
class StreamState:
    """Whether the tail delivers; says nothing about link or job."""

    state: Literal["waiting", "live", "stalled", "lost"]
    """waiting: no such file yet. live: the reader answers. stalled: it is silent. lost: no reader."""
    changed_at_monotonic: float
    heard_at_monotonic: float | None = None
    """Last sign of the reader, bytes or not."""
    bytes_at_monotonic: float | None = None
    """Last bytes of the file."""
    why: str = ""


class StreamWatch:
    """Is told what happens to the stream, and says how it stands now."""

    def __init__(self) -> None:
        self._state: Literal["waiting", "live", "lost"] = "lost"
        self._why = "not started"
        self._changed = time.monotonic()
        self._heard: float | None = None
        self._bytes: float | None = None

    def turn(self, state: Literal["waiting", "live", "lost"], why: str = "") -> None:
        """It is in this state from now on, or still."""
        if state != self._state:
            self._state, self._changed = state, time.monotonic()
        self._why = why

    def heard(self) -> None:
        """The reader gave a sign."""
        self._heard = time.monotonic()

    def came(self) -> None:
        """Bytes of the file came."""
        self._bytes = time.monotonic()
        self.turn("live")

    def now(self) -> StreamState:
        now = time.monotonic()
        silent = now - self._heard if self._heard is not None else 0.0
        if self._state != "lost" and silent > _STALLED_SECONDS:
            since = now - silent + _STALLED_SECONDS
            return StreamState("stalled", since, self._heard, self._bytes, "the reader is silent")
        return StreamState(self._state, self._changed, self._heard, self._bytes, self._why)
