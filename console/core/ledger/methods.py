"""How a model is trained: what is trainable, in which precision, what is recomputed, which loss."""

from typing import Literal

from pydantic import Field, model_validator

from console.core.errors import InputError
from console.core.ledger.flops import ALL_LINEAR, RecomputeKind
from console.core.ledger.mixers import Count, Shape

MethodKind = Literal["full", "lora", "qlora"]
OptimizerKind = Literal["distributed", "unsharded", "bf16-grads", "bf16-moments", "offloaded"]
LossKind = Literal["native", "te-fused", "liger"]

FROZEN_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "nf4": 0.52}
"""Bytes per frozen parameter; NF4 with double quantisation."""

OPTIMIZER_BYTES: dict[OptimizerKind, tuple[float, float, float]] = {
    "distributed": (2, 4, 12),
    "unsharded": (2, 4, 12),
    "bf16-grads": (2, 2, 12),
    "bf16-moments": (2, 4, 8),
    "offloaded": (2, 4, 0),
}
"""Weight, gradient and optimizer bytes per trained parameter (Megatron-Core dist_optimizer.md).

The optimizer's share is divided over the data-parallel ranks, except for "unsharded".
"""

LOGIT_BYTES: dict[LossKind, float] = {"native": 10, "te-fused": 4, "liger": 0}
"""Bytes per token and vocabulary entry on the last stage at the loss.

Native: FP32 exponentials 4, BF16 logits and gradient, a working copy (settled with one 32K row in view).
Transformer Engine's fused loss: 4 in the runs it was read from. Chunked losses never hold the logits.
"""

SELECTIVE_MODULES = ("core_attn", "layernorm", "mlp", "moe_act", "mla_up_proj", "moe")


class Method(Shape):
    """Full training, LoRA, or LoRA on a quantised base."""

    kind: MethodKind = "full"
    lora_rank: int = Field(default=8, ge=1)
    targets: tuple[str, ...] = (ALL_LINEAR,)
    base_dtype: Literal["bf16", "fp16", "fp8", "nf4"] = "bf16"

    @property
    def frozen_base(self) -> bool:
        return self.kind != "full"

    @property
    def frozen_bytes(self) -> float:
        """Bytes per frozen base parameter."""
        return FROZEN_BYTES["nf4" if self.kind == "qlora" else self.base_dtype]


class Recompute(Shape):
    """What backward computes again. `layers` is `recompute_num_layers`: layers per block or uniform span."""

    kind: RecomputeKind = "selective"
    method: Literal["uniform", "block"] = "uniform"
    layers: int = Count
    modules: tuple[str, ...] = ("core_attn",)

    @model_validator(mode="after")
    def _known_modules(self) -> "Recompute":
        for module in self.modules:
            if module not in SELECTIVE_MODULES:
                raise InputError(
                    f"recompute module {module}",
                    why="not a module Megatron can recompute",
                    next_step=f"one of {', '.join(SELECTIVE_MODULES)}",
                )
        return self


NO_RECOMPUTE = Recompute(kind="none", layers=1)
SELECTIVE = Recompute(layers=1)
FULL_RECOMPUTE = Recompute(kind="full", layers=1)


class Batch(Shape):
    """Samples and tokens: `sequence` tokens per sample and micro-batch slot, `micro_batches` per step and
    rank.
    """

    sequence: int = Count
    micro_batch: int = Count
    micro_batches: int = Count
    imbalance: float = Field(default=1.0, ge=1.0)
    """Tokens of the fullest expert rank over the mean; 1 is forced balance."""
