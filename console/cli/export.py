"""`lab export`: the record sheet and the one page of an experiment, in any format."""

from pathlib import Path
from typing import Annotated

import typer

from console.cli.files import folder_to_read
from console.cli.options import ExperimentName, Lang, known_lang
from console.core.errors import InputError
from console.engine.replay import ReadSession
from console.report.export import FORMATS, Format, export, rendered
from console.report.sources import unsound_sources


def export_command(
    experiment: ExperimentName,
    form: Annotated[str, typer.Option("--format", help="json, csv, md or html; printed, not written.")] = "",
    out: Annotated[Path | None, typer.Option("--out", help="Folder to write all formats to.")] = None,
    lang: Lang = "en",
) -> int:
    """Record sheet and one page in any format."""
    language = known_lang(lang)
    folder = folder_to_read(experiment)
    state = ReadSession(folder).experiment
    unsound = unsound_sources(state, folder)
    for one in unsound:
        typer.echo(f"a source is not as recorded: {one.file}: {one.fault}", err=True)
    if form:
        typer.echo(rendered(state, _format(form), language, unsound))
        return 0
    for path in export(state, out or folder / "exports", lang=language, unsound=unsound):
        typer.echo(str(path))
    return 0


def _format(name: str) -> Format:
    for known in FORMATS:
        if known == name:
            return known
    raise InputError(f"--format {name}", next_step="choose among " + ", ".join(FORMATS))
