"""Step time: from a prior band, from one or two probes, and what it adds up to.

A paper figure for step time is a band of utilisation and no more. One short run of the very configuration is
worth more than any model (on 12 published configurations the two-probe law missed by 1.4 % in the median,
the proportional one by 3.6 %), so the functions here say which of the three a number came from.
"""

from typing import Literal

from console.core.errors import InputError
from console.core.ledger.architecture import Architecture
from console.core.ledger.bands import Band
from console.core.ledger.devices import Device
from console.core.ledger.methods import Method
from console.core.ledger.mixers import Shape
from console.core.ledger.numbers import require_positive
from console.core.plan.topology import ParallelSizes

Basis = Literal["paper", "probed", "measured"]

TWO_PROBES = Band(low=-0.07, high=0.08, reason="affine law from two probes: 12 published runs within 8 %")
ONE_PROBE = Band(
    low=-0.01, high=0.08, reason="proportional to one probe: fixed costs counted twice, up to 7 % high"
)


FAST_TFLOPS = 1500
"""Above this attainable BF16 rate tp 8 starves the matrices: seen on B200, not on A100."""


class StepTime(Shape):
    """Seconds per optimizer step with what they rest on."""

    seconds: float
    low_seconds: float
    high_seconds: float
    basis: Basis
    reason: str


class UtilisationPrior(Shape):
    """Utilisation to expect before any run, of the dense BF16 peak, recomputed work included (HFU)."""

    low: float
    high: float
    reason: str


class AffineLaw(Shape):
    """t = fixed + per_slot * slots, where slots = micro-batches + (pp - 1) / vpp."""

    fixed_seconds: float
    slot_seconds: float

    def seconds(self, micro_batches: int, sizes: ParallelSizes) -> float:
        return self.fixed_seconds + self.slot_seconds * slots(micro_batches, sizes)


def slots(micro_batches: int, sizes: ParallelSizes) -> float:
    """Micro-batch times that a step lasts, the pipeline's bubble included."""
    return micro_batches + (sizes.pp - 1) / sizes.vpp


def bubble_share(micro_batches: int, sizes: ParallelSizes) -> float:
    """Idle over ideal time of the pipeline: (pp - 1) / (vpp * n)."""
    require_positive(micro_batches=micro_batches)
    return (sizes.pp - 1) / (sizes.vpp * micro_batches)


def utilisation_prior(
    device: Device, architecture: Architecture, method: Method, sizes: ParallelSizes
) -> UtilisationPrior:
    """The band of published runs nearest in kind; wide where experts route naturally or the device is
    untested.
    """
    if architecture.family != "dense":
        return UtilisationPrior(
            low=0.05, high=0.30, reason="experts: 5-8 % with natural routing to 30 % with forced balance"
        )
    if device.name == "H20":
        return UtilisationPrior(low=0.71, high=0.81, reason="H20: low peak, wide memory; 71-81 % published")
    if device.unified:
        return UtilisationPrior(
            low=0.10, high=0.45, reason="GB10: one public LoRA run at 10 % (unpacked, HF)"
        )
    low, high, reason = 0.38, 0.56, "dense full training on data-centre cards: 38-56 %"
    if method.frozen_base:
        low, high, reason = 0.32, 0.41, "dense BF16 LoRA on H100: 32 % (70B, tp 2) to 41 % (8B)"
    if sizes.tp >= 8 and device.ceiling("bf16").value >= FAST_TFLOPS:
        return UtilisationPrior(low=0.6 * low, high=0.7 * high, reason=f"{reason}; tp 8 on B200: 23-35 %")
    return UtilisationPrior(low=low, high=high, reason=reason)


def paper_step(
    hardware_flops_per_token: float,
    tokens_per_step: float,
    devices: int,
    peak_tflops: float,
    prior: UtilisationPrior,
) -> StepTime:
    """Step time from a utilisation band: tokens x hardware FLOPs / (devices x peak x utilisation)."""
    require_positive(
        flops_per_token=hardware_flops_per_token,
        tokens_per_step=tokens_per_step,
        devices=devices,
        peak_tflops=peak_tflops,
    )
    ideal = hardware_flops_per_token * tokens_per_step / (devices * peak_tflops * 1e12)
    middle = (prior.low * prior.high) ** 0.5
    return StepTime(
        seconds=ideal / middle,
        low_seconds=ideal / prior.high,
        high_seconds=ideal / prior.low,
        basis="paper",
        reason=prior.reason,
    )


def affine_law(first: tuple[int, float], second: tuple[int, float], sizes: ParallelSizes) -> AffineLaw:
    """The law through two probes (micro-batches, seconds) of one configuration with different micro-batch
    counts.
    """
    (few, short), (many, long) = sorted((first, second))
    require_positive(micro_batches=few, first_probe_seconds=short, second_probe_seconds=long)
    if few == many:
        raise InputError(
            f"both probes have {few} micro-batches",
            why="two different counts are needed",
            next_step=f"probe {few} and {2 * few}",
        )
    per_slot = (long - short) / (many - few)
    if per_slot <= 0:
        raise InputError(
            f"{many} micro-batches took {long:g} s, {few} took {short:g} s",
            why="more work can't take less time; a probe was not steady",
            next_step="probe again, without compile and warm-up steps",
        )
    return AffineLaw(fixed_seconds=short - per_slot * slots(few, sizes), slot_seconds=per_slot)


def probed_step(probes: tuple[tuple[int, float], ...], micro_batches: int, sizes: ParallelSizes) -> StepTime:
    """Step time for `micro_batches` from one probe (proportional) or two (affine)."""
    require_positive(micro_batches=micro_batches)
    if len(probes) == 1:
        count, took = probes[0]
        require_positive(probe_micro_batches=count, probe_seconds=took)
        seconds, band = took * slots(micro_batches, sizes) / slots(count, sizes), ONE_PROBE
        low, high = seconds / (1 + band.high), seconds / (1 + band.low)
    elif len(probes) == 2:
        seconds, band = affine_law(probes[0], probes[1], sizes).seconds(micro_batches, sizes), TWO_PROBES
        low, high = band.around(seconds)
    else:
        raise InputError(f"{len(probes)} probes", why="one or two are used", next_step="give the last two")
    return StepTime(seconds=seconds, low_seconds=low, high_seconds=high, basis="probed", reason=band.reason)
