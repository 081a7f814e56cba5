"""The one place where errors become messages and exit codes."""

import errno
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from console.core.errors import InputError, LabError

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Troubles of this computer's disk that no other argument would avoid."""

_MESSAGES = 2
"""Standard error by its number: `sys.stderr` is None where it was closed at the start."""


def told(command: Callable[..., int]) -> Callable[..., None]:
    """A command whose result is the exit code and whose errors are messages."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            code = command(*args, **kwargs)
            if sys.stdout is not None:
                sys.stdout.flush()
        except LabError as error:
            print(error.render(), file=sys.stderr)
            code = error.exit_code
        except BrokenPipeError:
            drop_output()
            code = 128 + signal.SIGPIPE
        except OSError as error:
            code = tell_trouble(error)
        except Exception as error:  # noqa: BLE001 - the last net: a user never sees a traceback
            code = _unforeseen(error)
        raise typer.Exit(code)

    return run


def tell_trouble(error: OSError) -> int:
    """Say what this computer refused, and to which file; returns the exit code.

    Of what meets a disk, only a stream has no name.
    """
    on_disk = error.errno in _DISK
    file = error.filename or ("standard output" if on_disk else None)
    if on_disk and error.filename is None and sys.stdout is not None:
        drop_output()  # what is buffered would fail once more, at the very end
    print(f"{error.strerror or error}" + (f": {file}" if file else ""), file=sys.stderr)
    print("  next: see that the folder exists, can be written and has room", file=sys.stderr)
    return LabError.exit_code if on_disk else InputError.exit_code


def drop_output() -> None:
    """Nobody reads the output any more: what is still buffered, or printed later, goes nowhere.

    Messages go the same way where they share the pipe.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    output = sys.stdout.fileno()
    if os.path.sameopenfile(output, _MESSAGES):
        os.dup2(nowhere, _MESSAGES)
    os.dup2(nowhere, output)
    os.close(nowhere)


def _unforeseen(error: Exception) -> int:
    """Say that the console itself is at fault and where the details are; the journal is untouched."""
    with tempfile.NamedTemporaryFile("w", prefix="lab-error-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    print(f"the console met an error of its own: {type(error).__name__}: {error}", file=sys.stderr)
    print(f"  why: the details are in {file.name}", file=sys.stderr)
    print("  next: start again, the experiment is taken up where it stood; report the file", file=sys.stderr)
    return LabError.exit_code
