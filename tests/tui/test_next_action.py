"""The one line that says what comes next, in every state a lab can be in."""

from datetime import timedelta
from pathlib import Path

import pytest

from console.core.plan.checklist import Verdict
from console.core.record import events as ev
from console.tui.next_action import hypotheses_due, next_action
from console.tui.words import Words
from tui.support import FakeSession, at, decision, hypotheses, opening, story, walk


def said(session: FakeSession, lang: str = "en", *, read_only: bool = False) -> tuple[str, str | None]:
    return next_action(session.experiment, session.clock, Words(lang), read_only=read_only)


def test_before_anything_is_stopped(folder: Path) -> None:
    words, action = said(FakeSession(opening()[:1], folder, now=at(0)))
    assert ("machines are checked" in words, action) == (True, None)


def test_a_decision_comes_before_everything(folder: Path) -> None:
    session = story(folder, decision())
    session.happen(ev.LinkChanged(at=session.clock, node="spark-b", state="down", why="no answer"))
    assert said(session)[1] == "decide"
    assert said(session, read_only=True) == (f"waiting for a decision: {decision().subject}", None)


def test_no_contact_is_told_with_its_age(folder: Path) -> None:
    session = story(folder)
    since = session.clock - timedelta(seconds=40)
    session.happen(ev.LinkChanged(at=since, node="spark-b", state="down", why="no answer"))
    assert said(session)[0].startswith("no contact with spark-b for 40 s")


def test_hypotheses_wait_until_it_is_decided_what_runs(folder: Path) -> None:
    events = [event for event in walk() if not isinstance(event, ev.WalkEnded)]
    session = FakeSession([*opening(), *events], folder, now=at(19))
    session.happen(ev.WalkEnded(at=at(19), verdict=Verdict.DOWN, seconds=60.0))
    assert not hypotheses_due(session.experiment)
    session.happen(decision().model_copy(update={"decision": "walk"}))
    assert said(session)[1] == "decide"
    session.happen(ev.DecisionMade(at=at(19), decision="walk", choice="degrade", reason="no", by="person"))
    assert not hypotheses_due(session.experiment)
    session.happen(ev.Degraded(at=at(19), reason="no GPU"))
    assert hypotheses_due(session.experiment)


@pytest.mark.parametrize(("state", "word"), [("stopping", "stopping"), ("restoring", "restoring")])
def test_a_service_on_its_way(folder: Path, state: str, word: str) -> None:
    session = FakeSession([*opening(), *walk(), *hypotheses()], folder, now=at(40))
    session.happen(ev.ServiceChanged.model_validate({"at": at(40), "state": state}))
    assert word in said(session)[0]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("outcome", "screen"), [("accepted", "6"), ("fell short", "5"), ("stopped", "5")])
def test_a_closed_lab_says_where_to_look(folder: Path, outcome: str, screen: str, lang: str) -> None:
    session = story(folder)
    session.happen(ev.ExperimentClosed.model_validate({"at": session.clock, "outcome": outcome}))
    words, action = said(session, lang)
    assert screen in words
    assert "q" in words
    assert action is None
