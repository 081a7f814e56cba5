"""Screen 2: the items with their boxes at the left, the evidence of the chosen one at the right."""

from datetime import datetime
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from console.core.plan.checklist import Item, ItemState, Judgement, Verdict, verdict_of
from console.core.record.events import Choice, StepEnded
from console.core.record.experiment import Experiment
from console.core.record.views import ItemView
from console.tui import figures, signs
from console.tui.actions import LOCAL, bindings
from console.tui.paint import fit, lines, plain, say
from console.tui.screens.base import LabScreen
from console.tui.widgets.panel import TextPanel
from console.tui.widgets.timebox import box_left, countdown
from console.tui.words import Words

LIST_CELLS = 34


class ChecklistScreen(LabScreen):
    """Follows the running item until the user chooses another one."""

    CSS_PATH: ClassVar = ["base.tcss", "checklist.tcss"]
    AUTO_FOCUS = "#items"
    BINDINGS = [*bindings(LOCAL["checklist"])]
    name_of = "checklist"

    def __init__(self) -> None:
        super().__init__()
        self._chosen: str | None = None

    def compose_body(self) -> ComposeResult:
        yield Static(id="walk")
        with Horizontal(id="checklist-body"):
            yield OptionList(id="items", markup=False)
            with Vertical(id="evidence-box"):
                yield Static(id="item-head")
                with VerticalScroll(id="evidence-scroll", classes="grow", can_focus=False):
                    yield Static(id="evidence")

    @on(OptionList.OptionHighlighted, "#items")
    def _item_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_id and event.option_id != self.shown_item(self.lab.session.experiment):
            self._chosen = event.option_id
            self.redraw()

    @on(OptionList.OptionSelected, "#items")
    def _item_selected(self) -> None:
        self.action_evidence()

    def shown_item(self, experiment: Experiment) -> str:
        """The item whose evidence is shown."""
        return self._chosen or _current(experiment)

    def action_evidence(self) -> None:
        """The evidence of the item, whole, in a panel."""
        experiment = self.lab.session.experiment
        item = experiment.checklist.item(self.shown_item(experiment))
        body = evidence_text(item, experiment.items[item.id], self.words, whole=True)
        self.app.push_screen(TextPanel(_title(item, self.words), body, self.words("help.close")))

    def draw(self, experiment: Experiment, now: datetime) -> None:
        words = self.words
        self.put("walk", walk_text(experiment, now, words, self.size.width))
        self._patch_items(experiment, now)
        item = experiment.checklist.item(self.shown_item(experiment))
        view = experiment.items[item.id]
        self.put("item-head", head_text(item, view, now, words))
        text = evidence_text(item, view, words)
        if decision := experiment.open_decision:
            text = say(choices_text(decision.choices, decision.recommended, words), "\n", text)
        self.put("evidence", text)

    def _patch_items(self, experiment: Experiment, now: datetime) -> None:
        shown = self.query_one("#items", OptionList)
        if not shown.option_count:
            shown.add_options([Option(Text(""), id=item.id) for item in experiment.checklist.items])
        for item in experiment.checklist.items:
            prompt = item_text(item, experiment.items[item.id], now, self.words)
            if shown.get_option(item.id).prompt != prompt:
                shown.replace_option_prompt(item.id, prompt)
        place = shown.get_option_index(self.shown_item(experiment))
        if shown.highlighted != place:
            with self.prevent(OptionList.OptionHighlighted):
                shown.highlighted = place


def _current(experiment: Experiment) -> str:
    """The running item, else the one a decision is about, else the last that has a result."""
    items = experiment.items
    running = [item_id for item_id, view in items.items() if view.state == "running"]
    done = [item_id for item_id, view in items.items() if view.state.concluded]
    return (running or done[-1:] or list(items))[0]


def _title(item: Item, words: Words) -> str:
    return f"{item.number} {plain(item.title_zh if words.lang == 'zh' else item.title)}"


def walk_text(experiment: Experiment, now: datetime, words: Words, width: int) -> Text:
    """Time of the whole walk against its box, and the verdict."""
    text = say((f" {words('checklist.title')}  ", "bold"))
    whole = experiment.checklist.box_seconds
    if experiment.walk_started is None:
        text.append(words("checklist.waiting"), "grey62")
    else:
        spent = experiment.walk_seconds
        if spent is None:
            spent = figures.since(experiment.walk_started, now)
        style = "bold red" if spent > whole else "yellow" if whole - spent < 300 else ""
        text.append(f"{words('checklist.walk')} {figures.clock(spent)} ", style)
        text.append(f"{words('checklist.of')} {figures.clock(whole)}")
    verdict = experiment.verdict or so_far(experiment)
    label = words("checklist.verdict") if experiment.verdict else words("checklist.so_far")
    end = say(f"{label}: ", (plain(words.state(verdict) if verdict else "–"), "bold"), " ")
    text.append(" " * max(2, width - text.cell_len - end.cell_len))
    return text.append_text(end)


def so_far(experiment: Experiment) -> Verdict | None:
    """The verdict if all that is still open goes well; None before anything has a result."""
    states = {item_id: view.state for item_id, view in experiment.items.items()}
    if not any(state.concluded for state in states.values()):
        return None
    hoped = {i: state if state.concluded else ItemState.PASSED for i, state in states.items()}
    if (undecided := failed_item(experiment)) is not None:
        hoped[undecided] = ItemState.FAILED
    return verdict_of(hoped, experiment.checklist)


def failed_item(experiment: Experiment) -> str | None:
    """The item that failed and is not decided about."""
    decision = experiment.open_decision
    kind, _, rest = (decision.id if decision else "").partition(":")
    return rest.rpartition(":")[0] if kind == "item" else None


def item_text(item: Item, view: ItemView, now: datetime, words: Words) -> Text:
    """One line of the list: sign, title, and the box counting down or the time it took."""
    found = signs.sign(signs.ITEM, view.state)
    left = box_left(view, now)
    if left is not None:
        time = countdown(left)
    elif view.state.concluded:
        time = Text(figures.clock(view.seconds))
    else:
        time = Text("")
    name = fit(_title(item, words), LIST_CELLS - 3 - 6 - 1)
    return say((f"{found.glyph} ", found.style), name, " ", " " * (5 - time.cell_len), time)


def head_text(item: Item, view: ItemView, now: datetime, words: Words) -> Text:
    """Title, state and box of the chosen item, and why it is on the list."""
    found = signs.sign(signs.ITEM, view.state)
    text = say(
        (_title(item, words) + "  ", "bold"), (f"{found.glyph} {words.state(view.state)}", found.style)
    )
    if view.attempt > 1:
        text.append(f"  {words('checklist.attempt')} {view.attempt}")
    if (left := box_left(view, now)) is not None:
        text.append(f"  {words('checklist.box')} ")
        text.append_text(countdown(left))
        text.append(f" {words('checklist.box_left')}")
    if view.closes:
        text.append(f"  {words('checklist.closes')}: {', '.join(map(plain, view.closes))}", "yellow")
    rows = [text, say((plain(item.why), "grey62"))]
    if view.reason:
        rows.append(say((plain(view.reason), found.style)))
    return lines(rows)


def evidence_text(item: Item, view: ItemView, words: Words, *, whole: bool = False) -> Text:
    """Every step's result: value against rule, error, and with `whole` command and output."""
    rows: list[Text] = []
    for ended in view.evidence:
        rows += _step_rows(item, ended, words, whole=whole)
    for running in view.running_steps:
        found = signs.sign(signs.ITEM, "running")
        rows.append(say((f"{found.glyph} {plain(running)} {words('checklist.running')}", found.style)))
    if not rows:
        empty = "checklist.no_evidence" if view.state.concluded else "checklist.waiting"
        rows.append(say((words(empty), "grey62")))
    return lines(rows)


def _step_rows(item: Item, ended: StepEnded, words: Words, *, whole: bool) -> list[Text]:
    found = signs.sign(signs.STEP, ended.outcome)
    title = next((step.title for step in item.steps if step.id == ended.step), ended.step)
    head = say(
        (f"{found.glyph} ", found.style),
        plain(title),
        (f"  {plain(ended.node)}" if ended.node else "", "cyan"),
    )
    head.append(f"  {ended.seconds:.1f} s", "grey62")
    if ended.exit_status:
        head.append(f"  exit {ended.exit_status}", "red")
    rows = [head]
    for judgement in ended.judgements:
        if whole or judgement.passed is not True:
            rows += _judgement_rows(judgement, words)
        else:
            rows.append(say((f"  {plain(judgement.value)}: {_found(judgement, words)}", "dim")))
    if ended.error:
        rows.append(say(("  " + ended.error.strip().replace("\n", "\n  "), found.style)))
    if whole:
        rows.append(say((f"  {words('checklist.command')}: ", "bold"), plain(ended.command)))
        if ended.output:
            rows.append(say((f"  {words('checklist.output')}:\n", "bold"), ended.output.rstrip()))
        if ended.evidence:
            rows.append(say((f"  {plain(ended.evidence)}", "grey62")))
    return rows


def _judgement_rows(judgement: Judgement, words: Words) -> list[Text]:
    """A value that was not judged stands beside the reason: there was nothing to expect of it."""
    if judgement.passed is None:
        row = say((f"  ? {plain(judgement.value)}: {_seen(judgement)}", "yellow"))
        return [row, say((f"    {plain(judgement.why)}", "grey62"))]
    style, glyph = ("green", "✓") if judgement.passed else ("red", "✗")
    row = say((f"  {glyph} {plain(judgement.value)}: {_found(judgement, words)}", style))
    why = f"    {words('checklist.why')}: {plain(judgement.why)}"
    return [row, say((why, "grey62"))]


def _found(judgement: Judgement, words: Words) -> str:
    return words("checklist.found", seen=_seen(judgement), expected=plain(judgement.expected))


def _seen(judgement: Judgement) -> str:
    seen = judgement.seen
    if isinstance(seen, float):
        return figures.number(seen)
    return figures.MISSING if seen is None else plain(seen)


def choices_text(choices: tuple[Choice, ...], recommended: str, words: Words) -> Text:
    """The open decision's choices, in short."""
    text = say((words("checklist.choices") + ": ", "bold yellow"))
    names = [plain(choice.words) + (" *" if choice.id == recommended else "") for choice in choices]
    text.append(" · ".join(names), "yellow")
    return text
