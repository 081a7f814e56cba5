"""The paper column: what a configuration should cost before anything has run."""

from console.core.ledger.columns import Column, Value
from console.core.ledger.devices import Device
from console.core.ledger.flops import TokenFlops, flops_per_token, lora_parameters
from console.core.ledger.memory import estimate
from console.core.ledger.room import judge, room_on
from console.core.ledger.setup import Setup
from console.core.ledger.steptime import StepTime, paper_step, utilisation_prior


def tokens_per_step(setup: Setup) -> int:
    """Token slots of one optimizer step over all ranks; real tokens are fewer without packing."""
    batch = setup.batch
    return batch.sequence * batch.micro_batch * batch.micro_batches * setup.topology.dp


def setup_flops(setup: Setup, span: float | None = None) -> TokenFlops:
    """FLOPs per token of a configuration. `span` is the attention span, the whole sequence unless given."""
    method, architecture = setup.method, setup.architecture
    adapters = (
        lora_parameters(architecture, method.lora_rank, method.targets).active if method.frozen_base else None
    )
    return flops_per_token(
        architecture,
        setup.batch.sequence if span is None else span,
        lora_active_parameters=adapters,
        recompute=setup.recompute.kind,
    )


def setup_step(setup: Setup, device: Device, *, dtype: str = "bf16", span: float | None = None) -> StepTime:
    """Step time on paper, from the utilisation of published runs nearest in kind."""
    prior = utilisation_prior(device, setup.architecture, setup.method, setup.topology.sizes)
    return paper_step(
        setup_flops(setup, span).hardware,
        tokens_per_step(setup),
        setup.topology.world_size,
        device.peak(dtype).value,
        prior,
    )


def paper_column(setup: Setup, device: Device, *, dtype: str = "bf16", span: float | None = None) -> Column:
    """Reserved memory of the fullest stage and whether it fits, step time, tokens per second, utilisation.

    The device is taken as the lab has it: with no service resident.
    """
    memory = estimate(setup, device)
    fit, fit_reason = judge(memory, room_on(device))
    step = setup_step(setup, device, dtype=dtype, span=span)
    prior = utilisation_prior(device, setup.architecture, setup.method, setup.topology.sizes)
    tokens = tokens_per_step(setup)
    peak = device.peak(dtype)
    flops = setup_flops(setup, span)
    useful = flops.model / flops.hardware
    return Column(
        fit=fit,
        fit_reason=fit_reason,
        memory_bytes=Value.banded(
            memory.reserved_bytes, memory.band, f"reserved, stage {memory.peak_stage} is the peak"
        ),
        step_seconds=Value(
            number=step.seconds, low=step.low_seconds, high=step.high_seconds, source=step.reason
        ),
        tokens_per_second=Value(
            number=tokens / step.seconds,
            low=tokens / step.high_seconds,
            high=tokens / step.low_seconds,
            source=f"{tokens} token slots per step",
        ),
        mfu=Value(
            number=useful * (prior.low * prior.high) ** 0.5,
            low=useful * prior.low,
            high=useful * prior.high,
            source=f"of {peak.value:g} TFLOPS {dtype}, {peak.origin}; {prior.reason}",
        ),
    )
