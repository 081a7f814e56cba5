"""Three columns for one configuration: paper, probed, measured, with the gap and its likely reason.

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


class Circumstances(Shape):
    """What is known about the run and may explain a gap."""

    first_steps_included: bool = False
    packed: bool = False
    padded_share: float | None = None
    crosses_nodes: bool = False
    has_experts: bool = False
    micro_batches: int | None = None
    pipeline_stages: int = 1
    recompute_full: bool = False
    shared_device: bool = False
    transport: Literal["rdma", "socket", "unknown"] = "unknown"


class Gap(Shape):
    """Newer over predicted for one quantity: 0.1 is 10 % more. `likely` is empty inside the band."""

    quantity: Quantity
    against: Basis
    relative: float
    inside_band: bool | None
    likely: str


class Comparison(Shape):
    """The three columns of one configuration."""

    configuration: str
    paper: Column | None = None
    probed: Column | None = None
    measured: Column | None = None
    circumstances: Circumstances = Circumstances()

    def with_probed(self, column: Column) -> "Comparison":
        return self.model_copy(update={"probed": column})

    def with_measured(self, column: Column, circumstances: Circumstances) -> "Comparison":
        """The comparison once the run has ended."""
        return self.model_copy(update={"measured": column, "circumstances": circumstances})

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
        likely = "" if inside else explain(quantity, relative, self.circumstances)
        return Gap(
            quantity=quantity,
            against="paper" if is_paper else "probed",
            relative=relative,
            inside_band=inside,
            likely=likely,
        )


def explain(quantity: Quantity, relative: float, known: Circumstances) -> str:
    """The most likely reason for a gap, from what is known about the run; the first that applies."""
    if quantity == "memory_bytes":
        return _memory_reason(relative, known)
    slower = relative > 0 if quantity == "step_seconds" else relative < 0
    return _slower_reason(known) if slower else _faster_reason(known)


def _memory_reason(relative: float, known: Circumstances) -> str:
    if relative < 0:
        return (
            "samples were shorter than the sequence length"
            if not known.packed
            else "a cheaper loss than assumed"
        )
    if known.shared_device:
        return "another process held memory on the device"
    if known.has_experts:
        return "uneven routing: the fullest expert rank got more tokens than the mean"
    return "fragmentation, or a loss that keeps more copies of the logits; try expandable_segments"


def _slower_reason(known: Circumstances) -> str:
    if known.first_steps_included:
        return "compile and warm-up steps are in the average"
    if known.crosses_nodes and known.transport == "socket":
        return "traffic between nodes went over TCP sockets, not RDMA"
    if known.pipeline_stages > 1 and (known.micro_batches or 0) < 4 * known.pipeline_stages:
        return "pipeline bubble: few micro-batches for the number of stages"
    if known.has_experts:
        return "uneven routing: all ranks wait for the fullest expert"
    if known.crosses_nodes:
        return "communication between nodes is not hidden behind computation"
    if known.padded_share:
        return f"{known.padded_share:.0%} of the tokens were padding"
    return "small matrices or data loading: the device was not kept busy"


def _faster_reason(known: Circumstances) -> str:
    if not known.packed:
        return "samples were shorter than the sequence length, so a step had fewer tokens than assumed"
    return "the utilisation band is too low for this device; keep this run as the new prior"
