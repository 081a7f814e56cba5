"""Device memory of a training step, per pipeline stage, term by term.

`estimate` adds, for every stage: weights, gradients, optimizer state, adapters, activations of the
micro-batches in flight, the layer being recomputed, and the four terms that textbook formulas leave out. The
stage with the most is the peak. Bytes throughout. Three totals are told apart, because tools show different
ones:

- allocated: what PyTorch's allocator has handed out (`max_memory_allocated`);
- reserved: what it holds, 1.05 x allocated (17 public stages: 1.017 to 1.093); ms-swift reports this one;
- shown: what nvidia-smi would show: reserved, CUDA context, NCCL and dispatcher buffers.
"""

from console.core.ledger.architecture import Block, kinds_of
from console.core.ledger.bands import Band, memory_band
from console.core.ledger.devices import Device
from console.core.ledger.flops import require_targets
from console.core.ledger.mixers import Shape
from console.core.ledger.numbers import GIB
from console.core.ledger.setup import Setup, Term
from console.core.ledger.static_terms import static_terms
from console.core.ledger.working_terms import activation_terms, overlooked_terms
from console.core.plan.topology import require_fit, require_sequence

RESERVED_OVER_ALLOCATED = 1.05
CONTEXT_BYTES = round(0.6 * GIB)
SHOWN_EXTRA_EP_BYTES = (round(8.8 * GIB), round(11.3 * GIB))


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


def _cut(setup: Setup, counts: tuple[int, ...]) -> list[tuple[Block, ...]]:
    """Blocks per pipeline rank, taken as neighbours: with virtual stages only their order differs."""
    blocks, start = [], 0
    for count in counts:
        blocks.append(setup.architecture.blocks[start : start + count])
        start += count
    return blocks


def _stage(setup: Setup, index: int, blocks: tuple[Block, ...]) -> Stage:
    last = index == setup.topology.sizes.pp - 1
    kinds = kinds_of(blocks)
    terms = [
        *static_terms(setup, index, kinds),
        *activation_terms(setup, index, kinds),
        *overlooked_terms(setup, kinds, last),
    ]
    return Stage(index=index, layers=len(blocks), terms=tuple(term for term in terms if term.bytes))


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
