"""Screen 5: the record sheet. Every number leads to the log line it came from; every blank says why."""

from datetime import datetime
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Static

from console.core.record.acceptance import criteria
from console.core.record.experiment import Experiment
from console.core.record.figures import Row, Source
from console.core.record.notes_zh import in_chinese
from console.report.notes import notes
from console.tui import figures
from console.tui.actions import LOCAL, bindings
from console.tui.messages import CellChosen
from console.tui.paint import lines, plain, say
from console.tui.screens.base import LabScreen
from console.tui.widgets.panel import TextPanel
from console.tui.words import Words

EXCERPT_BYTES = 4096
COLUMNS = (
    "config",
    "parallel",
    "step",
    "tokens",
    "tokens_step",
    "memory",
    "mfu6",
    "mfu_lora",
    "loss",
    "notes",
)
FIELDS = {
    "step": "steady_step_seconds",
    "tokens": "tokens_per_second",
    "tokens_step": "tokens_per_step",
    "memory": "peak_memory_bytes",
    "mfu6": "mfu_6n",
    "mfu_lora": "mfu_lora",
    "loss": "final_loss",
    "parallel": "parallel",
    "notes": "notes",
}
"""Column of the sheet -> field of `Row`, under which `sources` and `blanks` are kept."""


class RecordScreen(LabScreen):
    """The table is patched cell by cell, so that the cursor stays where it is."""

    CSS_PATH: ClassVar = ["base.tcss", "record.tcss"]
    AUTO_FOCUS = "#sheet"
    BINDINGS = [*bindings(LOCAL["record"])]
    name_of = "record"

    def __init__(self) -> None:
        super().__init__()
        self._chosen: tuple[str, str] | None = None
        self._lang = ""

    def compose_body(self) -> ComposeResult:
        yield DataTable(id="sheet", cell_padding=0, zebra_stripes=True)
        with VerticalScroll(id="source-box", classes="section grow", can_focus=False):
            yield Static(id="source")
            yield Static(id="acceptance")

    def draw(self, experiment: Experiment, now: datetime) -> None:
        words = self.words
        self._patch(experiment)
        self.query_one("#source-box").border_title = words("record.source")
        if self._chosen is None:
            self.put("source", say((words("record.choose"), "grey62")))
        else:
            self.put("source", source_text(experiment, *self._chosen, self.lab.session.folder, words))
        self.put("acceptance", acceptance_text(experiment, words))

    @on(DataTable.CellHighlighted, "#sheet")
    def _cell_highlighted(self, event: DataTable.CellHighlighted) -> None:
        row, column = event.cell_key.row_key.value, event.cell_key.column_key.value
        if row is not None and column is not None:
            self.post_message(CellChosen(row, column))

    @on(CellChosen)
    def _cell_chosen(self, event: CellChosen) -> None:
        self._chosen = (event.row, event.column)
        self.redraw()

    @on(DataTable.CellSelected, "#sheet")
    def _cell_selected(self) -> None:
        self.action_proof()

    def action_proof(self) -> None:
        """The source of the chosen number, whole, in a panel."""
        if self._chosen:
            text = source_text(
                self.lab.session.experiment, *self._chosen, self.lab.session.folder, self.words
            )
            title = f"{self._chosen[0]} · {self.words('record.' + self._chosen[1])}"
            self.app.push_screen(TextPanel(plain(title), text, self.words("help.close")))

    def _patch(self, experiment: Experiment) -> None:
        table: DataTable[Text] = self.query_one("#sheet", DataTable)
        if self._lang != self.words.lang:
            self._lang = self.words.lang
            table.clear(columns=True)
            for column in COLUMNS:
                table.add_column(Text(self.words(f"record.{column}") + " "), key=column)
        known = {key.value for key in table.rows}
        sheet = {config: row_cells(experiment, config, self.words) for config in experiment.configurations}
        _cut_notes([*sheet.values()], [column.label for column in table.ordered_columns], self.size.width)
        for config, cells in sheet.items():
            if config not in known:
                table.add_row(*cells, key=config)
                continue
            for column, cell in zip(COLUMNS, cells, strict=True):
                if table.get_cell(config, column) != cell:
                    table.update_cell(config, column, cell, update_width=True)
        if self._chosen is None and table.row_count:
            table.cursor_coordinate = Coordinate(0, 2)


def row_cells(experiment: Experiment, config: str, words: Words) -> list[Text]:
    """One line of the sheet. Blanks are marked, never zero."""
    row = experiment.rows.get(config)
    if row is None:
        parallel = experiment.profile.configuration(config).parallel
        dash = Text("· ", "grey62")
        attempts = experiment.runs_of(config)
        state = attempts[-1].state if attempts else None
        note = Text(words.state(state) if state else words("record.no_rows"), "grey62")
        return [Text(config + " ", "bold"), Text(parallel + " ", "grey62"), *[dash] * 7, note]

    def cell(value: str | None) -> Text:
        if value is None:
            return Text(f"▢ {words('record.blank')} ", "bold yellow")
        return Text(value + " ")

    return [
        Text(plain(row.id) + " ", "bold"),
        cell(plain(row.parallel)),
        cell(None if row.steady_step_seconds is None else figures.number(row.steady_step_seconds)),
        cell(None if row.tokens_per_second is None else figures.number(row.tokens_per_second)),
        cell(None if row.tokens_per_step is None else f"{row.tokens_per_step:.0f}"),
        cell(_memory(row)),
        cell(None if row.mfu_6n is None else figures.percent(row.mfu_6n)),
        cell(None if row.mfu_lora is None else figures.percent(row.mfu_lora)),
        cell(None if row.final_loss is None else figures.number(row.final_loss)),
        Text(plain("; ".join(notes(experiment, row, words.lang))) or "–"),
    ]


def _cut_notes(rows: list[list[Text]], titles: list[Text], width: int) -> None:
    """End every last cell within the screen; the whole notes stand with the source."""
    others = sum(
        max(cell.cell_len for cell in column) for column in list(zip(titles, *rows, strict=True))[:-1]
    )
    for *_, last in rows:
        last.truncate(max(titles[-1].cell_len, width - others), overflow="ellipsis")


def _memory(row: Row) -> str | None:
    values = list(row.peak_memory_bytes.values())
    if not values or all(value is None for value in values):
        return None
    return " ".join(figures.gib(value) for value in values)


def source_text(experiment: Experiment, config: str, column: str, folder: Path, words: Words) -> Text:
    """Where a cell's number comes from: words, file, place, the text itself, and the file's sha256."""
    row = experiment.rows.get(config)
    if row is None:
        return say((f"{config}: {words('record.no_rows')}", "grey62"))
    field = FIELDS.get(column, column)
    head = say((f"{plain(config)} · {words('record.' + column)}", "bold"))
    rows = [head]
    reasons = {k: v for k, v in row.blanks.items() if k == field or k.startswith(field + ".")}
    for key, reason in reasons.items():
        why = in_chinese(reason) if words.lang == "zh" else reason
        rows.append(say((f"▢ {words('record.blank')}: {plain(why)}", "bold yellow"), f" ({plain(key)})"))
    if column in ("mfu6", "mfu_lora") and row.peak_tflops is not None:
        rows.append(say(f"peak {figures.number(row.peak_tflops)} TFLOPS: {plain(row.peak_source)}"))
    style = "" if column == "notes" else "grey62"
    rows += [say((f"· {plain(note)}", style)) for note in notes(experiment, row, words.lang)]
    sources = [
        s for k, found in row.sources.items() if k == field or k.startswith(field + ".") for s in found
    ]
    for source in sources:
        rows += _source_rows(source, folder, words)
    if not sources and not reasons and column not in ("config", "parallel", "notes"):
        rows.append(say((words("record.no_source"), "yellow")))
    return lines(rows)


def _source_rows(source: Source, folder: Path, words: Words) -> list[Text]:
    rows = [say(plain(source.words))]
    if source.file is None:
        return rows
    place = ""
    if source.start_byte is not None and source.end_byte is not None:
        place = (
            words("record.from", line=source.line or "?", start=source.start_byte, end=source.end_byte) + " "
        )
    rows.append(say((place, "cyan"), (plain(source.file), "bold"), (f"  {plain(source.node or '')}", "cyan")))
    if source.start_byte is not None and source.end_byte is not None:
        excerpt = read_excerpt(folder, source.file, source.start_byte, source.end_byte)
        if excerpt is None:
            rows.append(say((words("record.gone"), "yellow")))
        else:
            text = excerpt.decode("utf-8", "replace").strip("\r\n")
            rows.append(say(("  ", ""), (plain(text), "reverse")))
        sha = f"{words('record.sha')} {plain(source.sha256)}" if source.sha256 else words("record.sha_open")
        rows.append(say((sha, "grey62")))
    return rows


def read_excerpt(folder: Path, file: str, start: int, end: int) -> bytes | None:
    """Those bytes of a file of the experiment, at most 4 KiB; None when it is not there or not inside."""
    path = (folder / file).resolve()
    if not path.is_relative_to(folder.resolve()):
        return None
    try:
        with path.open("rb") as stream:
            stream.seek(start)
            return stream.read(max(0, min(end - start, EXCERPT_BYTES)))
    except OSError:
        return None


def acceptance_text(experiment: Experiment, words: Words) -> Text:
    """The five criteria with their proof, then what was expected before anything was measured."""
    rows = [say(("\n" + words("record.acceptance"), "bold"))]
    for criterion in criteria(experiment, words.lang):
        glyph, style = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "grey62")}[criterion.met]
        text = criterion.text_zh if words.lang == "zh" else criterion.text
        rows.append(say((f"{glyph} {criterion.number} ", style), plain(text)))
        if reason := criterion.proof if criterion.met else criterion.missing or criterion.proof:
            rows.append(say((f"    {plain(reason)}", "grey62" if criterion.met else style)))
    if experiment.hypotheses_at is not None:
        rows.append(say(("\n" + words("hypotheses.expected"), "bold")))
        rows += [say((f"{plain(c)}  ", "bold"), plain(text)) for c, text in experiment.hypotheses.items()]
    return lines(rows)
