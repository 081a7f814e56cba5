"""Device memory of a training step, per pipeline stage, term by term.

`estimate` adds, for every stage: weights, gradients, optimizer state, adapters, activations of the
micro-batches in flight, the layer being recomputed, and the four terms that textbook formulas leave out. The
stage with the most is the peak. Bytes throughout. Three totals are told apart, because tools show different
ones:

- allocated: what PyTorch's allocator has handed out (`max_memory_allocated`);
- reserved: what it holds, 1.05 x allocated (17 public stages: 1.017 to 1.093); ms-swift reports this one;
- shown: what nvidia-smi would show: reserved, CUDA context, NCCL and dispatcher buffers.
"""

from console.core.ledger.activations import checkpoint, layer_kept, layer_saved, tokens_per_rank
from console.core.ledger.architecture import Architecture, Block
from console.core.ledger.bands import Band, memory_band
from console.core.ledger.devices import Device
from console.core.ledger.flops import require_targets, targeted, targeted_expert
from console.core.ledger.methods import (
    LOGIT_BYTES,
    OPTIMIZER_BYTES,
    Batch,
    LossKind,
    Method,
    OptimizerKind,
    Recompute,
)
from console.core.ledger.mixers import Shape
from console.core.ledger.numbers import GIB
from console.core.plan.topology import Topology, require_fit, require_sequence

RESERVED_OVER_ALLOCATED = 1.05
CONTEXT_BYTES = round(0.6 * GIB)
SHOWN_EXTRA_EP_BYTES = (round(8.8 * GIB), round(11.3 * GIB))
VOCAB_MULTIPLE = 128


class Setup(Shape):
    """Everything a memory prediction depends on. Shapes and sizes are checked against each other by
    `estimate`.
    """

    architecture: Architecture
    topology: Topology
    batch: Batch
    method: Method
    recompute: Recompute
    optimizer: OptimizerKind = "distributed"
    loss: LossKind = "native"
    gradient_fusion: bool = True


class Term(Shape):
    """One summand of a stage, with the rule it follows."""

    name: str
    bytes: int
    rule: str


class Stage(Shape):
    """One pipeline rank."""

    index: int
    layers: int
    terms: tuple[Term, ...]

    @property
    def allocated_bytes(self) -> int:
        return sum(term.bytes for term in self.terms)


class MemoryEstimate(Shape):
    """A prediction per stage; totals are those of the peak stage."""

    stages: tuple[Stage, ...]
    peak_stage: int
    allocated_bytes: int
    reserved_bytes: int
    shown_bytes: tuple[int, int] | None
    shown_reason: str
    band: Band


def estimate(setup: Setup, device: Device | None = None) -> MemoryEstimate:
    """Predict the memory of every stage; raises InputError when the configuration can't run."""
    architecture, sizes = setup.architecture, setup.topology.sizes
    counts = require_fit(sizes, architecture.shape)
    require_sequence(setup.batch.sequence, sizes)
    if setup.method.frozen_base:
        require_targets(architecture, setup.method.targets)
    stages = tuple(_stage(setup, index, blocks) for index, blocks in enumerate(_cut(setup, counts)))
    peak = max(stages, key=lambda stage: stage.allocated_bytes)
    reserved = round(peak.allocated_bytes * RESERVED_OVER_ALLOCATED)
    shown, reason = _shown(setup, reserved, device)
    return MemoryEstimate(
        stages=stages,
        peak_stage=peak.index,
        allocated_bytes=peak.allocated_bytes,
        reserved_bytes=reserved,
        shown_bytes=shown,
        shown_reason=reason,
        band=memory_band(architecture, setup.method, setup.optimizer),
    )


def padded_vocab(vocab: int, tp: int) -> int:
    """Vocabulary rounded up to a multiple of 128 x tp (`make_vocab_size_divisible_by`)."""
    unit = VOCAB_MULTIPLE * tp
    return -(-vocab // unit) * unit


def _cut(setup: Setup, counts: tuple[int, ...]) -> list[tuple[Block, ...]]:
    """Blocks per pipeline rank. With virtual stages a rank's blocks are not neighbours; their kinds repeat
    evenly.
    """
    blocks, start = [], 0
    for count in counts:
        blocks.append(setup.architecture.blocks[start : start + count])
        start += count
    return blocks


def _stage(setup: Setup, index: int, blocks: tuple[Block, ...]) -> Stage:
    last = index == setup.topology.sizes.pp - 1
    terms = (
        _static(setup, index, blocks) + _in_flight(setup, index, blocks) + _overlooked(setup, blocks, last)
    )
    return Stage(index=index, layers=len(blocks), terms=tuple(term for term in terms if term.bytes))


def _static(setup: Setup, index: int, blocks: tuple[Block, ...]) -> list[Term]:
    """Weights, gradients and optimizer state. Routed experts are sharded over expert DP, the rest over DP x
    CP.
    """
    dense, routed = _parameters(setup, index, blocks)
    sizes, method = setup.topology.sizes, setup.method
    if method.frozen_base:
        terms = [
            Term(
                name="frozen weights",
                bytes=round(method.frozen_bytes * (dense + routed)),
                rule=f"{method.frozen_bytes:g} B x {dense + routed:,} parameters",
            )
        ]
        dense, routed = _adapters(setup, blocks)
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


def _parameters(setup: Setup, index: int, blocks: tuple[Block, ...]) -> tuple[int, int]:
    """Dense and routed parameters of one rank of this stage."""
    architecture, sizes = setup.architecture, setup.topology.sizes
    h, t = architecture.hidden, sizes.tp
    dense = sum((b.mixer.split(h) + b.mlp.split(h)) // t for b in blocks)
    dense += (
        sum(b.mixer.replicated(h) + b.mlp.replicated(h) for b in blocks) + len(blocks) * architecture.norms
    )
    routed = sum(b.mlp.routed(h) for b in blocks) // (sizes.ep * sizes.etp)
    matrix = padded_vocab(architecture.vocab, t) * h // t
    first, last = index == 0, index == sizes.pp - 1
    if first:
        dense += matrix + architecture.positions * h
    if last:
        dense += architecture.norm_width * h + architecture.head_mixing
        dense += 0 if architecture.tied_embeddings and first else matrix
    return dense, routed


def _adapters(setup: Setup, blocks: tuple[Block, ...]) -> tuple[int, int]:
    """Adapter parameters of one rank: the side facing the cut is divided by t, the other copied."""
    architecture, sizes, method = setup.architecture, setup.topology.sizes, setup.method
    dense = routed = 0
    for block in blocks:
        for linear in targeted(block, architecture, method.targets):
            cut, whole = (linear.outputs, linear.inputs) if linear.column else (linear.inputs, linear.outputs)
            dense += method.lora_rank * (cut // sizes.tp + whole)
        experts = setup.architecture.moe.experts if setup.architecture.moe else 0
        for linear in targeted_expert(block, architecture, method.targets):
            routed += method.lora_rank * (linear.inputs + linear.outputs) * experts // (sizes.ep * sizes.etp)
    return dense, routed


def _in_flight(setup: Setup, index: int, blocks: tuple[Block, ...]) -> list[Term]:
    """Activations of all micro-batches in flight; under full recomputation also one layer's own."""
    copies = in_flight(index, setup.topology.sizes.pp, setup.topology.sizes.vpp, setup.batch.micro_batches)
    fixed = (setup.architecture, setup.topology.sizes, setup.batch, setup.method)
    if setup.recompute.kind != "full":
        kept = sum(layer_kept(block, *fixed, setup.recompute) for block in blocks)
        return [
            Term(
                name="activations",
                bytes=round(copies * kept),
                rule=f"{len(blocks)} layers x {copies:g} in flight",
            )
        ]
    stored = checkpoint(*fixed[:3])
    layers = setup.recompute.layers
    if setup.recompute.method == "uniform":
        kept, transient_layers = stored * -(-len(blocks) // layers), layers
        rule = f"{-(-len(blocks) // layers)} checkpoints x {copies:g} in flight"
    else:
        spared = blocks[layers:]
        kept = stored * min(layers, len(blocks)) + sum(layer_saved(block, *fixed) for block in spared)
        rule = f"{min(layers, len(blocks))} checkpoints + {len(spared)} whole layers x {copies:g} in flight"
        transient_layers = 1
    transient = max((layer_saved(block, *fixed) for block in blocks), default=0.0) * transient_layers
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


def _overlooked(setup: Setup, blocks: tuple[Block, ...], last: bool) -> list[Term]:
    """Terms that textbook formulas leave out and that make up their error.

    Their weights were settled on 17 published stages of Llama shapes, which are therefore no test of them.
    """
    architecture, sizes = setup.architecture, setup.topology.sizes
    h, t = architecture.hidden, sizes.tp
    tokens = tokens_per_rank(setup.batch, sizes)
    terms = [
        Term(
            name="MLP gradient",
            bytes=round(max((b.mlp.gate_up_gradient for b in blocks), default=0) * tokens / t),
            rule="gradient of the gate and up output of one layer",
        )
    ]
    if not setup.method.frozen_base and setup.gradient_fusion:
        widest = max(
            (
                (b.mixer.matmul(h) + b.mlp.split(h)) / t + b.mlp.routed(h) / (sizes.ep * sizes.etp)
                for b in blocks
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


def _shown(setup: Setup, reserved: int, device: Device | None) -> tuple[tuple[int, int] | None, str]:
    if device is not None and device.unified:
        return None, f"{device.name} has unified memory: nvidia-smi shows no figure, read /proc/meminfo"
    low, high = CONTEXT_BYTES, SHOWN_EXTRA_EP_BYTES[1]
    if setup.topology.sizes.ep > 1:
        low = SHOWN_EXTRA_EP_BYTES[0]
        return (reserved + low, reserved + high), "8.8 to 11.3 GiB over reserved, one public pair with EP 8"
    if setup.topology.world_size == 1:
        return (reserved + low, reserved + 2 * low), "the CUDA context; no published pair"
    return (
        reserved + low,
        reserved + high,
    ), "context, NCCL buffers; between one device's context and the EP 8 pair"
