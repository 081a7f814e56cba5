"""The record sheet as Markdown, CSV and JSON text."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from console.core.record.acceptance import Lang, criteria, verdict
from console.core.record.experiment import Experiment
from console.core.record.figures import Row, Source
from console.core.record.gaps import degradation, rows_in_order, without_row
from console.core.record.network import network_of
from console.core.record.predictions import predictions
from console.report.document import record_document
from console.report.environment import node_lines
from console.report.expectations import expectations
from console.report.notes import notes
from console.report.predicted import prediction_cells
from console.report.redaction import Redactor
from console.report.render import render
from console.report.sources import Unsound

FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "|", "%")
"""What makes a spreadsheet run a cell instead of showing it."""

_NUMBERS = (
    "steady_step_seconds",
    "tokens_per_second",
    "tokens_per_step",
    "mfu_6n",
    "mfu_lora",
    "peak_tflops",
    "final_loss",
    "steps",
)

_PREDICTED = ("memory_bytes", "step_seconds")
_PARTS = ("predicted", "low", "high", "expected", "ratio", "made", "basis", "why")


def sheet_markdown(experiment: Experiment, lang: Lang = "en", unsound: Sequence[Unsound] = ()) -> str:
    """The table, its blanks explained, the source of every number, and how it all came about.

    `unsound`: cited files that are not as recorded; named beside the sources.
    """
    redactor = Redactor()
    which = 1 if lang == "zh" else 0
    context = {
        "experiment": experiment,
        "profile": experiment.profile,
        "rows": rows_in_order(experiment),
        "notes": {row.id: notes(experiment, row, lang) for row in rows_in_order(experiment)},
        "sources": {row.id: fresh_sources(row) for row in rows_in_order(experiment)},
        "unsound": {one.file: one.words(lang) for one in unsound},
        "without_row": {config: why[which] for config, why in without_row(experiment).items()},
        "rule": "LoRA" if experiment.profile.settings.tuner == "lora" else "Megatron",
        "nodes": node_lines(experiment),
        "network": network_of(experiment),
        "compared": predictions(experiment),
        "degraded": degradation(experiment),
        "verdict": verdict(experiment, lang),
        "criteria": criteria(experiment, lang),
        "expectations": expectations(experiment),
    }
    body = render("record", lang, redactor, context)
    return body + render("masked", lang, redactor, {"count": redactor.count})


def fresh_sources(row: Row) -> dict[str, list[Source]]:
    """Sources by field, each named once: where it is first used."""
    seen: list[Source] = []
    fresh: dict[str, list[Source]] = {}
    for field, sources in row.sources.items():
        fresh[field] = [source for source in sources if source not in seen]
        seen += fresh[field]
    return fresh


def sheet_csv(experiment: Experiment) -> str:
    """One line per configuration, figures in base units; no cell that a spreadsheet would run."""
    redactor = Redactor()
    rows = rows_in_order(experiment)
    nodes = list(dict.fromkeys(node for row in rows for node in row.peak_memory_bytes))
    head = ["id", "title", "run", "parallel", *_NUMBERS]
    head += [f"peak_memory_bytes {node}" for node in nodes] + ["peak_source", "notes", "blanks"]
    head += [f"{quantity} {part}" for quantity in _PREDICTED for part in _PARTS]
    cells = prediction_cells(experiment)
    lines = [_line(row, nodes, redactor) + _predicted(cells[row.id], redactor) for row in rows]
    for config, (why, _) in without_row(experiment).items():
        title = experiment.profile.configuration(config).title
        blank = [""] * (len(head) - 3)
        lines.append(
            [_cell(config, redactor), _cell(title, redactor), *blank, _cell(f"row: {why}", redactor)]
        )
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(name, redactor) for name in head])
    writer.writerows(lines)
    return out.getvalue()


def _line(row: Row, nodes: list[str], redactor: Redactor) -> list[str]:
    numbers = [getattr(row, name) for name in _NUMBERS]
    peaks = [row.peak_memory_bytes.get(node) for node in nodes]
    blanks = "; ".join(f"{field}: {why}" for field, why in row.blanks.items())
    return [
        *(_cell(text, redactor) for text in (row.id, row.title, row.run, row.parallel)),
        *("" if value is None else f"{value:.9g}" for value in numbers),
        *("" if size is None else str(size) for size in peaks),
        *(_cell(text, redactor) for text in (row.peak_source, "; ".join(row.notes), blanks)),
    ]


def _predicted(cells: dict[str, Any], redactor: Redactor) -> list[str]:
    """Prediction, band, ratio and explanation of both quantities."""
    return [
        _cell(value, redactor) if isinstance(value, str) else "" if value is None else f"{value:.9g}"
        for quantity in _PREDICTED
        for value in (cells[quantity][part] for part in _PARTS)
    ]


def _cell(text: str, redactor: Redactor) -> str:
    """Text for a spreadsheet: one line, and an apostrophe before whatever would start a formula."""
    shown = " ".join(redactor(text).split())
    return f"'{shown}" if shown.startswith(FORMULA_STARTS) else shown


def sheet_json(experiment: Experiment, lang: Lang = "en") -> str:
    """The text of `record.json`: strict JSON."""
    document = record_document(experiment, lang)
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
