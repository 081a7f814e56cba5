"""A decision: what happened, the raw error, what each choice leads to, and a reason."""

from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input, Static

from console.core.record.events import Choice
from console.core.record.views import DecisionView
from console.tui.paint import plain, say
from console.tui.widgets.panel import Panel
from console.tui.words import Words


@dataclass(frozen=True, slots=True)
class Answer:
    decision: str
    choice: str
    reason: str


class DecisionPanel(Panel[Answer]):
    """Open decision. The recommended choice stands first and is chosen until another one is.

    Enter decides only from the choices: in the text field it leads back to them, so that a decision is
    never taken by finishing a sentence.
    """

    BINDINGS: ClassVar = [
        Binding("up,k", "choose(-1)", show=False),
        Binding("down,j", "choose(1)", show=False),
        Binding("tab", "reason", show=False, priority=True),
        Binding("enter", "decide", show=False),
        *(Binding(letter, f"pick({n})", show=False) for n, letter in enumerate("abcdef")),
    ]

    def __init__(self, decision: DecisionView, words: Words, *, read_only: bool = False) -> None:
        super().__init__(
            f"{words('decision.title')}: {plain(decision.subject)}",
            _story(decision, words),
            words("decision.read_only" if read_only else "decision.keys"),
            typing_keys=words("decision.typing"),
        )
        self.decision = decision
        self._words = words
        self._read_only = read_only
        self._choices = _recommended_first(decision)
        self._chosen = 0

    def compose_below(self) -> ComposeResult:
        yield Static(self._painted(), id="choices")
        if not self._read_only:
            yield Static(
                self._words("decision.reason"), id="reason-label", classes="panel-label", markup=False
            )
            yield Input(id="reason", placeholder="…")

    def fit(self) -> None:
        """The end of a raw error names its cause: that part is shown first."""
        super().fit()
        self.query_one(".panel-body").scroll_end(animate=False)

    def action_choose(self, step: int) -> None:
        self.action_pick((self._chosen + step) % len(self._choices))

    def action_pick(self, place: int) -> None:
        if place < len(self._choices):
            self._chosen = place
            self.query_one("#choices", Static).update(self._painted())

    def action_reason(self) -> None:
        if self.focused is not None:
            self.set_focus(None)
        elif not self._read_only:
            self.query_one("#reason", Input).focus()

    @property
    def reason(self) -> str:
        """What stands in the text field now."""
        return plain(self.query_one("#reason", Input).value).strip()

    def on_input_changed(self) -> None:
        if self.reason:
            self.query_one("#reason-label", Static).update(self._words("decision.reason"))

    def on_input_submitted(self) -> None:
        """Leave the text field, so that enter decides."""
        if self.reason:
            self.set_focus(None)
        else:
            self._ask_for_reason()

    def _ask_for_reason(self) -> None:
        missing = say((self._words("decision.no_reason"), "bold yellow"))
        self.query_one("#reason-label", Static).update(missing)
        self.query_one("#reason", Input).focus()

    def action_decide(self) -> None:
        if self._read_only:
            return
        if not (reason := self.reason):
            self._ask_for_reason()
            return
        self.dismiss(Answer(self.decision.id, self._choices[self._chosen].id, reason))

    def action_close(self) -> None:
        if self.focused is not None:
            self.set_focus(None)
        else:
            self.dismiss(None)

    def _painted(self) -> Text:
        rows = []
        for place, choice in enumerate(self._choices):
            chosen = place == self._chosen
            tag = (
                f"  ({self._words('decision.recommended')})" if choice.id == self.decision.recommended else ""
            )
            head = say(
                (f"{'▶' if chosen else ' '} {'abcdef'[place]}  ", "bold"),
                (plain(choice.words), "bold reverse" if chosen else "bold"),
                (tag, "green"),
            )
            rows += [head, say((f"     → {plain(choice.leads_to)}", "" if chosen else "dim"))]
        return Text("\n").join(rows)


def _recommended_first(decision: DecisionView) -> tuple[Choice, ...]:
    return tuple(sorted(decision.choices, key=lambda choice: choice.id != decision.recommended))


def _story(decision: DecisionView, words: Words) -> Text:
    story = say(decision.what_happened)
    if decision.raw_error:
        story.append_text(say(("\n" + words("decision.error") + "\n", "bold"), (decision.raw_error, "red")))
    return story
