"""FLOPs per token, full and LoRA, with and without recomputation.

Megatron's convention (Megatron-LM `num_floating_point_operations`): N_g counts every weight a token is
multiplied with, output layer included; not counted are the embedding look-up, norms, router and RoPE. C is
core attention, causal half. Forward is 2 N_g, the two backward products 4 N_g:

    full              F = 6 N_g + C                 hardware with full recompute 8 N_g + 4C/3
    LoRA              F = 4 N_g + C + 6 N_lora      hardware with full recompute 6 N_g + 4C/3 + 8 N_lora

A frozen weight needs no weight gradient, hence 4; attention has no weights and keeps all of C.
"""

from typing import Literal, NamedTuple

from console.core.errors import InputError
from console.core.ledger.architecture import Architecture, Block, kinds_of
from console.core.ledger.mixers import Linear, Shape
from console.core.ledger.mlps import MoeMlp
from console.core.ledger.numbers import require_positive

ALL_LINEAR = "all-linear"

RecomputeKind = Literal["none", "selective", "full"]


class TokenFlops(Shape):
    """FLOPs per trained token: `model` is what the mathematics needs, `hardware` adds recomputation."""

    model: float
    hardware: float
    matmul: float
    attention: float
    adapters: float


class LoraParameters(NamedTuple):
    """Adapter parameters: all that are trained, and those one token meets."""

    total: int
    active: int


def attention_span(lengths: tuple[int, ...]) -> float:
    """S of packed documents, sum(L^2) / sum(L); for one full sequence, its length."""
    if not lengths or min(lengths) < 1:
        raise InputError(
            "document lengths", why="every length must be at least 1", next_step="drop empty ones"
        )
    return sum(length**2 for length in lengths) / sum(lengths)


def flops_per_token(
    architecture: Architecture,
    span: float,
    *,
    lora_active_parameters: int | None = None,
    recompute: RecomputeKind = "none",
    mtp_layers: int = 0,
) -> TokenFlops:
    """FLOPs per token for an attention span in tokens; LoRA when `lora_active_parameters` is given.

    Selective recomputation of core attention is what flash attention does anyway, so it adds nothing here.
    """
    require_positive(span=span)
    weights = float(architecture.parameters.matmul)
    attention = sum(n * block.mixer.core_flops(span) for block, n in kinds_of(architecture.blocks))
    if mtp_layers:
        weights += mtp_layers * _mtp_matmul(architecture)
        attention += mtp_layers * architecture.mtp_block.mixer.core_flops(span)
    adapters = lora_active_parameters or 0
    passes = 6 if lora_active_parameters is None else 4
    model = passes * weights + attention + 6 * adapters
    again = 2 * weights + attention / 3 + 2 * adapters if recompute == "full" else 0.0
    return TokenFlops(
        model=model,
        hardware=model + again,
        matmul=passes * weights,
        attention=attention,
        adapters=6.0 * adapters,
    )


def lora_parameters(
    architecture: Architecture, rank: int, targets: tuple[str, ...] = (ALL_LINEAR,)
) -> LoraParameters:
    """Adapter parameters of rank r: r * (in + out) per targeted linear layer, for every expert on its own."""
    require_positive(lora_rank=rank)
    require_targets(architecture, targets)
    total = active = 0
    for block, count in kinds_of(architecture.blocks):
        fixed = rank * sum(
            linear.inputs + linear.outputs for linear in targeted(block, architecture, targets)
        )
        expert = rank * sum(
            linear.inputs + linear.outputs for linear in targeted_expert(block, architecture, targets)
        )
        experts, top_k = (block.mlp.experts, block.mlp.top_k) if isinstance(block.mlp, MoeMlp) else (0, 0)
        total += count * (fixed + experts * expert)
        active += count * (fixed + top_k * expert)
    return LoraParameters(total, active)


def targeted(block: Block, architecture: Architecture, targets: tuple[str, ...]) -> tuple[Linear, ...]:
    """The block's targeted linear layers outside routed experts."""
    h = architecture.hidden
    return _chosen((*block.mixer.linears(h), *block.mlp.linears(h)), targets)


def targeted_expert(block: Block, architecture: Architecture, targets: tuple[str, ...]) -> tuple[Linear, ...]:
    """The targeted linear layers of one routed expert; empty for a dense block."""
    if not isinstance(block.mlp, MoeMlp):
        return ()
    return _chosen(block.mlp.expert_linears(architecture.hidden), targets)


def linear_names(architecture: Architecture) -> tuple[str, ...]:
    """Names that `target_modules` may hold for this architecture, in Megatron's words."""
    names: dict[str, None] = {}
    for block, _ in kinds_of(architecture.blocks):
        every = (ALL_LINEAR,)
        for linear in (*targeted(block, architecture, every), *targeted_expert(block, architecture, every)):
            names[linear.name] = None
    return tuple(names)


def require_targets(architecture: Architecture, targets: tuple[str, ...]) -> None:
    """Raise InputError when a target module is not of this architecture."""
    known = linear_names(architecture)
    for target in targets:
        if target != ALL_LINEAR and target not in known:
            raise InputError(
                f"target module {target}",
                why=f"{architecture.name} has no such linear layer",
                next_step=f"one of {', '.join((ALL_LINEAR, *known))}",
            )


def _chosen(linears: tuple[Linear, ...], targets: tuple[str, ...]) -> tuple[Linear, ...]:
    return linears if ALL_LINEAR in targets else tuple(li for li in linears if li.name in targets)


def _mtp_matmul(architecture: Architecture) -> int:
    """One MTP depth: its block, the projection and norms as Megatron counts them, the output layer again."""
    h = architecture.hidden
    block = architecture.mtp_block
    return block.mixer.matmul(h) + block.mlp.matmul(h) + 2 * h * h + 3 * h + architecture.vocab * h
