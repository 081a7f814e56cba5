"""Choosing a configuration: what fits first, then what is fastest, with the reason for every row."""

from collections.abc import Sequence

from pydantic import Field

from console.core.errors import InputError
from console.core.ledger.mixers import Shape
from console.core.ledger.numbers import GIB, gib, require_positive

TIGHT_SHARE = 0.05


class TableRow(Shape):
    """One configuration of a measured or predicted table. Times are relative to the table's baseline."""

    name: str
    settings: str
    sequence: int = Field(ge=1)
    memory_gib: float = Field(gt=0)
    relative_step_time: float = Field(gt=0)


class Verdict(Shape):
    """One row's place. `rank` is None for a row that is out; `reason` says why it is where it is."""

    row: TableRow
    rank: int | None
    headroom_bytes: int
    reason: str


class Choice(Shape):
    """The ranked table: feasible rows first, fastest first."""

    memory_limit_bytes: int
    sequence: int | None
    verdicts: tuple[Verdict, ...]

    @property
    def best(self) -> Verdict | None:
        return next((verdict for verdict in self.verdicts if verdict.rank == 1), None)


def choose(rows: Sequence[TableRow], *, memory_gib: float, sequence: int | None = None) -> Choice:
    """Rank rows under a memory limit per device; rows of another sequence length are out."""
    require_positive(memory_gib=memory_gib)
    if sequence is not None:
        lengths = sorted({row.sequence for row in rows})
        if sequence not in lengths:
            raise InputError(
                f"sequence {sequence}",
                why=f"the table has {', '.join(map(str, lengths))}",
                next_step=f"sequence {min(lengths, key=lambda length: abs(length - sequence), default=0)}",
            )
    limit = round(memory_gib * GIB)
    judged = [(row, _objection(row, limit, sequence)) for row in rows]
    feasible = sorted((row for row, no in judged if no is None), key=lambda row: row.relative_step_time)
    verdicts = [_place(row, i, feasible, limit) for i, row in enumerate(feasible, start=1)]
    verdicts += [
        Verdict(row=row, rank=None, headroom_bytes=_headroom(row, limit), reason=no)
        for row, no in judged
        if no is not None
    ]
    return Choice(memory_limit_bytes=limit, sequence=sequence, verdicts=tuple(verdicts))


def _objection(row: TableRow, limit: int, sequence: int | None) -> str | None:
    if sequence is not None and row.sequence != sequence:
        return f"is for sequence {row.sequence}, not {sequence}"
    missing = -_headroom(row, limit)
    return f"needs {gib(missing)} more than there is" if missing > 0 else None


def _place(row: TableRow, rank: int, feasible: Sequence[TableRow], limit: int) -> Verdict:
    spare = _headroom(row, limit)
    if rank == 1:
        reason = (
            "the only row that fits"
            if len(feasible) == 1
            else f"fastest of the {len(feasible)} rows that fit"
        )
    else:
        reason = (
            f"fits, {row.relative_step_time / feasible[0].relative_step_time:.2f} x the time of the first"
        )
    reason += f"; {gib(spare)} left"
    if spare < TIGHT_SHARE * limit:
        reason += " is tight: one long batch or fragmentation may use it up"
    return Verdict(row=row, rank=rank, headroom_bytes=spare, reason=reason)


def _headroom(row: TableRow, limit: int) -> int:
    return limit - round(row.memory_gib * GIB)
