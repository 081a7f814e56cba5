"""Writing the record and the summary to files."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from console.core.errors import InputError
from console.core.record.acceptance import Lang
from console.core.record.experiment import Experiment
from console.report.onepage import one_page
from console.report.page import html_page
from console.report.sheet import sheet_csv, sheet_json, sheet_markdown
from console.report.sources import Unsound

Format = Literal["json", "csv", "md", "html"]
FORMATS: tuple[Format, ...] = ("json", "csv", "md", "html")


def export(
    experiment: Experiment,
    folder: Path,
    formats: Sequence[Format] = FORMATS,
    lang: Lang = "en",
    unsound: Sequence[Unsound] = (),
) -> list[Path]:
    """Write `record.json`, `record.csv`, `record.md` + `summary.md`, `summary.html` into `folder`.

    A file appears whole or not at all. Secrets are masked; every file says how many were.
    The sheet names the `unsound` sources.
    Raises `InputError` for an unknown format, and when the folder can't be written.
    """
    texts: dict[str, str] = {}
    for form in formats:
        texts |= _files(experiment, form, lang, unsound)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_write(folder / name, text) for name, text in texts.items()]
    except OSError as error:
        raise InputError(
            f"can't write to {folder}",
            why=error.strerror or str(error),
            next_step="give a folder that can be written, with --out",
        ) from None


def rendered(experiment: Experiment, form: Format, lang: Lang = "en", unsound: Sequence[Unsound] = ()) -> str:
    """One format as text; for `md` the one page, then the sheet."""
    return "\n".join(_files(experiment, form, lang, unsound).values())


def _files(experiment: Experiment, form: Format, lang: Lang, unsound: Sequence[Unsound]) -> dict[str, str]:
    match form:
        case "json":
            return {"record.json": sheet_json(experiment, lang)}
        case "csv":
            return {"record.csv": sheet_csv(experiment)}
        case "md":
            return {
                "summary.md": one_page(experiment, lang),
                "record.md": sheet_markdown(experiment, lang, unsound),
            }
        case "html":
            return {"summary.html": html_page(one_page(experiment, lang), lang)}
        case _:
            raise InputError(f"format {form}", next_step="choose among " + ", ".join(FORMATS))


def _write(path: Path, text: str) -> Path:
    """Replace `path` in one step, so that nobody ever reads half of it."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
