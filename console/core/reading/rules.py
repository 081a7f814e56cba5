"""The diagnosis rules as data: models and loader of `checklists/diagnosis.yaml`.

A rule holds while its condition does. Conditions are of three kinds: a line of the log matches a signature,
readings of a node stay beyond limits for a while, or a function of `watchers.py` says so.
"""

import re
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from console.core.errors import InputError
from console.core.reading.findings import Severity
from console.core.reading.signatures import Signature
from console.core.reading.watchers import WATCHERS

SampleField = Literal["memory_used_bytes", "gpu_utilization", "gpu_power_watts", "sm_clock_hertz"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SignatureRule(_Model):
    """`contains`: literals, one of which is in every line that `pattern` matches."""

    id: str
    contains: tuple[str, ...] = Field(min_length=1)
    pattern: str

    @field_validator("contains")
    @classmethod
    def _long_enough(cls, literals: tuple[str, ...]) -> tuple[str, ...]:
        if any(len(literal) < 5 for literal in literals):
            raise ValueError("a literal to search for needs at least 5 characters")
        return literals

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return pattern


class SymptomCondition(_Model):
    """One of the signatures was seen, and training did not go on after it."""

    kind: Literal["symptom"]
    signatures: tuple[str, ...] = Field(min_length=1)
    steps: Literal["any", "none", "some"] = "any"
    """Whether steps beyond the first had been logged when it was seen."""


class Limit(_Model):
    field: SampleField
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> "Limit":
        if self.at_least is None and self.at_most is None:
            raise ValueError("needs at_least or at_most")
        return self


class SampleCondition(_Model):
    """Every reading of a node within the last `for_seconds` is beyond all limits."""

    kind: Literal["sample"]
    limits: tuple[Limit, ...] = Field(min_length=1)
    for_seconds: float = Field(gt=0)
    progress: Literal["any", "none"] = "any"
    """`none`: and training did not move in that time."""


class WatchCondition(_Model):
    kind: Literal["watch"]
    function: str
    parameters: dict[str, float] = Field(default_factory=dict)


Condition = Annotated[SymptomCondition | SampleCondition | WatchCondition, Field(discriminator="kind")]


class FindingRule(_Model):
    """`seen` is a template; the names it may use are what its condition provides.

    `seen_zh` is left out where `seen` has no words of its own.
    """

    id: str
    severity: Severity
    title: str
    title_zh: str
    seen: str
    seen_zh: str | None = None
    suspects: tuple[str, ...] = Field(min_length=1)
    first_action: str
    first_action_zh: str
    facts: str
    when: Condition


class Rules(_Model):
    """`checklists/diagnosis.yaml`, checked."""

    version: Literal[1]
    signature_rules: tuple[SignatureRule, ...] = Field(alias="signatures")
    findings: tuple[FindingRule, ...]

    @model_validator(mode="after")
    def _consistent(self) -> "Rules":
        for kind, ids in (
            ("signature", [one.id for one in self.signature_rules]),
            ("finding", [one.id for one in self.findings]),
        ):
            twice = {one for one in ids if ids.count(one) > 1}
            if twice:
                raise ValueError(f"{kind} defined twice: {', '.join(sorted(twice))}")
        known = {one.id for one in self.signature_rules}
        used = {
            name
            for rule in self.findings
            if isinstance(rule.when, SymptomCondition)
            for name in rule.when.signatures
        }
        if used != known:
            raise ValueError(f"signatures used but not defined, or the reverse: {sorted(used ^ known)}")
        return self

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """What a `TrainLogReader` must look for so that the rules see it."""
        return tuple(
            Signature(
                rule.id,
                tuple(literal.encode() for literal in rule.contains),
                re.compile(rule.pattern),
            )
            for rule in self.signature_rules
        )


def load_rules(text: str, source: str = "diagnosis.yaml") -> Rules:
    """Read the rule file's text. Raises InputError naming the field and what was expected."""
    try:
        rules = Rules.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise InputError(f"{source} is not YAML", why=str(error)) from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise InputError(f"{source}: {field}", why=first["msg"]) from None
    for rule in rules.findings:
        if isinstance(rule.when, WatchCondition) and rule.when.function not in WATCHERS:
            raise InputError(
                f"{source}: finding {rule.id}",
                why=f"no function {rule.when.function}",
                next_step=f"one of {', '.join(sorted(WATCHERS))}",
            )
    return rules
