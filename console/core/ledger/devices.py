"""Devices: dense peaks, bandwidth, memory, and for every figure where it comes from.

A peak with structured sparsity is never a peak here. `published` is the maker's figure, `derived` follows
from one by arithmetic, `measured` was seen on a device.
"""

from typing import Literal

from console.core.errors import InputError
from console.core.ledger.mixers import Shape
from console.core.ledger.numbers import GB, GIB

VISIBLE_SHARE = 0.99

Origin = Literal["published", "derived", "measured"]


class Figure(Shape):
    """One number with its origin."""

    value: float
    origin: Origin
    note: str = ""


class Device(Shape):
    """One accelerator. `usable_gib` is set where less than the marketed memory can be seen by a process."""

    name: str
    aliases: tuple[str, ...] = ()
    memory_gb: Figure
    usable_gib: Figure | None = None
    unified: bool = False
    bandwidth_gb_per_second: Figure
    peak_tflops: dict[str, Figure]
    measured_tflops: dict[str, Figure]
    notes: tuple[str, ...] = ()
    source: str

    @property
    def memory_bytes(self) -> int:
        """Memory a process can see: the measured figure if there is one, otherwise 99 % of as many GiB as
        marketed.

        Data-centre cards are named in GB but carry about that many GiB (H100 79.1, H20 95.1, B200 179.1).
        """
        if self.usable_gib:
            return round(self.usable_gib.value * GIB)
        return round(VISIBLE_SHARE * self.memory_gb.value * GIB)

    def peak(self, dtype: str) -> Figure:
        """Dense peak for a compute dtype; InputError where the device has none."""
        figure = self.peak_tflops.get(dtype)
        if figure is None:
            raise InputError(
                f"{self.name} has no dense {dtype} peak",
                why="the device does not compute in it" if dtype == "bf16" else "no figure is known",
                next_step=f"one of {', '.join(self.peak_tflops)}",
            )
        return figure

    def ceiling(self, dtype: str) -> Figure:
        """What a prediction may assume at best: a measured matrix product if there is one, else the peak."""
        half = {"bf16": "fp16", "fp16": "bf16"}.get(dtype, dtype)
        return self.measured_tflops.get(dtype) or self.measured_tflops.get(half) or self.peak(dtype)

    def ridge_tokens(self, dtype: str) -> float:
        """Tokens per micro-batch below which a pass is bound by reading the weights: peak / bandwidth."""
        return self.peak(dtype).value * 1e12 / (self.bandwidth_gb_per_second.value * GB)
