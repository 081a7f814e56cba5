"""Three columns for one configuration: paper, probed, measured, with the gap.

Paper is computed before anything runs, probed from a short run of the very configuration, measured when the
run has ended. A column is None until it exists; a value in it is None with a reason when it could not be
had.
"""

from typing import Literal

from console.core.ledger.bands import Band
from console.core.ledger.mixers import Shape
from console.core.ledger.room import Fit

Basis = Literal["paper", "probed", "measured"]
Quantity = Literal["memory_bytes", "step_seconds", "tokens_per_second", "mfu"]

QUANTITIES: tuple[Quantity, ...] = ("memory_bytes", "step_seconds", "tokens_per_second", "mfu")


class Value(Shape):
    """One number with its source and, for a prediction, where the truth is expected.

    `source` says how it came about ("6N_g + C over a 38-52 % band", "log line 214 of rank 1").
    `missing` is the reason when `number` is None.
    """

    number: float | None = None
    low: float | None = None
    high: float | None = None
    source: str = ""
    missing: str = ""

    @classmethod
    def banded(cls, number: float, band: Band, source: str) -> "Value":
        low, high = band.around(number)
        return cls(number=number, low=low, high=high, source=f"{source}; {band.reason}")


class Column(Shape):
    """The quantities of one basis."""

    memory_bytes: Value = Value(missing="not looked at")
    step_seconds: Value = Value(missing="not looked at")
    tokens_per_second: Value = Value(missing="not looked at")
    mfu: Value = Value(missing="not looked at")
    fit: Fit | None = None
    """Whether the memory's band fits the device; None where nobody judged."""
    fit_reason: str = ""

    def value(self, quantity: Quantity) -> Value:
        found: Value = getattr(self, quantity)
        return found


class Gap(Shape):
    """Newer over predicted for one quantity: 0.1 is 10 % more."""

    quantity: Quantity
    against: Basis
    relative: float
    inside_band: bool | None


class Comparison(Shape):
    """The three columns of one configuration."""

    configuration: str
    paper: Column | None = None
    probed: Column | None = None
    measured: Column | None = None

    def with_probed(self, column: Column) -> "Comparison":
        return self.model_copy(update={"probed": column})

    def with_measured(self, column: Column) -> "Comparison":
        """The comparison once the run has ended."""
        return self.model_copy(update={"measured": column})

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Every quantity that both a prediction and the best newer column have; measured before probed."""
        found = []
        for quantity in QUANTITIES:
            for expected_basis, expected in (("paper", self.paper), ("probed", self.probed)):
                gap = self._gap(quantity, expected, expected_basis == "paper")
                if gap is not None:
                    found.append(gap)
        return tuple(found)

    def _gap(self, quantity: Quantity, expected: Column | None, is_paper: bool) -> Gap | None:
        seen = self.measured or (self.probed if is_paper else None)
        if expected is None or seen is None:
            return None
        predicted, actual = expected.value(quantity), seen.value(quantity)
        if not predicted.number or actual.number is None:
            return None
        relative = actual.number / predicted.number - 1
        inside = None
        if predicted.low is not None and predicted.high is not None:
            inside = predicted.low <= actual.number <= predicted.high
        return Gap(
            quantity=quantity,
            against="paper" if is_paper else "probed",
            relative=relative,
            inside_band=inside,
        )
