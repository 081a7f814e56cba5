"""The ledger's three columns of one configuration, from the profile and the recorded row."""

from functools import lru_cache

from console.core.ledger.columns import Column, Comparison, Value
from console.core.ledger.of_lab import prediction_of
from console.core.plan.matrix import Configuration
from console.core.plan.profile import Profile
from console.core.record.experiment import Experiment
from console.core.record.figures import Row


def comparison_of(experiment: Experiment, config: Configuration) -> tuple[Comparison, str]:
    """Paper beside measured, and why there is no paper column when there is none."""
    paper, reason = _paper(_Key(experiment.profile, config.id))
    found = Comparison(configuration=config.id, paper=paper)
    row = experiment.rows.get(config.id)
    if row is None:
        return found, reason
    return found.with_measured(measured_column(row)), reason


def measured_column(row: Row) -> Column:
    """The row's numbers; its blanks keep their reasons. Utilisation by the LoRA convention, as on paper."""
    known = [size for size in row.peak_memory_bytes.values() if size is not None]
    blank = next((why for key, why in row.blanks.items() if key.startswith("peak_memory_bytes")), "")
    return Column(
        memory_bytes=Value(
            number=max(known, default=None),
            source="greatest peak of any node",
            missing=blank or "not measured",
        ),
        step_seconds=_value(row, "steady_step_seconds"),
        tokens_per_second=_value(row, "tokens_per_second"),
        mfu=_value(row, "mfu_lora"),
    )


def _value(row: Row, field: str) -> Value:
    number = getattr(row, field)
    if number is None:
        return Value(missing=row.blanks.get(field, "not measured"))
    sources = row.sources.get(field, ())
    return Value(number=number, source=sources[0].words if sources else "")


class _Key:
    """A profile's configuration as a key of the cache: one object per profile, equal by identity."""

    def __init__(self, profile: Profile, config_id: str) -> None:
        self.profile, self.config_id = profile, config_id

    def __hash__(self) -> int:
        return hash((id(self.profile), self.config_id))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Key) and (self.profile is other.profile) and self.config_id == other.config_id
        )


@lru_cache(maxsize=64)
def _paper(key: _Key) -> tuple[Column | None, str]:
    column = prediction_of(key.profile, key.profile.configuration(key.config_id))
    missing = column.memory_bytes.missing
    return (None, missing) if column.memory_bytes.number is None else (column, "")
