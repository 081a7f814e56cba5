"""What a memory prediction depends on, and one summand of it."""

from console.core.ledger.architecture import Architecture
from console.core.ledger.methods import Batch, LossKind, Method, OptimizerKind, Recompute
from console.core.ledger.mixers import Shape
from console.core.plan.topology import Topology

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


def padded_vocab(vocab: int, tp: int) -> int:
    """Vocabulary rounded up to a multiple of 128 x tp (`make_vocab_size_divisible_by`)."""
    unit = VOCAB_MULTIPLE * tp
    return -(-vocab // unit) * unit
