"""Points at which a person decides or, without a screen, the profile's policy does; all are journalled."""

import asyncio
from collections.abc import Sequence

from console.core.errors import InputError
from console.core.record.events import Choice, DecisionAsked, DecisionMade
from console.engine.recorder import Recorder


class Decisions:
    """Asks and waits.

    After a restart of the console a decision keeps its answer, and one still open stays open as it was asked.
    """

    def __init__(self, recorder: Recorder, *, headless: bool) -> None:
        self._recorder = recorder
        self._headless = headless
        self._answered = asyncio.Condition()

    async def ask(
        self,
        decision: str,
        *,
        subject: str,
        what_happened: str,
        raw_error: str,
        choices: Sequence[Choice],
        policy: str,
        node: str | None = None,
        run: str | None = None,
    ) -> str:
        """The id of the choice that was made. The first choice is the recommended one.

        `policy` is the profile's answer; one that is not among the choices gives way to the recommended one.
        """
        if decision not in self._recorder.experiment.decisions:
            self._recorder.record(
                DecisionAsked(
                    at=self._recorder.now(),
                    node=node,
                    run=run,
                    decision=decision,
                    subject=subject,
                    what_happened=what_happened,
                    raw_error=raw_error,
                    choices=tuple(choices),
                    recommended=choices[0].id,
                )
            )
        asked = self._recorder.experiment.decisions[decision]
        if asked.choice is None and self._headless:
            choice = policy if policy in {offered.id for offered in asked.choices} else asked.recommended
            await self.answer(decision, choice, _policy_reason(policy, choice), by_person=False)
        async with self._answered:
            while (made := self._recorder.experiment.decisions[decision].choice) is None:
                await self._answered.wait()
        return made

    async def answer(self, decision: str, choice: str, reason: str, *, by_person: bool = True) -> None:
        """Record the answer. Raises `InputError` for a decision that is not open, or a choice not offered."""
        view = self._recorder.experiment.decisions.get(decision)
        if view is None or view.choice is not None:
            raise InputError(
                "this decision is not open any more", next_step="see the timeline for its answer"
            )
        if choice not in {offered.id for offered in view.choices}:
            raise InputError(
                f"{choice!r} is not one of the choices",
                next_step="choose among " + ", ".join(offered.id for offered in view.choices),
            )
        self._recorder.record(
            DecisionMade(
                at=self._recorder.now(),
                decision=decision,
                choice=choice,
                reason=reason,
                by="person" if by_person else "policy",
            )
        )
        async with self._answered:
            self._answered.notify_all()


def _policy_reason(policy: str, choice: str) -> str:
    if policy == choice:
        return f"the profile's policy without a screen: {policy}"
    return f"the policy {policy!r} is not possible here; the recommended choice was taken"
