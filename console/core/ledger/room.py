"""What a device leaves for training, and whether a prediction fits into it."""

from typing import Literal

from console.core.errors import InputError
from console.core.ledger.devices import Device
from console.core.ledger.memory import MemoryEstimate
from console.core.ledger.mixers import Shape
from console.core.ledger.numbers import GIB, gib

SYSTEM_BYTES = round(6.2 * GIB)
"""Taken by an idle Spark's system: 119.7 GiB seen, 113.5 free."""

Fit = Literal["fits", "may fit", "does not fit"]


class Room(Shape):
    """Memory of one device and what is taken off before training, in bytes."""

    total_bytes: int
    system_bytes: int
    resident_bytes: int

    @property
    def free_bytes(self) -> int:
        return max(0, self.total_bytes - self.system_bytes - self.resident_bytes)


def room_on(device: Device, *, resident_bytes: int = 0) -> Room:
    """Room on a device beside a resident service. Unified memory also carries the operating system."""
    if resident_bytes < 0:
        raise InputError(
            f"resident {resident_bytes} bytes", why="must not be negative", next_step="resident 0"
        )
    system = SYSTEM_BYTES if device.unified else 0
    return Room(total_bytes=device.memory_bytes, system_bytes=system, resident_bytes=resident_bytes)


def judge(estimate: MemoryEstimate, room: Room) -> tuple[Fit, str]:
    """Whether the reserved memory fits, over its whole band."""
    low, high = estimate.band.around(estimate.reserved_bytes)
    free = room.free_bytes
    if high <= free:
        return "fits", f"{gib(free - high)} left even at the top of the band"
    if low > free:
        return "does not fit", f"{gib(low - free)} too much even at the bottom of the band"
    return "may fit", f"{gib(free)} free lies inside the band {gib(low)} to {gib(high)}; run a short probe"
