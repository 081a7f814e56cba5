"""Screen 4: what the chosen configuration costs by the classic account, beside what was measured."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from console.core.record.experiment import Experiment
from console.core.record.views import RunView
from console.tui import figures
from console.tui.actions import LOCAL, bindings
from console.tui.paint import columns, lines, plain, say
from console.tui.readings import Reading
from console.tui.screens.base import LabScreen
from console.tui.words import Words

BF16_BYTES = 2
FP32_BYTES = 4


@dataclass(frozen=True, slots=True)
class ClassicAccount:
    """Bytes per node: 2 + 2 + 12 per trainable parameter (bf16 weight and gradient; fp32 master weight and
    two Adam moments), 2 per frozen one, cut by tensor and pipeline parallel sizes. No activations."""

    weights: float
    gradients: float
    master: float
    moments: float

    @property
    def static(self) -> float:
        return self.weights + self.gradients + self.master + self.moments


def classic_account(total: float, trainable: float, cut: int) -> ClassicAccount:
    """The account of a model of `total` parameters cut into `cut` equal parts."""
    return ClassicAccount(
        weights=BF16_BYTES * total / cut,
        gradients=BF16_BYTES * trainable / cut,
        master=FP32_BYTES * trainable / cut,
        moments=2 * FP32_BYTES * trainable / cut,
    )


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
        self.put("account", account_text(experiment, shown, latest, self.words))


def account_text(
    experiment: Experiment, config_id: str, latest: dict[str, Reading | None], words: Words
) -> Text:
    """Paper beside measured, part by part; what was not measured is blank."""
    counted = [run.parameters for run in experiment.runs.values() if run.parameters]
    if not counted:
        return say((words("ledger.no_parameters"), "yellow"))
    parameters = counted[-1]
    config = experiment.profile.configuration(config_id)
    cut = config.tensor_parallel * config.pipeline_parallel
    account = classic_account(parameters.total, parameters.trainable, cut)
    share = parameters.trainable / parameters.total if parameters.total else 0.0
    head = words(
        "ledger.of_parameters",
        total=figures.count(parameters.total),
        trainable=figures.count(parameters.trainable),
        percent=figures.percent(share),
    )
    attempts = experiment.runs_of(config_id)
    peak = _measured_peak(experiment, attempts[-1] if attempts else None)
    widths = [28, 10, 10, 12]

    def row(key: str, paper: float | None, measured: float | None = None, style: str = "") -> Text:
        cells = [words(f"ledger.{key}"), figures.gib(paper, 2), figures.MISSING, figures.gib(measured, 2)]
        return columns(_aligned(cells, widths, style), widths)

    titles = [words(f"ledger.{name}") for name in ("part", "paper", "probed", "measured")]
    rows = [say((head, "grey62")), Text(""), columns(_aligned(titles, widths, "bold"), widths)]
    rows += [row(name, getattr(account, name)) for name in ("weights", "gradients", "master", "moments")]
    rows.append(row("static", account.static, style="bold"))
    rows.append(row("rest", None, peak - account.static if peak is not None else None))
    rows.append(row("peak", None, peak, style="bold"))
    totals = [r[1].memory.total_bytes for r in latest.values() if r]
    rows.append(row("available", None, min(totals) if totals else None))
    return lines(rows)


def _aligned(cells: list[str], widths: list[int], style: str) -> list[Text]:
    """The first cell to the left, numbers to the right."""
    first, *rest = cells
    return [Text(first, style), *(Text(c.rjust(w), style) for c, w in zip(rest, widths[1:], strict=True))]


def _measured_peak(experiment: Experiment, run: RunView | None) -> float | None:
    """The greatest peak of any node in the recorded row of this run."""
    row = experiment.rows.get(run.config) if run else None
    known = [value for value in row.peak_memory_bytes.values() if value is not None] if row else []
    return max(known, default=None)
