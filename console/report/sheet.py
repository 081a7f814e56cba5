"""The record sheet as Markdown, CSV and JSON."""

from typing import Any

from console.core.record.acceptance import Lang
from console.core.record.experiment import Experiment


def sheet_markdown(experiment: Experiment, lang: Lang = "en") -> str:
    """The table with its blanks explained and the source of every number."""
    raise NotImplementedError


def sheet_csv(experiment: Experiment) -> str:
    """One line per configuration; no cell that a spreadsheet would run."""
    raise NotImplementedError


def record_document(experiment: Experiment) -> dict[str, Any]:
    """The document of `record.json`: plain values, no NaN."""
    raise NotImplementedError
