"""Steady step time: the median of per-step differences after warm-up."""

from collections.abc import Sequence
from dataclasses import dataclass

from console.core.reading.facts import CheckpointSaved, EvalMetrics, StepMetrics


@dataclass(frozen=True, slots=True)
class Interval:
    """Seconds per step over (from_step, to_step]; the byte range is that of the line that closes it."""

    from_step: int
    to_step: int
    seconds: float
    half_width: float
    start_byte: int
    end_byte: int
    line: int


@dataclass(frozen=True, slots=True)
class Steady:
    """`seconds` is None when the log doesn't carry enough; `reason` then says why.

    `half_width` bounds the error that the printed resolution leaves in `seconds`; `reason` is also set when
    that is coarse (over 2 %), because `logging.jsonl` of the same run would do better.
    """

    seconds: float | None
    half_width: float | None
    used: tuple[Interval, ...]
    skipped: int
    warmup: int
    reason: str | None


def steady_step_seconds(
    steps: Sequence[StepMetrics],
    *,
    warmup: int | None = None,
    evals: Sequence[EvalMetrics] = (),
    checkpoints: Sequence[CheckpointSaved] = (),
) -> Steady:
    """Median seconds per step. `warmup`: steps left out (default 5, or 2 if fewer than 10 are logged)."""
    raise NotImplementedError
