"""Utilisation: what share of a device's dense peak a run turns into training.

Each function names its convention, because the same run differs by a third between them:

- `mfu_6n`       6 x parameters per token; no attention, LoRA counted as if everything were trained.
- `mfu_megatron` 6 N_g + causal half of attention (Megatron-LM `num_floating_point_operations`).
- `mfu_lora`     4 N_g + attention + 6 N_lora: frozen weights need no weight gradient.

Shares are fractions (0.245, not 24.5). `peak_tflops` is the dense peak of one device for the compute dtype; a
sparsity figure doubles the peak and halves every result. All raise InputError for values that are not
positive and finite.
"""

from console.core.ledger.architecture import Architecture
from console.core.ledger.flops import flops_per_token, lora_parameters
from console.core.ledger.numbers import require_positive

TERA = 1e12


def sustained_tflops_6n(params: float, tokens_per_second: float) -> float:
    """Model TFLOP/s of all devices together under 6N: 6 x params x tokens/s."""
    require_positive(params=params, tokens_per_second=tokens_per_second)
    return 6 * params * tokens_per_second / TERA


def mfu_6n(params: float, tokens_per_second: float, devices: int, peak_tflops: float) -> float:
    """6 x params x tokens/s over devices x peak. For MoE, `params` are those active per token."""
    require_positive(devices=devices, peak_tflops=peak_tflops)
    return sustained_tflops_6n(params, tokens_per_second) / (devices * peak_tflops)


def mfu_megatron(
    architecture: Architecture, span: float, tokens_per_second: float, devices: int, peak_tflops: float
) -> float:
    """Full training under Megatron's convention. `span` is the sequence, or sum(L^2)/sum(L) of packed
    documents.
    """
    return _share(flops_per_token(architecture, span).model, tokens_per_second, devices, peak_tflops)


def mfu_lora(
    architecture: Architecture,
    lora_rank: int,
    span: float,
    tokens_per_second: float,
    devices: int,
    peak_tflops: float,
    targets: tuple[str, ...] = ("all-linear",),
) -> float:
    """LoRA training: F = 4 N_g + C + 6 N_lora per token."""
    adapters = lora_parameters(architecture, lora_rank, targets)
    flops = flops_per_token(architecture, span, lora_active_parameters=adapters.active)
    return _share(flops.model, tokens_per_second, devices, peak_tflops)


def hfu(hardware_flops_per_token: float, tokens_per_second: float, devices: int, peak_tflops: float) -> float:
    """The hardware's view: recomputed work counts. Take the FLOPs from `flops_per_token(...).hardware`."""
    return _share(hardware_flops_per_token, tokens_per_second, devices, peak_tflops)


def _share(flops: float, tokens_per_second: float, devices: int, peak_tflops: float) -> float:
    require_positive(
        flops=flops, tokens_per_second=tokens_per_second, devices=devices, peak_tflops=peak_tflops
    )
    return flops * tokens_per_second / (devices * peak_tflops * TERA)
