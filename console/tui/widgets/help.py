"""The keys of a screen, written from the registry."""

from collections.abc import Sequence

from rich.text import Text

from console.engine.session import Session
from console.tui.actions import GLOBAL, LOCAL, Action, ScreenName, possible
from console.tui.paint import fit, say
from console.tui.widgets.panel import TextPanel
from console.tui.words import Words


class HelpPanel(TextPanel):
    """All keys that do something on `screen`; where it is only looked on, none that would act."""

    def __init__(self, screen: ScreenName, words: Words, session: Session) -> None:
        title = f"{words('help.title')}: {words(f'screen.{screen}')}"
        super().__init__(title, _table(screen, words, session), words("help.close"))


def _table(screen: ScreenName, words: Words, session: Session) -> Text:
    rows: list[Text] = []
    everywhere = [
        action for action in GLOBAL if possible(action, session.experiment, read_only=session.read_only)
    ]
    if LOCAL[screen]:
        rows += [say((words("help.here"), "bold underline")), *_rows(LOCAL[screen], words)]
    rows += [say((words("help.everywhere"), "bold underline")), *_rows(everywhere, words)]
    return Text("\n").join(rows)


def _rows(actions: Sequence[Action], words: Words) -> list[Text]:
    tags = {"none": "", "writes": words("help.writes"), "ends": words("help.ends")}
    return [
        say(
            ("  " + fit(action.shown_keys, 8), "bold cyan"),
            fit(words(f"action.{action.id}"), 30),
            (tags[action.danger] or words.hint(action.id), "red" if action.danger == "ends" else "dim"),
        )
        for action in actions
    ]
