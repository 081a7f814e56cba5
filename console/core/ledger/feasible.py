"""Which ways of cutting a model over so many devices fit, and in which order to try them.

Step times of configurations that never ran can't be ranked on paper, so the order follows the placement
rules: what fits over its whole band first, then least cut, then heavy traffic inside a node.
"""

from collections.abc import Iterator
from typing import NamedTuple

from console.core.errors import InputError
from console.core.ledger.architecture import Architecture
from console.core.ledger.devices import Device
from console.core.ledger.memory import MemoryEstimate, estimate
from console.core.ledger.methods import Batch, Method, Recompute
from console.core.ledger.numbers import require_positive
from console.core.ledger.room import Fit, judge, room_on
from console.core.ledger.setup import Setup
from console.core.plan.placement import Advice, advise
from console.core.plan.topology import ParallelSizes, Topology, derive, micro_batches

LARGEST_WORLD = 64
_FIT_ORDER: dict[Fit, int] = {"fits": 0, "may fit": 1, "does not fit": 2}


class Candidate(NamedTuple):
    """One way of cutting, judged."""

    topology: Topology
    memory: MemoryEstimate
    fit: Fit
    reason: str
    advice: tuple[Advice, ...]

    @property
    def warnings(self) -> tuple[Advice, ...]:
        return tuple(remark for remark in self.advice if remark.level == "warning")


class Question(NamedTuple):
    """What is to be trained, on what."""

    architecture: Architecture
    device: Device
    world_size: int
    devices_per_node: int
    method: Method
    recompute: Recompute
    sequence: int
    micro_batch: int
    global_batch: int
    resident_bytes: int = 0


def candidates(question: Question) -> tuple[Candidate, ...]:
    """All runnable cuts into powers of two, best first; raises InputError when none divides."""
    require_positive(world_size=question.world_size, devices_per_node=question.devices_per_node)
    if question.world_size > LARGEST_WORLD:
        raise InputError(
            f"{question.world_size} devices",
            why=f"the search covers up to {LARGEST_WORLD}",
            next_step="ask `lab ledger memory` about one configuration",
        )
    refusals: list[InputError] = []
    found = []
    for sizes in _sizes(question):
        try:
            found.append(_judged(question, sizes))
        except InputError as refusal:
            refusals.append(refusal)
    if not found:
        raise refusals[0]
    return tuple(sorted(found, key=_order))


def _sizes(question: Question) -> Iterator[ParallelSizes]:
    powers = [2**i for i in range(question.world_size.bit_length()) if 2**i <= question.world_size]
    experts = powers if question.architecture.moe else [1]
    for tp in powers:
        for pp in powers:
            for ep in experts:
                yield ParallelSizes(tp=tp, pp=pp, ep=ep, sequence_parallel=tp > 1)


def _judged(question: Question, sizes: ParallelSizes) -> Candidate:
    topology = derive(question.world_size, sizes)
    count = micro_batches(question.global_batch, question.micro_batch, topology.dp)
    memory = estimate(
        Setup(
            architecture=question.architecture,
            topology=topology,
            batch=Batch(sequence=question.sequence, micro_batch=question.micro_batch, micro_batches=count),
            method=question.method,
            recompute=question.recompute,
        ),
        question.device,
    )
    fit, reason = judge(memory, room_on(question.device, resident_bytes=question.resident_bytes))
    advice = advise(
        topology,
        question.devices_per_node,
        sequence=question.sequence,
        has_experts=question.architecture.moe is not None,
    )
    return Candidate(topology, memory, fit, reason, advice)


def _order(candidate: Candidate) -> tuple[int, int, int, int]:
    sizes = candidate.topology.sizes
    return (
        _FIT_ORDER[candidate.fit],
        len(candidate.warnings),
        sizes.dense_cut * sizes.ep,
        candidate.memory.reserved_bytes,
    )
