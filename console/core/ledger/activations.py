"""Activation bytes of one layer and one micro-batch on one rank, BF16, flash attention, no dropout.

    A = tokens / t * (8h + mixer + mlp),  tokens = s * b / c

8h are the inputs and outputs of two norms; without sequence parallelism they are not divided by t. GPT with
multi-head attention and a GELU MLP of 4h gives 32 sbh: the 34 of Korthikanti et al. (2022) less its dropout
masks.
"""

from console.core.ledger.architecture import Architecture, Block
from console.core.ledger.flops import targeted, targeted_expert
from console.core.ledger.methods import Batch, Method, Recompute
from console.core.ledger.mixers import Latent
from console.core.ledger.mlps import MoeMlp
from console.core.plan.topology import ParallelSizes


def tokens_per_rank(batch: Batch, sizes: ParallelSizes) -> float:
    """Tokens of one micro-batch on one context-parallel rank."""
    return batch.sequence * batch.micro_batch / sizes.cp


def layer_saved(
    block: Block, architecture: Architecture, sizes: ParallelSizes, batch: Batch, method: Method
) -> float:
    """A of one layer without recomputation."""
    h = architecture.hidden
    tokens = tokens_per_rank(batch, sizes)
    norm_cut = sizes.tp if sizes.sequence_parallel else 1
    mlp = block.mlp.saved(h) - _unneeded_product(block, architecture, method)
    split = block.mixer.saved(h) + mlp + block.mlp.saved_routed(h) * batch.imbalance
    adapters = lora_saved(block, architecture, sizes, batch, method) if method.frozen_base else 0.0
    return tokens * (8 * h / norm_cut + split / sizes.tp) + adapters


def lora_saved(
    block: Block, architecture: Architecture, sizes: ParallelSizes, batch: Batch, method: Method
) -> float:
    """What adapters add: 2r per token and adapter, and under SP the gathered input of column-parallel ones.

    The gathered input is 2 * inputs * (1 - 1/t) per token, for the adapters of qkv and fc1.
    """
    tokens = tokens_per_rank(batch, sizes)
    linears = targeted(block, architecture, method.targets)
    low_rank = 2 * method.lora_rank * len(linears)
    if isinstance(block.mlp, MoeMlp):
        expert = len(targeted_expert(block, architecture, method.targets))
        low_rank += 2 * method.lora_rank * expert * block.mlp.top_k
    gathered = 0.0
    if sizes.sequence_parallel:
        columns = sum(linear.inputs for linear in linears if linear.column)
        gathered = 2 * columns * (1 - 1 / sizes.tp)
    return tokens * (low_rank / sizes.tp + gathered)


def layer_kept(
    block: Block,
    architecture: Architecture,
    sizes: ParallelSizes,
    batch: Batch,
    method: Method,
    recompute: Recompute,
) -> float:
    """Bytes a layer keeps until its backward pass under selective or no recomputation.

    Recomputing core attention saves nothing under flash attention (measured: 0.01 %).
    """
    saved = layer_saved(block, architecture, sizes, batch, method)
    if recompute.kind != "selective":
        return saved
    tokens = tokens_per_rank(batch, sizes)
    h, t = architecture.hidden, sizes.tp
    modules = recompute.modules
    if "layernorm" in modules:
        saved -= tokens * 4 * h / (t if sizes.sequence_parallel else 1)
    if "mlp" in modules or "moe" in modules:
        saved -= tokens * (block.mlp.saved(h) + block.mlp.saved_routed(h) * batch.imbalance) / t
    elif "moe_act" in modules and isinstance(block.mlp, MoeMlp):
        saved -= tokens * 2 * block.mlp.ffn * block.mlp.top_k * batch.imbalance / t
    if "mla_up_proj" in modules and isinstance(block.mixer, Latent):
        saved -= tokens * block.mixer.expanded / t
    return max(saved, 0.0)


def checkpoint(architecture: Architecture, sizes: ParallelSizes, batch: Batch) -> float:
    """What full recomputation keeps per checkpointed layer: its input, 2h per token."""
    cut = sizes.tp if sizes.sequence_parallel else 1
    return 2 * architecture.hidden * tokens_per_rank(batch, sizes) / cut


def _unneeded_product(block: Block, architecture: Architecture, method: Method) -> int:
    """The SwiGLU product (2f) is only needed for fc2's weight gradient or its adapter."""
    frozen_fc2 = (
        method.frozen_base and "all-linear" not in method.targets and "linear_fc2" not in method.targets
    )
    return block.mlp.saved(architecture.hidden) // 3 if frozen_fc2 else 0
