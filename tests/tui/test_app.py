"""Keys, panels and wishes: what is asked of the session first, what stands on the screen second."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from support.waiting import until
from textual.widgets import Input

from console.core.errors import ServiceError
from console.core.record import events as ev
from console.tui.actions import GLOBAL, LOCAL, SCREENS
from console.tui.catalogue import CATALOGUE
from console.tui.messages import ExperimentChanged, WishGranted, WishRefused, WorkFailed
from console.tui.widgets.confirm import ConfirmPanel, QuitPanel
from console.tui.widgets.decision_panel import DecisionPanel
from console.tui.widgets.help import HelpPanel
from console.tui.widgets.hypotheses_form import HypothesesForm
from tui.conftest import Opener
from tui.support import (
    FakeSession,
    at,
    decision,
    e0_done,
    hypotheses,
    opening,
    screen_text,
    stopped_service,
    story,
    walk,
)


def without_service(opened: ev.Event) -> ev.Event:
    """The same lab, borrowing nothing."""
    assert isinstance(opened, ev.ExperimentOpened)
    text = re.sub(r"service: \{.*\}", "service: {kind: none}", opened.profile_text)
    assert text != opened.profile_text
    return opened.model_copy(update={"profile_text": text})


@pytest.mark.parametrize("start", SCREENS)
async def test_every_screen_is_one_key_away(opened: Opener, folder: Path, start: str) -> None:
    async with opened(story(folder), screen=start) as (pilot, app, _):
        for key, name in enumerate(SCREENS, start=1):
            await pilot.press(str(key))
            assert app.lab_screen.name_of == name
            assert app.screen is app.lab_screen


async def test_an_event_is_drawn_from_the_new_state(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session) as (_pilot, app, seen):
        session.happen(
            ev.LinkChanged(
                at=session.clock - timedelta(seconds=40), node="spark-b", state="down", why="no answer"
            )
        )
        await until(lambda: "down 40 s" in screen_text(app), "the link's age on screen")
        assert any(isinstance(message, ExperimentChanged) for message in seen)
        text = screen_text(app)
        assert "E1 running" in text, "no contact says nothing about the job"
        assert "(40 s ago)" in text


async def test_a_decision_opens_by_itself_and_is_answered_with_a_reason(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session) as (pilot, app, seen):
        session.happen(decision())
        await until(lambda: isinstance(app.screen, DecisionPanel), "the panel")
        await pilot.pause()
        text = screen_text(app)
        assert "undefined symbol" in text
        assert text.index("go on, FP8 closed") < text.index("try the item again"), "recommended first"
        assert "give a reason first" not in screen_text(app)
        await pilot.press("enter")
        assert "give a reason first" in screen_text(app)
        await pilot.press("enter")
        assert isinstance(app.screen.focused, Input), "without a reason there is nothing to go back with"
        assert session.asked == [], "no decision without a reason"
        await pilot.press(*"known", "enter")
        assert session.asked == [], "finishing the sentence decides nothing"
        await pilot.press("enter")
        await until(lambda: session.asked, "the answer")
        assert session.asked == [("answer", "item-megatron-1", "go on", "known")]
        await until(lambda: any(isinstance(m, WishGranted) for m in seen), "the wish granted")
        assert app.screen is app.lab_screen


async def test_another_choice_can_be_made(opened: Opener, folder: Path) -> None:
    session = story(folder, decision())
    async with opened(session) as (pilot, app, _):
        assert isinstance(app.screen, DecisionPanel)
        await pilot.press("c", "tab", *"no gpu", "enter", "enter")
        await until(lambda: session.asked, "the answer")
        assert session.asked[0][2:] == ("degrade", "no gpu")


async def test_a_decision_can_be_put_off_and_found_again(opened: Opener, folder: Path) -> None:
    async with opened(story(folder, decision())) as (pilot, app, _):
        await pilot.press("escape")
        assert app.screen is app.lab_screen
        assert "decision needed" in screen_text(app)
        await pilot.press("d")
        assert isinstance(app.screen, DecisionPanel)
        await pilot.press("2")
        assert app.lab_screen.name_of == "checklist"
        assert app.screen is app.lab_screen


async def test_read_only_decides_nothing(opened: Opener, folder: Path) -> None:
    session = story(folder, decision(), read_only=True)
    async with opened(session) as (pilot, app, _):
        assert app.screen is app.lab_screen
        assert "read-only" in screen_text(app)
        await pilot.press("d", "enter", "enter", "x", "enter")
        assert session.asked == []


@pytest.mark.parametrize("screen", SCREENS)
async def test_restore_is_two_keys_away_and_says_what_it_does(
    opened: Opener, folder: Path, screen: str
) -> None:
    session = story(folder)
    async with opened(session, screen=screen) as (pilot, app, _):
        await pilot.press("R")
        await pilot.pause()
        assert isinstance(app.screen, ConfirmPanel)
        text = screen_text(app)
        for part in ("docker start vllm-fn", "spark-a", "spark-b", "20311", "SIGTERM"):
            assert part in text
        assert session.asked == []
        await pilot.press("y")
        await until(lambda: session.asked, "the wish")
        assert session.asked[0][0] == "restore"


async def test_restore_is_reachable_from_a_text_field(opened: Opener, folder: Path) -> None:
    session = story(folder, decision())
    async with opened(session) as (pilot, app, _):
        await pilot.press("tab")
        assert isinstance(app.focused, Input)
        await pilot.press("ctrl+r", "y")
        await until(lambda: session.asked, "the wish")
        assert session.asked[0][0] == "restore"


async def test_a_confirmation_can_be_left_and_given_a_reason(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session) as (pilot, app, _):
        await pilot.press("s", "escape")
        assert app.screen is app.lab_screen
        assert session.asked == []
        await pilot.press("s", "r", *"slow y", "enter", "y")
        await until(lambda: session.asked, "the stop")
        assert session.asked == [("stop", "E1-1", "slow y")]


async def test_a_refused_wish_says_why_and_what_next(opened: Opener, folder: Path) -> None:
    session = story(folder)
    session.refuse = ServiceError(
        "the service is being restored already", why="guard", next_step="wait for it", node="spark-a"
    )
    async with opened(session) as (pilot, app, seen):
        await pilot.press("R", "y")
        await until(lambda: any(isinstance(m, WishRefused) for m in seen), "the refusal")
        await until(lambda: "wait for it" in screen_text(app), "next step on screen")
        assert "spark-a: the service is being restored already" in screen_text(app)


async def test_a_lab_that_failed_says_so_until_it_is_left(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session) as (pilot, app, _):
        await pilot.press("question_mark")
        error = ServiceError("the guard is gone", why="killed", next_step="look at the node", node="spark-a")
        app.post_message(WorkFailed(error))
        await until(lambda: "look at the node" in screen_text(app), "the error in place of the help")
        assert "spark-a: the guard is gone" in screen_text(app)
        await pilot.press("escape")
        session.happen(decision())
        await until(
            lambda: "stopped by an error: spark-a: the guard is gone [q]" in screen_text(app), "its last word"
        )
        assert app.screen is app.lab_screen, "nobody is left to hear a decision"


async def test_hypotheses_wait_for_a_decision_that_was_put_off(opened: Opener, folder: Path) -> None:
    session = FakeSession([*opening(), *walk(), decision()], folder, now=at(19))
    async with opened(session) as (pilot, app, _):
        assert isinstance(app.screen, DecisionPanel)
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is app.lab_screen


@pytest.mark.parametrize("screen", SCREENS)
async def test_the_way_out_is_always_among_the_keys(opened: Opener, folder: Path, screen: str) -> None:
    async with opened(story(folder), screen=screen) as (_pilot, app, _):
        assert "q quit" in screen_text(app)


async def test_hypotheses_are_written_before_the_first_run_then_sealed(opened: Opener, folder: Path) -> None:
    session = FakeSession([*opening(), *walk()], folder, now=at(19))
    async with opened(session) as (pilot, app, _):
        assert isinstance(app.screen, HypothesesForm)
        await pilot.press(*"six", "tab", *"half", "ctrl+s")
        await pilot.pause()
        assert session.asked == []
        assert "still empty: E2, E3" in screen_text(app)
        await pilot.press(*"slow", "tab", *"even", "ctrl+s")
        await until(lambda: session.asked, "the hypotheses")
        assert session.asked == [("hypotheses", "six", "half", "slow", "even")]
        await pilot.press("h")
        await pilot.pause()
        assert not isinstance(app.screen, HypothesesForm)
        assert "sealed" in screen_text(app)
        assert "even" in screen_text(app)


async def test_what_was_typed_is_kept_when_the_form_is_put_off(opened: Opener, folder: Path) -> None:
    session = FakeSession([*opening(), *walk()], folder, now=at(19))
    async with opened(session) as (pilot, app, _):
        await pilot.press(*"six", "escape", "h")
        await pilot.pause()
        assert app.screen.query_one("#hypothesis-E0", Input).value == "six"


async def test_quitting_says_what_goes_on_and_leaves_in_order(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session) as (pilot, app, _):
        await pilot.press("q")
        await pilot.pause()
        assert isinstance(app.screen, QuitPanel)
        text = screen_text(app)
        for part in ("E1-1", "spark-a", "spark-b", "lab open spark-pair.yaml", "still stopped"):
            assert part in text
        await pilot.press("escape")
        assert session.asked == []
        await pilot.press("q", "y")
        await until(lambda: app.return_value is not None, "the exit")
    assert session.asked == [("leave",)]
    assert app.return_value is not None
    assert app.return_value.running == (("E1-1", "spark-a"), ("E1-1", "spark-b"))


@pytest.mark.parametrize("how", ["watched", "closed"])
async def test_leaving_asks_nothing_where_nothing_depends_on_it(
    opened: Opener, folder: Path, how: str
) -> None:
    if how == "watched":
        session = story(folder, read_only=True)
    else:
        closed = ev.ExperimentClosed(at=at(41), outcome="accepted")
        session = FakeSession([*opening(), *walk(), *hypotheses(), *e0_done(), closed], folder, now=at(41))
    async with opened(session) as (pilot, app, _):
        await pilot.press("q")
        await until(lambda: app.return_value is not None, "the exit")
    assert session.asked == [("leave",)]


async def test_a_closed_lab_that_still_owes_the_service_asks(opened: Opener, folder: Path) -> None:
    closed = ev.ExperimentClosed(at=at(41), outcome="stopped")
    events = [*opening(), *walk(), *stopped_service(), *hypotheses(), *e0_done(), closed]
    async with opened(FakeSession(events, folder, now=at(41))) as (pilot, app, _):
        await pilot.press("q")
        await pilot.pause()
        assert "still stopped" in screen_text(app)


async def test_restore_is_not_offered_where_no_service_is_borrowed(opened: Opener, folder: Path) -> None:
    session = FakeSession([without_service(opening()[0]), *walk(), *hypotheses()], folder, now=at(20))
    async with opened(session, size=(120, 60)) as (pilot, app, _):
        assert CATALOGUE["action.restore"][0] not in [
            command.title for command in app.get_system_commands(app.screen)
        ]
        await pilot.press("R")
        await pilot.pause()
        assert "this lab borrows no service" in screen_text(app)
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpPanel)
        assert CATALOGUE["action.restore"][0] not in app.screen._body.plain


async def test_help_lists_the_registry(opened: Opener, folder: Path) -> None:
    async with opened(story(folder), size=(120, 60), screen="runs") as (pilot, app, _):
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpPanel)
        shown = app.screen._body.plain
        for action in (*GLOBAL, *LOCAL["runs"]):
            assert CATALOGUE[f"action.{action.id}"][0] in shown


async def test_palette_offers_the_registry(opened: Opener, folder: Path) -> None:
    async with opened(story(folder), screen="runs") as (_, app, _seen):
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert CATALOGUE["action.restore"][0] in titles
        assert CATALOGUE["action.filter"][0] in titles


async def test_language_changes_on_the_spot(opened: Opener, folder: Path) -> None:
    async with opened(story(folder)) as (pilot, app, _):
        assert "link ● up" in screen_text(app)
        await pilot.press("L")
        await pilot.pause()
        assert "链路" in screen_text(app)


async def test_next_action_after_the_last_run_is_the_service(opened: Opener, folder: Path) -> None:
    session = FakeSession([*opening(), *walk(), *hypotheses(), *e0_done()], folder, now=at(40))
    session.happen(ev.ServiceChanged(at=at(40), state="stopped"))
    session._experiment = session.experiment.__class__(
        **{f: getattr(session.experiment, f) for f in session.experiment.__slots__} | {"only": ("E0",)}
    )
    async with opened(session) as (_, app, _seen):
        assert "bring it back [R]" in screen_text(app)


def test_no_key_means_two_things_on_one_screen() -> None:
    for screen in SCREENS:
        keys = [key for action in (*LOCAL[screen], *GLOBAL) for key in action.key.split(",")]
        assert len(keys) == len(set(keys)), screen


def test_every_action_has_words_in_both_languages() -> None:
    for actions in (GLOBAL, *LOCAL.values()):
        for action in actions:
            assert all(CATALOGUE[f"action.{action.id}"])
