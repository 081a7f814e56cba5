"""What the results of steps come to: an item's state, the reason in words, and the answer kept in short."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from console.core.plan.checklist import Item, ItemState, Judgement, Step
from console.core.record.events import StepEnded
from console.engine.steps import Done

OUTPUT_KEPT = 4000
"""Characters of a text that go into the journal; the evidence file has all of it."""

Outcome = Literal["passed", "failed", "noted", "skipped", "timed out"]


def needs(step: Step) -> list[str]:
    """Ids of the steps without which this one makes no sense."""
    return list(dict.fromkeys([*step.needs, *([step.infer_after] if step.infer_after else [])]))


def passed(step_id: str, outcomes: Sequence[tuple[Step, Outcome, str]]) -> bool:
    """Whether the step went well on every node."""
    return all(outcome in ("passed", "noted") for step, outcome, _ in outcomes if step.id == step_id)


def outcomes_of(item: Item, evidence: Sequence[StepEnded]) -> list[tuple[Step, Outcome, str]]:
    """What the steps of an attempt came to, from its recorded evidence."""
    steps = {step.id: step for step in item.steps}
    return [
        (steps[ended.step], ended.outcome, raw_error(Done(ended.answer, error=ended.error), ended.judgements))
        for ended in evidence
    ]


def conclude(
    item: Item, outcomes: Sequence[tuple[Step, Outcome, str]], optional: set[str], *, walk_over: bool
) -> tuple[ItemState, str, tuple[str, ...]]:
    """The item's state, the reason in words, and the lines of the experiment that it closes."""
    noted = [step for step, outcome, _ in outcomes if outcome == "noted"]
    closes = tuple(dict.fromkeys(s.closes for s in noted if s.closes and s.id not in optional))
    timed_out = [(step, why) for step, outcome, why in outcomes if outcome == "timed out"]
    failed = [(step, why) for step, outcome, why in outcomes if outcome == "failed"]
    if failed:
        return ItemState.FAILED, _reasons(failed), closes
    if timed_out:
        box = "the walk's box ended" if walk_over else f"its box of {item.box_seconds / 60:.0f} min ended"
        return ItemState.TIMED_OUT, f"{box}: {_reasons(timed_out)}", closes
    if closes:
        return ItemState.NOTED, f"closed: {', '.join(closes)}", closes
    without = ", ".join(dict.fromkeys(step.title for step in noted))
    return ItemState.PASSED, f"without {without}" if without else "", closes


def _reasons(parts: Sequence[tuple[Step, str]]) -> str:
    return "; ".join(dict.fromkeys(f"{step.title}: {why}" for step, why in parts))


def raw_error(done: Done, judgements: Sequence[Judgement]) -> str:
    """The raw error; where a part of the answer failed, the error that stands beside that part."""
    missed = [
        f"{j.value} is {j.seen}, expected {j.expected}{_beside(done.answer, j.value)}"
        for j in judgements
        if j.passed is False
    ]
    return done.error.strip() or "; ".join(missed)


def _beside(answer: Mapping[str, Any], path: str) -> str:
    """`: error` of the part that holds the value at `path`, if it has one."""
    part = answer.get(path.split(".")[0])
    error = part.get("error") if isinstance(part, Mapping) else None
    return f": {str(error).strip().splitlines()[-1]}" if error else ""


def short(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without long lists and texts; those are in the evidence file."""
    kept: dict[str, Any] = {}
    for key, value in answer.items():
        if isinstance(value, dict):
            kept[key] = short(value)
        elif isinstance(value, list) and len(value) > 20:
            kept[key] = f"{len(value)} entries, see the evidence"
        elif isinstance(value, str) and len(value) > OUTPUT_KEPT:
            kept[key] = value[:OUTPUT_KEPT]
        else:
            kept[key] = value
    return kept
