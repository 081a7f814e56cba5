"""Predictions beside measurements: peak memory and step time of every row, and what explains the gap.

The prediction that counts is the one that the journal took with the run's plan, before it began. Older
journals have none; then today's ledger is asked, and that is said.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from console.core.errors import InputError
from console.core.ledger.columns import Column, Value
from console.core.ledger.of_lab import prediction_of, setup_of
from console.core.ledger.paper import tokens_per_step
from console.core.record.causes import larger, shorter, slower, unfinished
from console.core.record.experiment import Experiment
from console.core.record.figures import Row
from console.core.record.gaps import Both, rows_in_order

Quantity = Literal["memory_bytes", "step_seconds"]
Made = Literal["before the run", "computed afterwards"]

UNEXPLAINED: Both = ("unexplained: no recorded fact accounts for it", "未解释：没有记录能说明原因")


@dataclass(frozen=True, slots=True)
class Compared:
    """One quantity of one row. `why` is empty inside the band, and where there is nothing to compare. Of a
    run that did not end well it says that, wherever the figure lies.

    Memory is the fullest node's peak beside what the framework should reserve on the fullest device.
    `missing` says why there is no prediction.
    """

    config: str
    quantity: Quantity
    made: Made
    predicted: float | None
    low: float | None
    high: float | None
    missing: str
    measured: float | None
    why: Both

    @property
    def ratio(self) -> float | None:
        """Measured over predicted."""
        return self.measured / self.predicted if self.measured and self.predicted else None

    @property
    def inside(self) -> bool | None:
        """Whether the measurement lies in the band; None where one of them is missing."""
        if self.measured is None or self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high


def planned_figures(column: Column) -> dict[str, object]:
    """What the journal keeps of a prediction, in a run's settings; nothing of what can't be predicted."""
    kept: dict[str, object] = {}
    for name, value in (("memory_bytes", column.memory_bytes), ("step_seconds", column.step_seconds)):
        if value.number is not None:
            kept[f"predicted_{name}"] = round(value.number) if name == "memory_bytes" else value.number
            kept[f"predicted_{name}_band"] = [value.low, value.high]
    return kept


def predictions(experiment: Experiment) -> tuple[Compared, ...]:
    """Memory, then step time, of every row in the order of the sheet."""
    return tuple(
        one for row in rows_in_order(experiment) for one in (_memory(experiment, row), _step(experiment, row))
    )


def _memory(experiment: Experiment, row: Row) -> Compared:
    made, value = _predicted(experiment, row, "memory_bytes")
    known = [(size, node) for node, size in row.peak_memory_bytes.items() if size is not None]
    size, node = max(known, default=(None, ""))
    causes: Iterable[Both] = ()
    if size is not None and value.high is not None and size > value.high:
        causes = larger(experiment, row, node, size, value.high)
    elif size is not None and value.low is not None and size < value.low:
        causes = shorter(row, _slots(experiment, row), size / value.low)
    return _compared(row, "memory_bytes", made, value, size, causes, unfinished(experiment, row, memory=True))


def _step(experiment: Experiment, row: Row) -> Compared:
    made, value = _predicted(experiment, row, "step_seconds")
    seconds = row.steady_step_seconds
    causes: Iterable[Both] = ()
    if seconds is not None and value.high is not None and seconds > value.high:
        causes = slower(experiment, row)
    elif seconds is not None and value.low is not None and seconds < value.low:
        causes = shorter(row, _slots(experiment, row), seconds / value.low)
    return _compared(row, "step_seconds", made, value, seconds, causes, unfinished(experiment, row))


def _compared(
    row: Row,
    quantity: Quantity,
    made: Made,
    value: Value,
    measured: float | None,
    causes: Iterable[Both],
    unfinished: Both | None,
) -> Compared:
    found = list(causes)
    outside = None not in (measured, value.low, value.high) and not _holds(value, measured)
    why = ("", "")
    if unfinished is not None and value.number is not None:
        why = unfinished
    elif outside:
        words, words_zh = zip(*(found or [UNEXPLAINED]), strict=True)
        why = ("; ".join(words), "；".join(words_zh))
    return Compared(row.id, quantity, made, value.number, value.low, value.high, value.missing, measured, why)


def _holds(value: Value, measured: float | None) -> bool:
    assert value.low is not None
    assert value.high is not None
    assert measured is not None
    return value.low <= measured <= value.high


def _predicted(experiment: Experiment, row: Row, quantity: Quantity) -> tuple[Made, Value]:
    settings = experiment.runs[row.run].settings if row.run in experiment.runs else {}
    kept = _kept(settings, quantity)
    if kept is not None:
        return "before the run", kept
    column = prediction_of(experiment.profile, experiment.profile.configuration(row.id))
    return "computed afterwards", column.value(quantity)


def _kept(settings: Mapping[str, Any], quantity: Quantity) -> Value | None:
    number, band = settings.get(f"predicted_{quantity}"), settings.get(f"predicted_{quantity}_band")
    if not isinstance(number, int | float) or not isinstance(band, list) or len(band) != 2:
        return None
    return Value(number=number, low=band[0], high=band[1], source="journalled with the run's plan")


def _slots(experiment: Experiment, row: Row) -> int | None:
    """Token slots of a step that the prediction assumes."""
    try:
        setup = setup_of(experiment.profile, experiment.profile.configuration(row.id))
    except InputError:
        return None
    return tokens_per_step(setup) if setup is not None else None
