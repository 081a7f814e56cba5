"""Symptom -> suspect -> first action: findings that come and go as facts, samples and states arrive."""

from collections.abc import Iterator, Mapping, Sequence

from console.core.reading.facts import LogFact, Progress, Symptom
from console.core.reading.findings import (
    SEVERITIES,
    Change,
    Expectation,
    Finding,
    JobState,
    LinkState,
    NodeSample,
    Severity,
)
from console.core.reading.lines import excerpt
from console.core.reading.rules import (
    FindingRule,
    Limit,
    Rules,
    SampleCondition,
    SymptomCondition,
    load_rules,
)
from console.core.reading.seen import Seen
from console.core.reading.situation import NodeSituation, Situation, Trouble
from console.core.reading.watchers import WATCHERS

__all__ = [
    "Change",
    "Diagnosis",
    "Expectation",
    "Finding",
    "JobState",
    "LinkState",
    "NodeSample",
    "Rules",
    "Severity",
    "load_rules",
]

JUDGE_SECONDS = 1.0
READ_GAP = 3.0
"""Readings further apart than this many seconds don't prove that a state lasted."""


class Diagnosis:
    """Watches one run. Pure: facts, samples, states and the time are given to it.

    Every method returns the changes it caused. `at` is any monotonic number of seconds, the same clock for
    all calls of one object.
    """

    def __init__(self, rules: Rules, expectation: Expectation | None = None) -> None:
        self._rules = rules
        self._situation = Situation(expectation or Expectation())
        self._judged_at: float | None = None
        self._active: dict[tuple[str, str | None], Finding] = {}

    def facts(self, node: str, facts: Sequence[LogFact], at: float) -> tuple[Change, ...]:
        """Facts read from one node's log, arrived at `at`; none, if the bytes that arrived held none."""
        self._situation.told(node, facts, at)
        if all(isinstance(fact, Progress) for fact in facts):
            return self._judge_again(at)
        return self._judge(at)

    def output(self, node: str, at: float) -> None:
        """Any byte arrived from this node's log."""
        self._situation.node(node).output_at = at

    def sample(self, sample: NodeSample) -> tuple[Change, ...]:
        """One reading of a node."""
        self._situation.node(sample.node).samples.append(sample)
        return self._judge_again(sample.at)

    def link(self, node: str, state: LinkState, at: float) -> tuple[Change, ...]:
        """The state of the link to a node; told again and again or only when it changes."""
        situation = self._situation.node(node)
        if situation.link == state:
            return ()
        situation.link, situation.link_since = state, at
        return self._judge(at)

    def job(self, node: str, state: JobState, at: float) -> tuple[Change, ...]:
        """What a node's files say about its job; told again and again or only when it changes."""
        situation = self._situation.node(node)
        if situation.job == state:
            return ()
        situation.job, situation.job_since = state, at
        return self._judge(at)

    def tick(self, at: float) -> tuple[Change, ...]:
        """Look at what depends on time alone: silence and stalls. Call about once a second."""
        return self._judge(at)

    @property
    def active(self) -> tuple[Finding, ...]:
        """All findings that hold now, worst first, older before newer."""
        order = {severity: place for place, severity in enumerate(SEVERITIES)}
        return tuple(sorted(self._active.values(), key=lambda one: (order[one.severity], one.since)))

    def _judge_again(self, at: float) -> tuple[Change, ...]:
        """Judge what comes often once a second only."""
        due = self._judged_at is None or at - self._judged_at >= JUDGE_SECONDS
        return self._judge(at) if due else ()

    def _judge(self, at: float) -> tuple[Change, ...]:
        self._judged_at = at
        holding: dict[tuple[str, str | None], Finding] = {}
        for rule in self._rules.findings:
            for seen in self._seen(rule, at):
                key = (rule.id, seen.node)
                if key not in holding:
                    holding[key] = self._active.get(key) or _finding(rule, seen, at)
        raised = [Change("raised", holding[key], at) for key in holding if key not in self._active]
        cleared = [Change("cleared", old, at) for key, old in self._active.items() if key not in holding]
        self._active = holding
        return (*cleared, *raised)

    def _seen(self, rule: FindingRule, at: float) -> Sequence[Seen]:
        match rule.when:
            case SymptomCondition() as condition:
                return [
                    Seen(_words(trouble), node.name, trouble.fact)
                    for node, trouble in self._troubles()
                    if _is_symptom(trouble, condition)
                ]
            case SampleCondition() as condition:
                return self._sampled(condition, at)
            case condition:
                return WATCHERS[condition.function](self._situation, condition.parameters, at)

    def _troubles(self) -> Iterator[tuple[NodeSituation, Trouble]]:
        for node in self._situation.nodes.values():
            for trouble in node.troubles:
                yield node, trouble

    def _sampled(self, condition: SampleCondition, at: float) -> Sequence[Seen]:
        situation = self._situation
        moved = situation.moved_at
        if condition.progress == "none" and moved is not None and at - moved < condition.for_seconds:
            return ()
        return [
            Seen(values, node.name)
            for node in situation.nodes.values()
            if (values := _beyond(node, condition, at)) is not None
        ]


def _is_symptom(trouble: Trouble, condition: SymptomCondition) -> bool:
    if not isinstance(trouble.fact, Symptom) or trouble.fact.signature not in condition.signatures:
        return False
    trained = trouble.after_step > 1
    return condition.steps == "any" or (condition.steps == "some") == trained


def _words(trouble: Trouble) -> Mapping[str, object]:
    groups = trouble.fact.groups if isinstance(trouble.fact, Symptom) else ()
    return {"text": excerpt(trouble.fact.text, 300), "step": trouble.after_step, "groups": groups}


def _beyond(node: NodeSituation, condition: SampleCondition, at: float) -> Mapping[str, object] | None:
    """Means of the limited readings if all of them were beyond their limits for long enough."""
    since = at - condition.for_seconds
    inside = [sample for sample in node.samples if sample.at >= since]
    if node.job in ("ended", "failed", "none") or len(inside) < 3:
        return None
    before = [sample for sample in node.samples if sample.at < since]
    if not before or inside[0].at - since > READ_GAP or at - inside[-1].at > READ_GAP:
        return None
    if not all(_outside(sample, limit) for sample in inside for limit in condition.limits):
        return None
    means: dict[str, object] = {
        limit.field: sum(getattr(sample, limit.field) for sample in inside) / len(inside)
        for limit in condition.limits
    }
    return {**means, "seconds": condition.for_seconds}


def _outside(sample: NodeSample, limit: Limit) -> bool:
    value = getattr(sample, limit.field)
    if value is None:
        return False
    low = limit.at_least is None or value >= limit.at_least
    return low and (limit.at_most is None or value <= limit.at_most)


def _finding(rule: FindingRule, seen: Seen, at: float) -> Finding:
    fact = seen.fact
    first = (seen.first_suspect,) if seen.first_suspect else ()
    return Finding(
        id=rule.id,
        severity=rule.severity,
        title=rule.title,
        seen=rule.seen.format(**seen.values),
        suspects=(*first, *rule.suspects),
        first_action=rule.first_action,
        facts_link=rule.facts,
        node=seen.node,
        since=at,
        line=fact.line if fact is not None else None,
        start_byte=fact.start_byte if fact is not None else None,
        end_byte=fact.end_byte if fact is not None else None,
        title_zh=rule.title_zh,
        seen_zh=(rule.seen_zh or rule.seen).format(**seen.values),
        first_action_zh=rule.first_action_zh,
    )
