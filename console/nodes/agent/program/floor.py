"""The floor: when available memory stays below it, the lab's own jobs are ended before the node freezes."""

from __future__ import annotations

import signal
import time
from collections import deque
from typing import Callable

from . import processes
from .answers import Doc
from .folder import Folder
from .memory import AvailableMeter

# Between two readings the fastest fall on record (21 GiB in 1.5 s) crosses at most a quarter of the way down.
_FASTEST_FALL_PER_SECOND = 16 << 30
_CALM_SECONDS = 0.5
_FAST_SECONDS = 0.02
_FAST_FOR_SECONDS = 5.0
# A fall counts when it is more than programs take as they start, and would reach the floor within this time.
_FALL = 128 << 20
_REACHES_FLOOR_SECONDS = 10.0
_NEAR_FLOOR = 1.25
_LOOK_AGAIN_SECONDS = 1.0


class FloorWatch:
    """Reads MemAvailable the more often the nearer the floor is, in space or in time: 2 to 50 times a second.

    Starts no program and writes no file before the signals are sent.
    """

    def __init__(
        self, folder: Folder, floors: Doc, restoring: Callable[[], bool], on_fast: Callable[[], None]
    ) -> None:
        self._folder, self._floors, self._restoring, self._on_fast = folder, floors, restoring, on_fast
        self._meter = AvailableMeter()
        self._recent: deque[tuple[float, int]] = deque(maxlen=64)
        self._below_since: float | None = None
        self._look_again_at = 0.0
        self._fast_until = 0.0

    @property
    def fast(self) -> bool:
        return time.monotonic() < self._fast_until

    def tick(self) -> float:
        """One reading and what follows from it; seconds until the next."""
        now, available = time.monotonic(), self._meter.read()
        floor = int(self._floors["restoring_bytes" if self._restoring() else "training_bytes"])
        self._recent.append((now, available))
        if self._falls(now, available, floor) or (floor and available < floor * _NEAR_FLOOR):
            was_fast, self._fast_until = self.fast, now + _FAST_FOR_SECONDS
            if not was_fast:
                self._on_fast()
        if not floor or available >= floor:
            self._below_since = None
            self._look_again_at = 0.0
        else:
            self._below(now, available, floor)
        if now < self._fast_until:
            return _FAST_SECONDS
        calm = (available - floor) / _FASTEST_FALL_PER_SECOND / 4
        return min(_CALM_SECONDS, max(_FAST_SECONDS, calm))

    def _falls(self, now: float, available: int, floor: int) -> bool:
        while len(self._recent) > 1 and now - self._recent[0][0] > 1.0:
            self._recent.popleft()
        then, before = self._recent[0]
        fall = before - available
        return fall > _FALL and fall * _REACHES_FLOOR_SECONDS > (available - floor) * (now - then)

    def _below(self, now: float, available: int, floor: int) -> None:
        if self._below_since is None:
            self._below_since = now
        if now - self._below_since < self._floors["hold_seconds"] or now < self._look_again_at:
            return
        ended: dict[int, str] = {}
        sent_at = now
        for _ in range(5):
            found = processes.lab_work(self._folder.experiment_folder)
            reached = processes.send(set(found), signal.SIGKILL)
            if reached:
                sent_at = time.monotonic()
            if not reached or not set(reached) - set(ended):
                break
            ended.update({pid: found[pid] for pid in reached})
        self._look_again_at = time.monotonic() + _LOOK_AGAIN_SECONDS
        if ended:
            self._tell(ended, available, floor, sent_at - now)

    def _tell(self, ended: dict[int, str], available: int, floor: int, react_seconds: float) -> None:
        runs = sorted(set(ended.values()))
        event = {
            "at": time.time(),
            "floor_bytes": floor,
            "available_bytes": available,
            "ended_pids": sorted(ended),
            "runs": runs,
            "react_seconds": react_seconds,
        }
        self._folder.change(lambda state: state.setdefault("floor_events", []).append(event))
        self._folder.account(
            "floor crossed",
            f"{available >> 20} MiB available, floor {floor >> 20} MiB: ended {', '.join(runs)} "
            f"in {react_seconds * 1000:.0f} ms",
            **event,
        )
        processes.note_end(self._folder.experiment_folder, runs, "floor", event)
