"""The readings of all nodes as screens draw them: fetched once, thinned so that hours of them stay small."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from console.core.plan.custody import Sample
from console.engine.session import Session

KEPT = 1000
"""Readings per node; charts are a few hundred columns wide, and the journal keeps every reading."""


class Reading(NamedTuple):
    """What screens show of a node's sample. `at` is the node's clock, `arrived_at` the console's."""

    arrived_at: datetime
    n: int
    at: float
    total_bytes: int
    available_bytes: int
    gpu_utilisation_percent: float | None
    gpu_power_watts: float | None
    gpu_sm_clock_mhz: float | None
    gpu_missing: str | None
    """Why the GPU's figures are absent."""
    gpu_bytes: int | None
    """Memory of the lab's processes on the GPU, as the driver lists it; None where it names none."""

    @property
    def used_bytes(self) -> int:
        return self.total_bytes - self.available_bytes


def reading_of(arrived_at: datetime, sample: Sample) -> Reading:
    return Reading(
        arrived_at,
        sample.n,
        sample.at,
        sample.memory.total_bytes,
        sample.memory.available_bytes,
        sample.gpu_utilisation_percent,
        sample.gpu_power_watts,
        sample.gpu_sm_clock_mhz,
        sample.gpu_missing,
        _gpu_bytes(sample),
    )


def _gpu_bytes(sample: Sample) -> int | None:
    if sample.gpu_missing is not None:
        return None
    held = [sample.gpu_processes[pid] for pid in sample.jobs if pid in sample.gpu_processes]
    return None if None in held else sum(size for size in held if size is not None)


class Readings:
    """Grows with the session; begins anew when a replay goes back in time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._of: dict[str, _Thinned] = {}

    def of(self, node: str) -> Sequence[Reading]:
        """Readings of a node up to the session's time, oldest first; the last one is the newest there is."""
        found = self._of.setdefault(node, _Thinned())
        if found.kept and found.kept[-1].arrived_at > self._session.now():
            found = self._of[node] = _Thinned()
        last = found.kept[-1].arrived_at if found.kept else None
        for arrived_at, sample in self._session.samples(node, since=last):
            if last is None or arrived_at > last:
                found.add(reading_of(arrived_at, sample))
        return found.kept

    def latest(self, node: str) -> Reading | None:
        """The newest reading, or None."""
        found = self.of(node)
        return found[-1] if found else None


class _Thinned:
    """Evenly spaced readings of one node. Of those that share a place the fullest memory stays: a peak must
    not vanish from its chart. The newest is always there as it is."""

    def __init__(self) -> None:
        self.kept: list[Reading] = []
        self._stride = 1

    def add(self, reading: Reading) -> None:
        self._append(reading)
        while len(self.kept) > KEPT:
            self._stride *= 2
            readings, self.kept = self.kept, []
            for one in readings:
                self._append(one)

    def _append(self, reading: Reading) -> None:
        kept, stride = self.kept, self._stride
        if len(kept) > 1 and kept[-2].n // stride == kept[-1].n // stride:
            kept[-2:] = [max(kept[-2:], key=lambda one: one.used_bytes + (one.gpu_bytes or 0))]
        kept.append(reading)
