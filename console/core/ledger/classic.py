"""The course's account: 16 bytes per parameter, with round model sizes.

BF16 weights 2, BF16 gradients 2, AdamW 12 (FP32 first and second moment and master weights). Activations are
left out. It is coarser than `memory` and kept as its own view because people do it in their heads.
"""

from console.core.ledger.mixers import Shape
from console.core.ledger.numbers import GB, require_positive

WEIGHT_BYTES, GRADIENT_BYTES, OPTIMIZER_BYTES = 2, 2, 12
SPARK_VISIBLE_GB = 121.6
"""What the system of one DGX Spark reports, in GB as the course counts it; a service and the system come off
it.
"""


class ClassicAccount(Shape):
    """Static bytes of one model, undivided."""

    parameters: int
    trained_parameters: int
    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int

    @property
    def static_bytes(self) -> int:
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes


def classic_account(parameters: float, *, trained: float | None = None) -> ClassicAccount:
    """The account of full training, or of `trained` adapter parameters on frozen weights."""
    require_positive(parameters=parameters)
    frozen = 0 if trained is None else round(parameters)
    updated = round(parameters if trained is None else trained)
    return ClassicAccount(
        parameters=round(parameters),
        trained_parameters=updated,
        weights_bytes=WEIGHT_BYTES * (frozen + updated),
        gradients_bytes=GRADIENT_BYTES * updated,
        optimizer_bytes=OPTIMIZER_BYTES * updated,
    )


def fits_sparks(account: ClassicAccount, machines: int) -> str:
    """In words: whether the static bytes fit on so many Sparks, cut evenly."""
    have = machines * SPARK_VISIBLE_GB
    need = account.static_bytes / GB
    if need > have:
        return f"does not fit: {need:.0f} of {have:.0f} GB"
    if need > 0.9 * have:
        return f"at the limit: {need:.0f} of {have:.0f} GB, no room for activations"
    return f"fits: {need:.0f} of {have:.0f} GB before activations"
