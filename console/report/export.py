"""Writing the record and the summary to files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from console.core.record.acceptance import Lang
from console.core.record.experiment import Experiment

Format = Literal["json", "csv", "md", "html"]
FORMATS: tuple[Format, ...] = ("json", "csv", "md", "html")


def export(
    experiment: Experiment, folder: Path, formats: Sequence[Format] = FORMATS, lang: Lang = "en"
) -> list[Path]:
    """Write `record.json`, `record.csv`, `record.md` + `summary.md`, `summary.html` into `folder`.

    A file appears whole or not at all. Secrets are masked; every format says how many were.
    Raises `InputError` for an unknown format, and when the folder can't be written.
    """
    raise NotImplementedError
