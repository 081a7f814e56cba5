"""The smoke checklist: items, their steps, the rules a step must pass, timeboxes and verdicts."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from console.core.plan.part import Integer, Number, Part
from console.core.plan.yaml_text import parse_yaml

Scalar = bool | int | float | str


class Rule(Part):
    """One condition on one value of a step's answer. Exactly one comparison is given.

    An operand of the form `$name` is looked up among the profile's baselines; a rule whose baseline the
    profile doesn't state is not judged, and says so.
    """

    value: str
    """Key in the step's answer; dots go down, e.g. `memory.total_bytes`."""
    at_least: Number | str | None = None
    at_most: Number | str | None = None
    equals: Scalar | None = None
    present: bool | None = None
    within_factor: Number | None = Field(default=None, gt=1)
    """Not further than this factor from the baseline named by `of`."""
    of: str | None = None
    why: str
    """Why it matters, for the person who reads the failure."""

    @model_validator(mode="after")
    def _one_comparison(self) -> Self:
        given = [self.at_least, self.at_most, self.equals, self.present, self.within_factor]
        if sum(part is not None for part in given) != 1:
            raise ValueError("give exactly one of at_least, at_most, equals, present, within_factor")
        if (self.within_factor is None) != (self.of is None):
            raise ValueError("within_factor and of belong together")
        return self


class Judgement(Part):
    """What a rule said about a value."""

    value: str
    seen: Scalar | None
    expected: str
    passed: bool | None
    """None: not judged, for the reason in `why`."""
    why: str


class Step(Part):
    """One thing done on a node: a probe (script of ours), a command, or a short training run."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
    title: str
    probe: str | None = None
    """Name of a script in `console/nodes/probes/`."""
    command: list[str] | None = None
    train: Literal["ordinary", "megatron"] | None = None
    """The profile's smoke_ordinary or smoke_megatron run, as a detached job on the first node."""
    infer_after: str | None = None
    """Id of a training step whose checkpoint is loaded with `swift infer`."""
    on: Literal["every", "first", "pair"] = "every"
    """Each node by itself, the first node only, or once with all nodes taking part."""
    args: dict[str, Any] = {}
    needs: list[str] = []
    """Steps that must have passed; otherwise this one is skipped with that reason."""
    timeout_seconds: Number = Field(default=120, gt=0)
    rules: list[Rule] = []
    closes: str | None = None
    """A failure closes this line of the experiment (e.g. `TE/FP8`) and doesn't fail the item."""
    optional: bool = False
    """A failure is kept and changes nothing else."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(part is not None for part in (self.probe, self.command, self.train, self.infer_after)) != 1:
            raise ValueError("give exactly one of probe, command, train, infer_after")
        return self


class Item(Part):
    """One line of the checklist, with its own box of time."""

    number: Integer = Field(ge=1)
    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
    title: str
    title_zh: str
    why: str
    box_seconds: Number = Field(default=900, gt=0)
    main_line: bool = True
    """Without this item the experiment as planned is impossible."""
    steps: list[Step] = Field(min_length=1)


class Checklist(Part):
    """The whole walk."""

    name: str
    title: str
    box_seconds: Number = Field(default=2400, gt=0)
    items: list[Item] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        numbers = [item.number for item in self.items]
        if numbers != list(range(1, len(numbers) + 1)):
            raise ValueError("items are not numbered 1, 2, 3, …")
        for item in self.items:
            seen: set[str] = set()
            for step in item.steps:
                wanted = {*step.needs, *([step.infer_after] if step.infer_after else [])}
                if unknown := wanted - seen:
                    raise ValueError(
                        f"step {step.id} needs {', '.join(sorted(unknown))}, which is not before it"
                    )
                seen.add(step.id)
        return self

    def item(self, item_id: str) -> Item:
        """The item of that id. Raises `KeyError`."""
        for item in self.items:
            if item.id == item_id:
                return item
        raise KeyError(item_id)


class ItemState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    PASSED = "passed"
    NOTED = "passed with a line closed"
    FAILED = "failed"
    TIMED_OUT = "failed (timebox)"
    SKIPPED = "skipped"

    @property
    def concluded(self) -> bool:
        """The item has a result; `SKIPPED` counts as one because it carries a reason."""
        return self not in (ItemState.WAITING, ItemState.RUNNING)

    @property
    def good(self) -> bool:
        return self in (ItemState.PASSED, ItemState.NOTED)


class Verdict(StrEnum):
    """The three conclusions a walk can have."""

    ALL_THROUGH = "all through"
    MAIN_LINE = "main line through, TE/FP8 closed"
    DOWN = "main line down"


def judge(rule: Rule, answer: dict[str, Any], baselines: dict[str, float]) -> Judgement:
    """Hold one value of a step's answer against its rule."""
    seen = _look_up(answer, rule.value)

    def verdict(expected: str, passed: bool | None, why: str = rule.why) -> Judgement:
        shown = seen if isinstance(seen, bool | int | float | str) or seen is None else str(seen)
        return Judgement(value=rule.value, seen=shown, expected=expected, passed=passed, why=why)

    if rule.present is not None:
        there = seen not in (None, "", [], {})
        return verdict("present" if rule.present else "absent", there == rule.present)
    if rule.equals is not None:
        wanted = _operand(rule.equals, baselines)
        if wanted is None:
            return verdict(str(rule.equals), None, _unstated(rule.equals))
        return verdict(f"= {_short(wanted)}", seen == wanted)
    sign, operand = _numeric(rule)
    limit = _operand(operand, baselines)
    if not isinstance(limit, int | float):
        return verdict(str(operand), None, _unstated(operand))
    if rule.within_factor is not None:
        expected = f"within ×{_short(rule.within_factor)} of {_short(limit)}"
        if not _is_number(seen) or seen <= 0 or limit <= 0:
            return verdict(expected, False)
        return verdict(expected, max(seen / limit, limit / seen) <= rule.within_factor)
    if not _is_number(seen):
        return verdict(f"{sign} {_short(limit)}", False)
    return verdict(f"{sign} {_short(limit)}", seen >= limit if sign == "≥" else seen <= limit)


def verdict_of(states: dict[str, ItemState], checklist: Checklist) -> Verdict:
    """The walk's conclusion from the states of its items."""
    for item in checklist.items:
        if item.main_line and not states[item.id].good:
            return Verdict.DOWN
    if all(states[item.id] is ItemState.PASSED for item in checklist.items):
        return Verdict.ALL_THROUGH
    return Verdict.MAIN_LINE


def parse_checklist(text: str, *, file: str) -> Checklist:
    """A checklist from its YAML text. Raises `InputError`."""
    return parse_yaml(Checklist, text, file=file)


def _look_up(answer: dict[str, Any], path: str) -> Any:
    value: Any = answer
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value


def _numeric(rule: Rule) -> tuple[str, float | str]:
    if rule.at_least is not None:
        return "≥", rule.at_least
    if rule.at_most is not None:
        return "≤", rule.at_most
    return "≈", f"${rule.of}"


def _operand(operand: Scalar, baselines: dict[str, float]) -> Scalar | None:
    if isinstance(operand, str) and operand.startswith("$"):
        return baselines.get(operand[1:])
    return operand


def _unstated(operand: object) -> str:
    return f"not judged: the profile states no baseline {str(operand).removeprefix('$')}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
