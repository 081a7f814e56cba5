"""Predictions beside measurements: peak memory and step time of every row, and what explains the gap.

The prediction that counts is the one that the journal took with the run's plan, before it began. Older
journals have none; then today's ledger is asked, and that is said.

Predictions are for rows that fill max_length. A step time is held against as much of its prediction as tokens
were trained; memory can't be scaled so, for weights don't depend on rows and the longest row makes the peak.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from console.core.ledger.columns import Column, Value
from console.core.ledger.of_lab import prediction_of
from console.core.ledger.paper import tokens_per_step
from console.core.record.causes import larger, longest_row, setup_of_row, shorter, slower, unfinished
from console.core.record.experiment import Experiment
from console.core.record.figures import Row
from console.core.record.gaps import Both, rows_in_order

Quantity = Literal["memory_bytes", "step_seconds"]
Made = Literal["before the run", "computed afterwards"]

UNEXPLAINED: Both = ("unexplained: no recorded fact accounts for it", "未解释：没有记录能说明原因")


@dataclass(frozen=True, slots=True)
class Compared:
    """One quantity of one row; `predicted`, `low` and `high` are as they were predicted.

    `why` is empty inside the band, and where there is nothing to compare. Of a run that did not end well it
    says that, wherever the figure lies.

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
    share: float | None = 1.0
    """Tokens that a step trained over those that it was predicted for. None: not known, so not compared."""
    basis: Both = ("", "")
    """Where the rows were not as the prediction assumes: what it is for, and what they were."""
    why: Both = ("", "")

    @property
    def expected(self) -> float | None:
        """The prediction for the tokens that were trained."""
        return _scaled(self.predicted, self.share)

    @property
    def expected_band(self) -> tuple[float | None, float | None]:
        return _scaled(self.low, self.share), _scaled(self.high, self.share)

    @property
    def ratio(self) -> float | None:
        """Measured over expected."""
        return self.measured / self.expected if self.measured and self.expected else None

    @property
    def side(self) -> Literal["below", "inside", "above"] | None:
        """Where the measurement lies of the expected band; None where one of them is missing."""
        low, high = self.expected_band
        if self.measured is None or low is None or high is None:
            return None
        return "below" if self.measured < low else "above" if self.measured > high else "inside"

    @property
    def inside(self) -> bool | None:
        return None if self.side is None else self.side == "inside"

    @property
    def words(self) -> Both:
        """`basis` and `why` in one."""
        (basis, basis_zh), (why, why_zh) = self.basis, self.why
        return "; ".join(filter(None, (basis, why))), "；".join(filter(None, (basis_zh, why_zh)))


def _scaled(number: float | None, share: float | None) -> float | None:
    return None if number is None or share is None else number * share


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
    known = [(size, node) for node, size in row.peak_memory_bytes.items() if size is not None]
    size, node = max(known, default=(None, ""))
    found = replace(_bare(experiment, row, "memory_bytes", size), basis=_longest(experiment, row))
    causes: Iterable[Both] = ()
    if found.side == "above" and size is not None and found.high is not None:
        causes = larger(experiment, row, node, size, found.high)
    elif found.side == "below" and size is not None and found.low is not None:
        causes = shorter(experiment, row, size / found.low)
    return _explained(found, causes, unfinished(experiment, row, memory=True))


def _step(experiment: Experiment, row: Row) -> Compared:
    found = _bare(experiment, row, "step_seconds", row.steady_step_seconds)
    share, basis = trained_share(experiment, row), _tokens(row.tokens_per_step, _slots(experiment, row))
    found = replace(found, share=share, basis=basis)
    causes = slower(experiment, row) if found.side == "above" else ()
    return _explained(found, causes, unfinished(experiment, row))


def trained_share(experiment: Experiment, row: Row) -> float | None:
    """Tokens that a step trained over those that it was predicted for; None where either is not known."""
    slots = _slots(experiment, row)
    return row.tokens_per_step / slots if row.tokens_per_step and slots else None


def _slots(experiment: Experiment, row: Row) -> int | None:
    setup = setup_of_row(experiment, row)
    return None if setup is None else tokens_per_step(setup)


def _bare(experiment: Experiment, row: Row, quantity: Quantity, measured: float | None) -> Compared:
    made, value = _predicted(experiment, row, quantity)
    return Compared(row.id, quantity, made, value.number, value.low, value.high, value.missing, measured)


def _explained(found: Compared, causes: Iterable[Both], unfinished: Both | None) -> Compared:
    if found.predicted is None or found.measured is None:
        found = replace(found, basis=("", ""))
    if found.predicted is None:
        return found
    if unfinished is not None:
        return replace(found, why=unfinished)
    if found.inside is not False:
        return found
    words, words_zh = zip(*(list(causes) or [UNEXPLAINED]), strict=True)
    return replace(found, why=("; ".join(words), "；".join(words_zh)))


def _tokens(trained: float | None, slots: int | None) -> Both:
    """That a step time is compared for other tokens than it was predicted for, or can't be compared."""
    if slots is None:
        return (
            "for how many tokens a step it was predicted is not known: not compared",
            "不知道按每步多少 token 预测：不作比较",
        )
    if not trained:
        return (
            f"predicted for {slots:,} tokens a step; how many were trained is not known: not compared",
            f"按每步 {slots:,} 个 token 预测，实际训练数未知：不作比较",
        )
    if round(trained) == slots:
        return "", ""
    return (
        f"predicted for {slots:,} tokens a step; {trained:,.0f} were trained",
        f"按每步 {slots:,} 个 token 预测，实际训练 {trained:,.0f} 个",
    )


def _longest(experiment: Experiment, row: Row) -> Both:
    """That the prediction has activations of longer rows than there are."""
    seen = longest_row(experiment, row)
    if seen is None or seen.tokens >= seen.assumed:
        return "", ""
    return (
        f"predicted for rows of {seen.assumed:,} tokens; the longest has {seen.tokens:,}",
        f"按每行 {seen.assumed:,} 个 token 预测，最长的样本有 {seen.tokens:,} 个",
    )


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
