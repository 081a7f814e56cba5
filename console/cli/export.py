"""`lab export`: the record sheet and the one page of an experiment, in any format."""

from pathlib import Path
from typing import Annotated

import typer

from console.cli.kept import folder_to_read
from console.cli.options import ExperimentName, Lang, known_lang
from console.cli.sources import told_unsound
from console.core.errors import InputError
from console.engine.replay import ReadSession
from console.report.export import FORMATS, Format, export, rendered


def export_command(
    experiment: ExperimentName,
    form: Annotated[
        str, typer.Option("--format", help="json, csv, md or html alone; printed unless --out is given.")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where to write all formats, or the one of --format."),
    ] = None,
    lang: Lang = "en",
) -> int:
    """Record sheet and one page in any format."""
    language = known_lang(lang)
    formats = (_format(form),) if form else FORMATS
    folder = folder_to_read(experiment)
    with ReadSession(folder) as session:
        state = session.experiment
    unsound = told_unsound(state, folder)
    if form and out is None:
        typer.echo(rendered(state, formats[0], language, unsound))
        return 0
    for path in export(state, out or folder / "exports", formats, language, unsound):
        typer.echo(str(path))
    return 0


def _format(name: str) -> Format:
    for known in FORMATS:
        if known == name:
            return known
    raise InputError(f"--format {name}", next_step="choose among " + ", ".join(FORMATS))
