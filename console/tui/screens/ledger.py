"""Screen 4: what the chosen configuration costs by the classic account, beside what was measured."""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from console.core.ledger.classic import classic_account
from console.core.ledger.columns import QUANTITIES, Column, Comparison, Quantity, Value
from console.core.ledger.of_lab import device_with_own_memory
from console.core.plan.matrix import Configuration
from console.core.record.experiment import Experiment
from console.core.record.gaps import Both
from console.core.record.parameters import whole_model
from console.core.record.predictions import Quantity as PredictedQuantity
from console.core.record.predictions import predictions
from console.tui import figures
from console.tui.actions import LOCAL, bindings
from console.tui.comparison import comparison_of
from console.tui.paint import columns, fit_right, lines, plain, say
from console.tui.readings import Reading
from console.tui.screens.base import LabScreen
from console.tui.words import Words


class LedgerScreen(LabScreen):
    """One configuration at a time."""

    CSS_PATH: ClassVar = ["base.tcss", "ledger.tcss"]
    AUTO_FOCUS = "#account-box"
    BINDINGS = [*bindings(LOCAL["ledger"])]
    name_of = "ledger"

    def __init__(self) -> None:
        super().__init__()
        self._config: str | None = None

    def compose_body(self) -> ComposeResult:
        yield Static(id="configs")
        with VerticalScroll(id="account-box", classes="section grow"):
            yield Static(id="comparison")
            yield Static(id="account")

    def shown_config(self, experiment: Experiment) -> str:
        """The chosen configuration, else that of the run under way, else the first."""
        ids = experiment.configurations
        if self._config in ids and self._config:
            return self._config
        run = experiment.current_run
        return run.config if run and run.config in ids else ids[0]

    def action_next_config(self) -> None:
        experiment = self.lab.session.experiment
        ids = experiment.configurations
        self._config = ids[(ids.index(self.shown_config(experiment)) + 1) % len(ids)]
        self.redraw()

    def draw(self, experiment: Experiment, now: datetime) -> None:
        shown = self.shown_config(experiment)
        tabs = Text(" ", end="")
        for config in experiment.configurations:
            tabs.append(f" {plain(config)} ", "bold reverse" if config == shown else "")
            tabs.append(" ")
        title = experiment.profile.configuration(shown)
        tabs.append(f" {plain(title.title)} · {title.parallel}", "grey62")
        self.put("configs", tabs)
        self.query_one("#account-box").border_title = self.words("ledger.title")
        latest = {name: self.lab.readings.latest(name) for name in experiment.nodes}
        comparison, reason = comparison_of(experiment, title, self.words)
        why = {one.quantity: one.words for one in predictions(experiment) if one.config == shown}
        self.put("comparison", comparison_text(comparison, reason, why, self.words))
        self.put("account", account_text(experiment, title, latest, self.words))


def comparison_text(
    comparison: Comparison, reason: str, why: Mapping[PredictedQuantity, Both], words: Words
) -> Text:
    """Paper, probed and measured for each quantity, how far apart they are, and the one page's why."""
    widths = [18, 20, 8, 10, 8]
    titles = [words(f"ledger.{name}") for name in ("quantity", "paper", "probed", "measured", "gap")]
    rows = [columns(_aligned(titles, widths, "bold"), widths)]
    gaps = {gap.quantity: gap for gap in comparison.gaps if gap.against == "paper"}
    for quantity in QUANTITIES:
        paper, probed, measured = (
            column.value(quantity) if column else None
            for column in (comparison.paper, comparison.probed, comparison.measured)
        )
        gap = gaps.get(quantity)
        cells = [
            words(f"ledger.{quantity}"),
            _shown(quantity, paper, banded=True),
            _shown(quantity, probed),
            _shown(quantity, measured),
            f"{gap.relative:+.0%}" if gap else figures.MISSING,
        ]
        style = "yellow" if gap and gap.inside_band is False else ""
        rows.append(columns(_aligned(cells, widths, style), widths))
    rows += [
        say((f"  {words(f'ledger.{quantity}')}: {plain(both[words.lang == 'zh'])}", "yellow"))
        for quantity, both in why.items()
        if both[0]
    ]
    if comparison.probed:
        rows.append(_probe_text(comparison.probed, words))
    if comparison.paper and comparison.paper.fit == "does not fit":
        rows.append(say((f"{words('ledger.no_room')}: {plain(comparison.paper.fit_reason)}", "yellow")))
    if reason:
        rows.append(say((f"{words('ledger.no_paper')}: {plain(reason)}", "yellow")))
    return lines(rows)


def _probe_text(probed: Column, words: Words) -> Text:
    """What the probed figures rest on, and why one is missing."""
    told: tuple[tuple[Quantity, Value], ...] = (
        ("memory_bytes", probed.memory_bytes),
        ("step_seconds", probed.step_seconds),
    )
    parts = [f"{words(f'ledger.{name}')}: {value.source or value.missing}" for name, value in told]
    return say((f"{words('ledger.probed')}  ", "bold"), ("; ".join(parts), "grey62"))


def account_text(
    experiment: Experiment, config: Configuration, latest: dict[str, Reading | None], words: Words
) -> Text:
    """The classic 16 B/parameter account, cut by tensor and pipeline sizes, beside the measured peak."""
    model = whole_model(experiment)
    if model is None:
        return say((words("ledger.no_parameters"), "yellow"))
    total, trainable = model
    cut = config.tensor_parallel * config.pipeline_parallel
    whole = trainable >= total
    account = classic_account(total) if whole else classic_account(total - trainable, trained=trainable)
    row = experiment.rows.get(config.id)
    known = [size for size in row.peak_memory_bytes.values() if size is not None] if row else []
    peak = max(known, default=None)
    device = device_with_own_memory(experiment.profile)
    totals = [device.memory_bytes if device else r.total_bytes for r in latest.values() if r]
    head = words(
        "ledger.of_parameters",
        total=figures.count(total),
        trainable=figures.count(trainable),
        percent=figures.percent(trainable / total),
    )
    parts: list[tuple[str, float | None]] = [
        ("weights", account.weights_bytes / cut),
        ("gradients", account.gradients_bytes / cut),
        ("optimizer", account.optimizer_bytes / cut),
        ("static", account.static_bytes / cut),
        ("rest", None if peak is None else peak - account.static_bytes / cut),
        ("peak", peak),
        ("available", min(totals, default=None)),
    ]
    rows = [say(("\n" + words("ledger.classic"), "bold"), (f"  {head}", "grey62"))]
    for name, size in parts:
        style = "bold" if name in ("static", "peak") else ""
        rows.append(
            columns(_aligned([words(f"ledger.{name}"), figures.gib(size, 2)], [32, 8], style), [32, 8])
        )
    return lines(rows)


def _shown(quantity: Quantity, value: Value | None, *, banded: bool = False) -> str:
    if value is None or value.number is None:
        return figures.MISSING
    text = _number(quantity, value.number)
    if banded and value.low is not None and value.high is not None:
        text += f" [{_number(quantity, value.low)}–{_number(quantity, value.high)}]"
    return text


def _number(quantity: Quantity, number: float) -> str:
    if quantity == "memory_bytes":
        return figures.gib(number)
    if quantity == "mfu":
        return f"{number:.0%}"
    return figures.number(number, 3)


def _aligned(cells: list[str], widths: list[int], style: str) -> list[Text]:
    """The first cell to the left, numbers to the right."""
    first, *rest = cells
    numbers = (Text(fit_right(cell, width), style) for cell, width in zip(rest, widths[1:], strict=True))
    return [Text(first, style), *numbers]
