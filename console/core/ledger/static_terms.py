"""Weights, gradients, optimizer state and adapters of one pipeline stage, per rank."""

from console.core.ledger.architecture import Kinds
from console.core.ledger.flops import targeted, targeted_expert
from console.core.ledger.methods import OPTIMIZER_BYTES
from console.core.ledger.mixers import Linear
from console.core.ledger.setup import Setup, Term, padded_vocab


def static_terms(setup: Setup, index: int, kinds: Kinds) -> list[Term]:
    """Weights, gradients and optimizer state of one stage.

    The optimizer of routed experts is sharded over expert DP, that of all else over DP x CP.
    """
    dense, routed = _parameters(setup, index, kinds)
    sizes, method = setup.topology.sizes, setup.method
    if method.frozen_base:
        terms = [
            Term(
                name="frozen weights",
                bytes=round(method.frozen_bytes * (dense + routed)),
                rule=f"{method.frozen_bytes:g} B x {dense + routed:,} parameters",
            )
        ]
        dense, routed = _adapters(setup, kinds)
    else:
        terms = []
    weight, gradient, state = OPTIMIZER_BYTES[setup.optimizer]
    sharded = setup.optimizer != "unsharded"
    over = setup.topology.dp * sizes.cp if sharded else 1
    expert_over = setup.topology.edp if sharded else 1
    trained = dense + routed
    label = "adapter " if method.frozen_base else ""
    optimizer = state * (dense / over + routed / expert_over)
    rule = f"{state:g} B x {dense:,} / {over}" + (
        f" + {state:g} B x {routed:,} / {expert_over}" if routed else ""
    )
    return [
        *terms,
        Term(name=f"{label}weights", bytes=round(weight * trained), rule=f"{weight:g} B x {trained:,}"),
        Term(name=f"{label}gradients", bytes=round(gradient * trained), rule=f"{gradient:g} B x {trained:,}"),
        Term(name=f"{label}optimizer", bytes=round(optimizer), rule=rule),
    ]


def _parameters(setup: Setup, index: int, kinds: Kinds) -> tuple[int, int]:
    """Dense and routed parameters of one rank of this stage."""
    architecture, sizes = setup.architecture, setup.topology.sizes
    h, t = architecture.hidden, sizes.tp
    dense = sum(n * ((b.mixer.split(h) + b.mlp.split(h)) // t + architecture.norms) for b, n in kinds)
    dense += sum(n * (b.mixer.replicated(h) + b.mlp.replicated(h)) for b, n in kinds)
    routed = sum(n * b.mlp.routed(h) for b, n in kinds) // (sizes.ep * sizes.etp)
    matrix = padded_vocab(architecture.vocab, t) * h // t
    first, last = index == 0, index == sizes.pp - 1
    if first:
        dense += matrix + architecture.positions * h
    if last:
        dense += architecture.norm_width * h + architecture.head_mixing
        dense += 0 if architecture.tied_embeddings and first else matrix
    return dense, routed


def _adapters(setup: Setup, kinds: Kinds) -> tuple[int, int]:
    """Adapter parameters of one rank: the side facing the cut is divided by t, the other copied."""
    architecture, sizes, method = setup.architecture, setup.topology.sizes, setup.method
    dense = routed = 0
    local_experts = architecture.moe.experts // sizes.ep if architecture.moe else 0
    for block, count in kinds:
        for linear in targeted(block, architecture, method.targets):
            cut, whole = _sides(linear)
            dense += count * method.lora_rank * (cut // sizes.tp + whole)
        for linear in targeted_expert(block, architecture, method.targets):
            cut, whole = _sides(linear)
            routed += count * method.lora_rank * local_experts * (cut // sizes.etp + whole)
    return dense, routed


def _sides(linear: Linear) -> tuple[int, int]:
    """The width that tensor parallelism cuts, and the other one."""
    return (linear.outputs, linear.inputs) if linear.column else (linear.inputs, linear.outputs)
