"""The command `lab`: its sub-commands, and the one place where errors become messages and exit codes."""

import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import click
import typer

from console import __version__
from console.cli import doctor, export, lab, ledger, parse_log, plan, service
from console.core.errors import LabError

app = typer.Typer(
    help="Runs a fine-tuning lab on borrowed machines and gives them back healthy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _told(command: Callable[..., int]) -> Callable[..., None]:
    """A command whose result is the exit code and whose errors are messages."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            code = command(*args, **kwargs)
        except LabError as error:
            print(error.render(), file=sys.stderr)
            code = error.exit_code
        except OSError as error:
            print(f"{error.strerror or error}: {error.filename or ''}", file=sys.stderr)
            print("  next: see that the folder exists, can be written and has room", file=sys.stderr)
            code = 2
        except Exception as error:  # noqa: BLE001 - the last net: a user never sees a traceback
            code = _unforeseen(error)
        raise typer.Exit(code)

    return run


def _unforeseen(error: Exception) -> int:
    """Say that the console itself is at fault and where the details are; the journal is untouched."""
    with tempfile.NamedTemporaryFile("w", prefix="lab-error-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    print(f"the console met an error of its own: {type(error).__name__}: {error}", file=sys.stderr)
    print(f"  why: the details are in {file.name}", file=sys.stderr)
    print("  next: start again, the experiment is taken up where it stood; report the file", file=sys.stderr)
    return LabError.exit_code


@app.callback(invoke_without_command=True)
def _start(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if show_version:
        typer.echo(__version__)
        raise typer.Exit


app.command("demo")(_told(lab.demo))
app.command("open")(_told(lab.open_lab))
app.command("run")(_told(lab.run_lab))
app.command("watch")(_told(lab.watch))
app.command("replay")(_told(lab.replay))
app.command("doctor")(_told(doctor.doctor))
app.command("plan")(_told(plan.plan))
app.command("export")(_told(export.export_command))
app.command("parse-log")(_told(parse_log.parse_log_command))
app.add_typer(ledger.app, name="ledger")
app.add_typer(service.app, name="service")


def main() -> None:
    """Entry point. A broken pipe or Ctrl-C outside an experiment ends without a word."""
    try:
        app()
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)


if __name__ == "__main__":
    main()
