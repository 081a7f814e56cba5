"""How far a prediction can be trusted, and why.

Bands are judgement over few rows, stated as measured against predicted; own runs should replace them.
"""

from console.core.ledger.architecture import Architecture
from console.core.ledger.methods import Method, OptimizerKind
from console.core.ledger.mixers import Shape


class Band(Shape):
    """Where the measurement is expected: between (1 + low) and (1 + high) times the prediction."""

    low: float
    high: float
    reason: str

    def around(self, value: float) -> tuple[float, float]:
        return value * (1 + self.low), value * (1 + self.high)

    def holds(self, predicted: float, measured: float) -> bool:
        low, high = self.around(predicted)
        return low <= measured <= high


DENSE = Band(low=-0.08, high=0.08, reason="dense full training: published rows lie within 5 %")
OFFLOAD = Band(low=-0.05, high=0.20, reason="optimizer offload: its staging buffers are not modelled")
MOE = Band(
    low=-0.10,
    high=0.40,
    reason="experts: uneven routing and dispatcher buffers are not modelled; give a measured imbalance",
)
LORA = Band(low=-0.15, high=0.15, reason="LoRA on a dense model: only rounded public headers to test against")
UNTESTED = Band(
    low=-0.20, high=0.40, reason="this attention's activations are derived, no public row tests them"
)


def memory_band(architecture: Architecture, method: Method, optimizer: OptimizerKind) -> Band:
    """The band of a memory prediction: the widest cause that applies decides."""
    if architecture.family in ("hybrid", "deepseek_v4"):
        return UNTESTED
    if architecture.moe:
        return MOE
    if optimizer == "offloaded" and not method.frozen_base:
        return OFFLOAD
    return LORA if method.frozen_base else DENSE
