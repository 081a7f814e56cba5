"""`lab recount`: the rows of a closed experiment once more, by the rules of this version."""

import shlex

import typer

from console.cli.kept import folder_to_read
from console.cli.options import ExperimentName
from console.cli.program import program
from console.engine.counting import count_again


def recount_command(experiment: ExperimentName) -> int:
    """Count the rows of a closed experiment again from its logs and readings."""
    folder = folder_to_read(experiment)
    changed = count_again(folder)
    if changed:
        typer.echo(f"counted anew: {', '.join(changed)}; the journal keeps what was there before")
        typer.echo(f"write the sheet again with:  {program()} export {shlex.quote(str(folder))}")
    else:
        typer.echo("every row comes out as it was")
    return 0
