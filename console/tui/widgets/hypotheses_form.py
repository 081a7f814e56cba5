"""What was expected of each configuration: written once before the first run, then sealed."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input, Static

from console.core.plan.matrix import Configuration
from console.core.record.experiment import Experiment
from console.tui import figures
from console.tui.paint import plain, say
from console.tui.widgets.panel import Panel, TextPanel
from console.tui.words import Words


class HypothesesForm(Panel[dict[str, str]]):
    """A line for each configuration, begun with what the profile expects of it; sealing needs all of them."""

    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar = [
        Binding("ctrl+s", "seal", show=False, priority=True),
        Binding("tab,down", "app.focus_next", show=False, priority=True),
        Binding("shift+tab,up", "app.focus_previous", show=False, priority=True),
    ]

    def __init__(
        self,
        configurations: Sequence[Configuration],
        words: Words,
        draft: Mapping[str, str],
        keep: Callable[[dict[str, str]], None],
    ) -> None:
        """`keep` is told what stands in the fields after every change, so that nothing typed is lost."""
        super().__init__(words("hypotheses.title"), say(words("hypotheses.how")), words("hypotheses.keys"))
        self._configurations = configurations
        self._words = words
        self._draft = draft
        self._keep = keep

    def compose_inside(self) -> ComposeResult:
        for config in self._configurations:
            varies = self._words("hypotheses.varies", what=config.varies)
            label = say((f"{config.id} ", "bold"), f"{config.title} ({varies})")
            yield Static(label, classes="hypothesis-name")
            text = self._draft.get(config.id, plain(config.expect))
            yield Input(text, id=f"hypothesis-{config.id}", placeholder="…", select_on_focus=False)

    def compose_below(self) -> ComposeResult:
        yield Static("", id="missing", classes="panel-label", markup=False)

    @property
    def draft(self) -> dict[str, str]:
        """What stands in the fields now."""
        return {
            config.id: plain(self.query_one(f"#hypothesis-{config.id}", Input).value).strip()
            for config in self._configurations
        }

    def on_input_changed(self) -> None:
        self._keep(self.draft)

    def on_input_submitted(self) -> None:
        self.app.action_focus_next()

    def action_seal(self) -> None:
        texts = self.draft
        missing = [config_id for config_id, text in texts.items() if not text]
        if missing:
            words = self._words("hypotheses.missing", ids=", ".join(missing))
            self.query_one("#missing", Static).update(say((words, "bold yellow")))
            self.call_after_refresh(self.fit)
            self.query_one(f"#hypothesis-{missing[0]}", Input).focus()
            return
        self.dismiss(texts)


def sealed_panel(experiment: Experiment, words: Words) -> TextPanel:
    """The hypotheses as they were sealed, to read."""
    assert experiment.hypotheses_at is not None
    head = words(
        "hypotheses.sealed",
        at=figures.time_of_day(experiment.hypotheses_at),
        sha=(experiment.hypotheses_sha256 or "")[:16],
    )
    body = say((head, "dim"))
    for config_id, text in experiment.hypotheses.items():
        body.append_text(say((f"\n{config_id}  ", "bold"), text))
    return TextPanel(words("hypotheses.title"), body, words("help.close"))
