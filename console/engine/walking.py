"""The walk through the checklist: boxes of time, evidence, and a decision after each failure."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from console.core.errors import JournalError, NodeError
from console.core.plan.checklist import Item, ItemState, Judgement, Step, Verdict, judge, verdict_of
from console.core.record import events as ev
from console.core.record.views import DecisionView
from console.engine.choices import lasting, stop_lab
from console.engine.concluding import (
    OUTPUT_KEPT,
    Outcome,
    conclude,
    needs,
    outcomes_of,
    passed,
    raw_error,
    short,
)
from console.engine.contact import NEEDS_A_PERSON, with_contact, without_contact
from console.engine.crew import Member
from console.engine.decisions import Decisions
from console.engine.recorder import Recorder
from console.engine.steps import Done, StepRunner
from console.engine.together import together

OVERRUN_SECONDS = 30.0
"""What a step may take beyond its limit, for its processes to be ended on the node."""
DESCRIBES = ("baseline", "microbench", "imports", "environment", "components")
"""Probes whose answers also become facts of the node."""


def decision_after(item: Item, attempt: int) -> str:
    """The id of the decision that follows a failed attempt at the item."""
    return f"item:{item.id}:{attempt}"


class WalkStopped(Exception):
    """The walk ended by decision: `choice` is `degrade` or `stop`."""

    def __init__(self, choice: str, reason: str) -> None:
        self.choice = choice
        self.reason = reason
        super().__init__(reason)


@dataclass(slots=True)
class Walk:
    """Takes up an interrupted walk at the item that has no conclusion yet."""

    recorder: Recorder
    steps: StepRunner
    decisions: Decisions

    async def walk(self) -> Verdict:
        """Walk every item that has no conclusion; returns the verdict. Raises `WalkStopped`, `NodeError`."""
        experiment = self.recorder.experiment
        if experiment.verdict is not None:
            return experiment.verdict
        if experiment.walk_started is None:
            self.recorder.record(
                ev.WalkStarted(at=self.recorder.now(), box_seconds=experiment.checklist.box_seconds)
            )
        started = self.recorder.experiment.walk_started
        assert started is not None
        loop = asyncio.get_running_loop()
        used = (self.recorder.now() - started).total_seconds()
        ends = loop.time() + max(0.0, experiment.checklist.box_seconds - used)
        for item in experiment.checklist.items:
            if not self.recorder.experiment.items[item.id].state.concluded:
                await self._item(item, ends)
            self._unless_stopped(item)
        states = {name: view.state for name, view in self.recorder.experiment.items.items()}
        verdict = verdict_of(states, experiment.checklist)
        seconds = (self.recorder.now() - started).total_seconds()
        self.recorder.record(ev.WalkEnded(at=self.recorder.now(), verdict=verdict, seconds=seconds))
        return verdict

    def _unless_stopped(self, item: Item) -> None:
        """Raises `WalkStopped` when it was decided after the item to stop, be it in an earlier console."""
        if (asked := self._asked(item)) is not None and asked.choice == "stop":
            reason = self.recorder.experiment.items[item.id].reason
            raise WalkStopped("stop", f"stopped at checklist item {item.number} {item.title}: {reason}")

    def _asked(self, item: Item) -> DecisionView | None:
        """The decision after the item's latest attempt, open or made."""
        attempt = self.recorder.experiment.items[item.id].attempt
        return self.recorder.experiment.decisions.get(decision_after(item, attempt))

    async def _item(self, item: Item, walk_ends: float) -> None:
        """Attempts at one item until it passes, its box ends, or the decision is to leave it.

        An attempt after which an earlier console had asked is over: it is decided upon, not made again. One
        that it had begun is made again with a new box, but the item has taken all the time since.
        """
        loop = asyncio.get_running_loop()
        began, before = loop.time(), 0.0
        view = self.recorder.experiment.items[item.id]
        if view.started_at is not None:
            if (asked := self._asked(item)) is not None:
                began -= (asked.asked_at - view.started_at).total_seconds()
            else:
                before = (self.recorder.now() - view.started_at).total_seconds()
        item_ends = began + item.box_seconds
        while True:
            ends = min(item_ends, walk_ends)
            view, asked = self.recorder.experiment.items[item.id], self._asked(item)
            if asked is not None and asked.choice == "retry":
                asked = None
            attempt = view.attempt
            if asked is not None:
                outcomes = outcomes_of(item, view.evidence)
            else:
                attempt += 1
                self.recorder.record(
                    ev.ItemStarted(
                        at=self.recorder.now(),
                        item=item.id,
                        box_seconds=max(0.0, ends - loop.time()),
                        attempt=attempt,
                    )
                )
                outcomes = await self._attempt(item, ends)
            optional = {step.id for step in item.steps if self._optional(step)}
            state, reason, closes = conclude(item, outcomes, optional, walk_over=ends == walk_ends)
            if asked is not None:
                reason = asked.raw_error
            choice = "go on"
            if not state.good:
                choice = await self._ask(item, state, reason, attempt, left=ends - loop.time())
            if choice == "retry":
                continue
            self.recorder.record(
                ev.ItemEnded(
                    at=self.recorder.now(),
                    item=item.id,
                    state=state,
                    seconds=before + loop.time() - began,
                    reason=reason,
                    closes=closes,
                )
            )
            return

    async def _attempt(self, item: Item, ends: float) -> list[tuple[Step, Outcome, str]]:
        """Every step of the item once; steps after the end of the box are timed out."""
        loop = asyncio.get_running_loop()
        outcomes: list[tuple[Step, Outcome, str]] = []
        for step in item.steps:
            left = ends - loop.time()
            missing = [need for need in needs(step) if not passed(need, outcomes)]
            if left <= 0 or missing:
                outcome: Outcome = "timed out" if left <= 0 else "skipped"
                why = (
                    "its box of time was over"
                    if left <= 0
                    else f"needs {', '.join(missing)}, which did not pass"
                )
                for member in self.steps.members(step):
                    self._ended(item, step, member, outcome, 0.0, Done({}, error=why), ())
                outcomes.append((step, outcome, why))
                continue
            results = await together(
                self._step(item, step, member, min(left, step.timeout_seconds))
                for member in self.steps.members(step)
            )
            outcomes.extend((step, outcome, why) for outcome, why in results)
        return outcomes

    async def _step(self, item: Item, step: Step, member: Member | None, limit: float) -> tuple[Outcome, str]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        name = member.name if member else None
        self.recorder.record(
            ev.StepStarted(
                at=self.recorder.now(),
                node=name,
                item=item.id,
                step=step.id,
                command=self.steps.command(step, member),
            )
        )
        judgements: tuple[Judgement, ...] = ()
        outcome: Outcome
        try:
            async with asyncio.timeout(limit + OVERRUN_SECONDS):
                done = await with_contact(self.steps.crew, lambda: self.steps.run(step, member, limit))
        except NEEDS_A_PERSON:
            raise
        except TimeoutError:
            silent = ", ".join(without_contact(self.steps.crew))
            why = f"no contact with {silent}" if silent else "its processes were ended"
            done = Done({}, error=f"not done after {limit:.0f} s; {why}")
            outcome = "timed out"
            self.steps.abandon(done.error)
        except NodeError as error:
            done, outcome = Done({}, error=error.render()), "failed"
        else:
            baselines = self._baselines(name)
            judgements = tuple(judge(rule, dict(done.answer), baselines) for rule in step.rules)
            outcome = "failed" if any(j.passed is False for j in judgements) else "passed"
            if step.command and done.exit_status:
                outcome = "failed"
        if outcome == "failed" and (step.closes or self._optional(step)):
            outcome = "noted"
        self._ended(item, step, member, outcome, loop.time() - began, done, judgements)
        if step.probe in DESCRIBES and member is not None and done.answer:
            self._describe(member.name, step.probe, done.answer)
        return outcome, raw_error(done, judgements)

    def _optional(self, step: Step) -> bool:
        return step.optional or step.id in self.recorder.experiment.profile.policies.optional_steps

    def _baselines(self, node: str | None) -> dict[str, float]:
        profile = self.recorder.experiment.profile
        gpus = {} if profile.gpus_per_node is None else {"gpu_count": float(profile.gpus_per_node)}
        return {
            "max_clock_skew_seconds": profile.network.max_clock_skew_seconds,
            **gpus,
            **profile.baselines,
        }

    def _ended(
        self,
        item: Item,
        step: Step,
        member: Member | None,
        outcome: Outcome,
        seconds: float,
        done: Done,
        judgements: Sequence[Judgement],
    ) -> None:
        name = member.name if member else None
        evidence = self._keep(item, step, name, done)
        self.recorder.record(
            ev.StepEnded(
                at=self.recorder.now(),
                node=name,
                item=item.id,
                step=step.id,
                command=self.steps.command(step, member),
                outcome=outcome,
                seconds=seconds,
                exit_status=done.exit_status,
                answer=short(dict(done.answer)),
                judgements=tuple(judgements),
                output=done.output[-OUTPUT_KEPT:],
                evidence=evidence,
                error=done.error,
            )
        )

    def _keep(self, item: Item, step: Step, node: str | None, done: Done) -> str:
        """Write the whole answer to a file; its place in the experiment's folder. Raises `JournalError`."""
        attempt = self.recorder.experiment.items[item.id].attempt
        place = f"evidence/{item.number}-{item.id}/{step.id}-{node or 'all'}-{attempt}.json"
        path = self.recorder.journal.folder / place
        document = {"answer": dict(done.answer), "output": done.output, "error": done.error}
        text = json.dumps(document, ensure_ascii=False, indent=1, default=str)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise JournalError(
                f"the evidence {path} can't be written",
                why=error.strerror or str(error),
                next_step="make room on the disk, then start again: the item is taken up anew",
            ) from None
        return place

    def _describe(self, node: str, probe: str, answer: Any) -> None:
        facts = short(dict(answer))
        if probe not in ("baseline", "microbench"):
            known = self.recorder.experiment.nodes[node].facts.get(probe, {})
            facts = {probe: {**known, **facts}}
        self.recorder.record(ev.NodeDescribed(at=self.recorder.now(), node=node, facts=facts))

    async def _ask(self, item: Item, state: ItemState, reason: str, attempt: int, left: float) -> str:
        profile = self.recorder.experiment.profile
        policy = profile.policies.item_failed
        first = "when what is missing was installed: " if lasting(reason) else ""
        go_on = ev.Choice(id="go on", words="Go on", leads_to="the failure is kept; the next item follows")
        retry = ev.Choice(
            id="retry",
            words="Retry",
            leads_to=f"{first}the item once more; {left / 60:.0f} min of its box left",
        )
        choices = [go_on]
        if left > 60 and state is not ItemState.TIMED_OUT:
            choices = [retry, go_on] if attempt == 1 and not lasting(reason) else [go_on, retry]
        return await self.decisions.ask(
            decision_after(item, attempt),
            subject=f"checklist item {item.number} {item.title} {state}",
            what_happened=item.why,
            raw_error=reason,
            choices=[*choices, stop_lab(profile)],
            policy="go on" if policy == "retry" and attempt > 1 else policy,
        )
