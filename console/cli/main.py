"""The command `lab` and its sub-commands."""

import io
import os
import sys
from typing import Annotated

import typer

from console import __version__
from console.cli import doctor, export, lab, ledger, parse_log, plan, recount, service
from console.cli.telling import tell_trouble, told

app = typer.Typer(
    help="Runs a fine-tuning lab on borrowed machines and gives them back healthy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.callback(invoke_without_command=True)
def _start(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if show_version:
        typer.echo(__version__)
        raise typer.Exit


app.command("demo")(told(lab.demo))
app.command("open")(told(lab.open_lab))
app.command("run")(told(lab.run_lab))
app.command("watch")(told(lab.watch))
app.command("replay")(told(lab.replay))
app.command("doctor")(told(doctor.doctor))
app.command("plan")(told(plan.plan))
app.command("export")(told(export.export_command))
app.command("recount")(told(recount.recount_command))
app.command("parse-log")(told(parse_log.parse_log_command))
app.add_typer(ledger.app, name="ledger")
app.add_typer(service.app, name="service")


def main() -> None:
    """Entry point. A broken pipe or Ctrl-C outside an experiment ends without a word."""
    _mend_streams()
    try:
        app()
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)
    except OSError as error:  # of help and version
        sys.exit(tell_trouble(error))


def _mend_streams() -> None:
    """No closed stream, whose number a journal or a log would take; no letter that can't be printed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    main()
