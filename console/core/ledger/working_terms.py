"""Activations in flight, and what textbook formulas leave out, of one pipeline stage, per rank."""

from console.core.ledger.activations import checkpoint, layer_kept, layer_saved, tokens_per_rank
from console.core.ledger.architecture import Kinds
from console.core.ledger.methods import LOGIT_BYTES
from console.core.ledger.setup import Setup, Term, padded_vocab


def activation_terms(setup: Setup, index: int, kinds: Kinds) -> list[Term]:
    """Activations of all micro-batches in flight; under full recomputation also one layer's own."""
    copies = in_flight(index, setup.topology.sizes.pp, setup.topology.sizes.vpp, setup.batch.micro_batches)
    depth = sum(count for _, count in kinds)
    fixed = (setup.architecture, setup.topology.sizes, setup.batch, setup.method)
    if setup.recompute.kind != "full":
        kept = sum(count * layer_kept(block, *fixed, setup.recompute) for block, count in kinds)
        return [
            Term(
                name="activations",
                bytes=round(copies * kept),
                rule=f"{depth} layers x {copies:g} in flight",
            )
        ]
    stored = checkpoint(*fixed[:3])
    layers = setup.recompute.layers
    if setup.recompute.method == "uniform":
        kept, transient_layers = stored * -(-depth // layers), layers
        rule = f"{-(-depth // layers)} checkpoints x {copies:g} in flight"
    else:
        spared = max(0, depth - layers)
        whole = sum(count * layer_saved(block, *fixed) for block, count in kinds)
        kept = stored * min(layers, depth) + (whole * spared / depth if depth else 0.0)
        rule = f"{min(layers, depth)} checkpoints + {spared} whole layers x {copies:g} in flight"
        transient_layers = 1
    transient = max((layer_saved(block, *fixed) for block, _ in kinds), default=0.0) * transient_layers
    return [
        Term(name="activations", bytes=round(copies * kept), rule=rule),
        Term(
            name="recomputed layer",
            bytes=round(transient),
            rule=f"{transient_layers} layer's activations again",
        ),
    ]


def in_flight(index: int, pp: int, vpp: int, micro_batches: int) -> float:
    """Micro-batches a stage holds at its peak, in units of all its layers.

    1F1B: min(pp - i, n). Interleaved: stage i warms up 2(pp - i - 1) + (vpp - 1)pp chunks and holds one
    more; for stage 0 that is pp x (1 + (pp - 1) / (pp vpp)), Korthikanti et al. (2022).
    """
    if vpp == 1:
        return min(pp - index, micro_batches)
    chunks = 2 * (pp - index - 1) + (vpp - 1) * pp + 1
    return min(chunks, micro_batches * vpp) / vpp


def overlooked_terms(setup: Setup, kinds: Kinds, last: bool) -> list[Term]:
    """Terms that textbook formulas leave out and that make up their error.

    Their weights were settled on 17 published stages of Llama shapes, which are therefore no test of them.
    """
    architecture, sizes = setup.architecture, setup.topology.sizes
    h, t = architecture.hidden, sizes.tp
    tokens = tokens_per_rank(setup.batch, sizes)
    terms = [
        Term(
            name="MLP gradient",
            bytes=round(max((b.mlp.gate_up_gradient for b, _ in kinds), default=0) * tokens / t),
            rule="gradient of the gate and up output of one layer",
        )
    ]
    if not setup.method.frozen_base and setup.gradient_fusion:
        widest = max(
            (
                (b.mixer.matmul(h) + b.mlp.split(h)) / t + b.mlp.routed(h) / (sizes.ep * sizes.etp)
                for b, _ in kinds
            ),
            default=0.0,
        )
        terms.append(
            Term(name="weight-gradient buffers", bytes=round(2 * widest), rule="2 B x one layer's matrices")
        )
    if last:
        vocab = padded_vocab(architecture.vocab, t)
        if not setup.method.frozen_base:
            terms.append(
                Term(
                    name="head gradient buffer",
                    bytes=round(2 * vocab * h / t),
                    rule="2 B x vocabulary x hidden / tp",
                )
            )
        per_logit = LOGIT_BYTES[setup.loss]
        terms.append(
            Term(
                name="logits and loss",
                bytes=round(per_logit * tokens * vocab / t),
                rule=f"{per_logit:g} B x tokens x vocabulary / tp, {setup.loss} loss",
            )
        )
    return terms
