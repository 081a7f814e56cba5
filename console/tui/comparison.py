"""The ledger's three columns of one configuration: from the profile, the logged steps, the recorded row."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import median

from console.core.ledger.columns import Column, Comparison, Value
from console.core.ledger.of_lab import prediction_of
from console.core.plan.matrix import Configuration
from console.core.plan.profile import Profile
from console.core.reading.steady import ENOUGH_CLEAN, WARMUP_STEPS
from console.core.record.experiment import Experiment
from console.core.record.figures import Row
from console.core.record.predictions import trained_share
from console.core.record.views import RunView, StepView
from console.tui.figures import GIB
from console.tui.words import Words


def comparison_of(experiment: Experiment, config: Configuration, words: Words) -> tuple[Comparison, str]:
    """Paper, probed and measured, and why there is no paper column when there is none.

    Paper is for rows that fill max_length until a recorded row says how many tokens a step trained.
    Probed is what the steps of the run say that were logged so far; beside the measured row, what its first
    ones said.
    """
    paper, reason = _paper(_Key(experiment.profile, config.id))
    found = Comparison(configuration=config.id, paper=paper)
    row, attempts = experiment.rows.get(config.id), experiment.runs_of(config.id)
    run = experiment.runs.get(row.run) if row else next(reversed(attempts), None)
    if run is not None and run.steps:
        warmup = experiment.profile.warmup_steps
        found = found.with_probed(probed_column(run, WARMUP_STEPS if warmup is None else warmup, words))
    if row is None:
        return found, reason
    if paper is not None:
        found = found.model_copy(update={"paper": _for_trained_tokens(paper, trained_share(experiment, row))})
    return found.with_measured(measured_column(row)), reason


def _for_trained_tokens(paper: Column, share: float | None) -> Column:
    """The paper column with the step time of as many tokens as were trained."""
    full = paper.step_seconds
    if full.number is None or full.low is None or full.high is None:
        return paper
    scaled = Value(missing="how many tokens a step trained is not known")
    if share is not None:
        update = {"number": full.number * share, "low": full.low * share, "high": full.high * share}
        scaled = full.model_copy(update=update)
    return paper.model_copy(update={"step_seconds": scaled})


def probed_column(run: RunView, warmup: int, words: Words) -> Column:
    """Step time and peak memory by the logged steps; of a run that has ended by the first that suffice."""
    clean = _clean_intervals(run, warmup)
    if run.outcome is not None:
        clean = clean[:ENOUGH_CLEAN]
    enough = len(clean) >= ENOUGH_CLEAN
    last = clean[-1][0].step if enough and run.outcome is not None else run.steps[-1].step
    steps = [step for step in run.steps if step.step <= last]
    seconds = Value(missing=words("ledger.too_few_steps", n=len(clean), needed=ENOUGH_CLEAN))
    if enough:
        source = words("ledger.of_intervals", n=len(clean), steps=len(steps))
        seconds = Value(number=median(length for _, length in clean), source=source)
    later = Value(missing=words("ledger.when_recorded"))
    return Column(
        memory_bytes=_peak_so_far(steps, words), step_seconds=seconds, tokens_per_second=later, mfu=later
    )


def _clean_intervals(run: RunView, warmup: int) -> list[tuple[StepView, float]]:
    """Seconds per step after the warm-up, each with the step that ends it; without those of an evaluation."""
    evaluated = {seen.step for seen in run.evaluations}
    found = []
    for before, after in pairwise(run.steps):
        if before.elapsed_seconds is None or after.elapsed_seconds is None:
            continue
        seconds, count = after.elapsed_seconds - before.elapsed_seconds, after.step - before.step
        undisturbed = evaluated.isdisjoint(range(before.step, after.step))
        if before.step >= warmup and count > 0 and seconds > 0 and undisturbed:
            found.append((after, seconds / count))
    return found


def _peak_so_far(steps: Sequence[StepView], words: Words) -> Value:
    known = [step.memory_gib for step in steps if step.memory_gib is not None]
    if not known:
        return Value(missing=words("ledger.no_step_memory"))
    return Value(number=max(known) * GIB, source=words("ledger.of_steps", n=len(known)))


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
