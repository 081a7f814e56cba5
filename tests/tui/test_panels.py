"""Panels on the smallest terminal: choices and keys stay in sight, whatever the text above them."""

from pathlib import Path

import pytest
from support.waiting import until
from textual.widgets import Input

from console.core.record import events as ev
from console.tui.app import LabApp
from console.tui.screens.base import LabScreen
from console.tui.widgets.confirm import ConfirmPanel
from console.tui.widgets.decision_panel import DecisionPanel
from console.tui.widgets.help import HelpPanel
from console.tui.widgets.hypotheses_form import HypothesesForm
from console.tui.words import Words
from tui.conftest import Opener
from tui.support import FakeSession, at, decision, opening, screen_text, story, walk

CAUSE = "ModuleNotFoundError: No module named 'transformer_engine'"


def long_decision() -> ev.DecisionAsked:
    frames = "\n".join(f'  File "/opt/lab/module{n}.py", line {n}, in call' for n in range(40))
    return decision().model_copy(update={"raw_error": f"{frames}\n{CAUSE}"})


def first_words(lang: str, key: str) -> str:
    """The start of some words: long ones may go over two lines."""
    return Words(lang)(key).split("  ")[0]


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_a_long_error_leaves_choices_reason_and_keys_in_sight(
    opened: Opener, folder: Path, lang: str
) -> None:
    asked = long_decision()
    async with opened(story(folder, asked), lang=lang) as (pilot, app, _):
        await pilot.pause()
        text = screen_text(app)
        assert CAUSE in text, "the end of the error names its cause"
        assert all(choice.words in text for choice in asked.choices)
        assert first_words(lang, "decision.reason") in text
        assert first_words(lang, "decision.keys") in text
        await pilot.press(*["pageup"] * 5)
        await pilot.pause()
        assert asked.what_happened in screen_text(app)


async def test_every_key_of_the_decision_is_alive(opened: Opener, folder: Path) -> None:
    session = story(folder, long_decision())
    async with opened(session) as (pilot, app, _):
        panel = app.screen
        assert isinstance(panel, DecisionPanel)
        await pilot.press("down", "down", "up")
        await pilot.press("tab", "x")
        assert isinstance(panel.focused, Input)
        await pilot.pause()
        assert first_words("en", "decision.typing") in screen_text(app)
        await pilot.press("escape")
        assert app.screen is panel, "escape leaves the text field first"
        assert panel.focused is None
        await pilot.press("enter")
        await until(lambda: session.asked, "the answer")
        assert session.asked[0][2:] == ("retry", "x")


async def test_a_typed_reason_is_not_lost_to_a_screen_key(opened: Opener, folder: Path) -> None:
    async with opened(story(folder, long_decision())) as (pilot, app, _):
        panel = app.screen
        await pilot.press("tab", "x", "enter", "3")
        await pilot.pause()
        assert app.screen is panel
        assert panel.query_one(Input).value == "x"
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, LabScreen), "the panel put off")


async def test_what_the_profile_expects_is_offered_to_be_edited_and_sealed(
    opened: Opener, folder: Path
) -> None:
    started, *rest = [*opening(), *walk()]
    assert isinstance(started, ev.ExperimentOpened)
    offered = "title: data parallel, expect: Half of E0."
    text = started.profile_text.replace("title: data parallel", offered)
    assert offered in text
    session = FakeSession([started.model_copy(update={"profile_text": text}), *rest], folder, now=at(19))
    async with opened(session) as (pilot, app, _):
        assert "Half of E0." in screen_text(app)
        assert session.asked == [], "nothing is sealed by being offered"
        await pilot.press(*"fast", "tab", *" Or more", "tab", *"slow", "tab", *"slow", "ctrl+s")
        await until(lambda: session.asked, "the sealing")
        assert session.asked == [("hypotheses", "fast", "Half of E0. Or more", "slow", "slow")]


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_many_hypotheses_are_reached_and_sealed(opened: Opener, folder: Path, lang: str) -> None:
    session = FakeSession([*opening(), *walk()], folder, now=at(19))
    known = [session.experiment.profile.configuration(name) for name in session.experiment.configurations]
    many = [known[0].model_copy(update={"id": f"E{n}", "title": f"one node, number {n}"}) for n in range(9)]
    sealed: list[dict[str, str] | None] = []
    async with opened(session, lang=lang) as (pilot, app, _):
        await pilot.press("escape")
        app.push_screen(HypothesesForm(many, app.words, {}, lambda draft: None), sealed.append)
        await pilot.pause()
        assert first_words(lang, "hypotheses.keys") in screen_text(app)
        await pilot.press("x", "ctrl+s")
        await pilot.pause()
        text = screen_text(app)
        assert "E1, E2, E3, E4, E5, E6, E7, E8" in text
        assert first_words(lang, "hypotheses.keys") in text
        for key in ("tab", "down", "enter") * 2:
            await pilot.press("x", key)
        await pilot.press("x", "down", "x")
        await pilot.pause()
        assert "number 8" in screen_text(app), "the field with the focus is in sight"
        await pilot.press("ctrl+s")
        await until(lambda: sealed, "the sealed texts")
    assert sealed == [{f"E{n}": "x" for n in range(9)}]


async def test_a_confirmation_with_long_commands_keeps_its_keys(opened: Opener, folder: Path) -> None:
    session = story(folder)
    long = {"node": "spark-a", "argv": ("megatron", *(f"--flag{n}" for n in range(200)))}
    plan: dict[str, object] = {"run": "E1-2", "config": "E1", "attempt": 2, "purpose": "matrix"}
    launches = [session.experiment.runs["E1-1"].launches[0].model_copy(update=long)]
    plan |= {"at": session.clock, "launches": launches, "log_node": "spark-a", "settings": {}}
    session.happen(ev.RunPlanned.model_validate(plan))
    async with opened(session) as (pilot, app, _):
        await pilot.press("s")
        await pilot.pause()
        assert isinstance(app.screen, ConfirmPanel)
        assert first_words("en", "confirm.keys").split("   ")[0] in screen_text(app)
        await pilot.press(*["pagedown"] * 9)
        await pilot.pause()
        assert "--flag199" in screen_text(app)
        await pilot.press("r", *"broken", "enter", "y")
        await until(lambda: session.asked, "the wish")
    assert session.asked == [("stop", "E1-2", "broken")]


@pytest.mark.parametrize("screen", range(1, 7))
async def test_help_ends_with_its_keys_and_scrolls_to_the_last_action(
    opened: Opener, folder: Path, screen: int
) -> None:
    async with opened(story(folder)) as (pilot, app, _):
        await pilot.press(str(screen), "question_mark")
        await pilot.pause()
        assert first_words("en", "help.close") in screen_text(app)
        await pilot.press(*["pagedown"] * 4)
        await pilot.pause()
        assert "q ^q" in screen_text(app)
        await pilot.press("escape")
        assert isinstance(app.screen, LabScreen)


async def test_help_of_a_watcher_names_no_key_that_acts(opened: Opener, folder: Path) -> None:
    async with opened(story(folder, read_only=True)) as (pilot, app, _):
        await pilot.press("question_mark")
        await pilot.pause()
        text = screen_text(app)
        assert Words()("action.help") in text
        assert not any(Words()(f"action.{name}") in text for name in ("decide", "stop", "restore"))


async def test_a_terminal_that_shrinks_under_a_panel(opened: Opener, folder: Path) -> None:
    async with opened(story(folder, long_decision()), size=(100, 40)) as (pilot, app, _):
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        await pilot.pause()
        assert first_words("en", "decision.keys") in screen_text(app)
        assert isinstance(app, LabApp)


async def test_a_panel_that_is_closed_before_its_turn_is_not_fitted(opened: Opener, folder: Path) -> None:
    async with opened(story(folder)) as (pilot, app, _):
        app.action_keys()
        panel = app.screen
        assert isinstance(panel, HelpPanel)
        await pilot.press("escape")
        await until(lambda: not panel.query(".panel-box"), "the panel to be gone")
        panel.fit_while_open()
        await pilot.press(*["question_mark", "escape"] * 24)
        assert app.is_running
