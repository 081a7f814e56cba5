"""How `lab ledger` answers: text or JSON on stdout, one line of complaint on stderr."""

import functools
import json
from collections.abc import Callable
from typing import Any, ParamSpec

import typer

from console.cli.ledger_groups import spread
from console.cli.ledger_options import require_numbers
from console.core.errors import InputError

Arguments = ParamSpec("Arguments")


def one_line(error: InputError) -> str:
    """What, why and the nearest valid value on one line, whatever they contain."""
    message = f"{error.what}: {error.why}" if error.why else error.what
    if error.next_step:
        message += f"; try: {error.next_step}"
    return " ".join("".join(letter if letter.isprintable() else " " for letter in message).split())


def answers(command: Callable[Arguments, None]) -> Callable[..., int]:
    """A command that returns its exit code and whose InputError becomes one line.

    A number that no option can mean is refused, also where the command has no use for it.
    """
    spread_out = spread(command)

    @functools.wraps(spread_out)
    def run(**options: Any) -> int:
        try:
            require_numbers(options)
            spread_out(**options)
        except InputError as error:
            typer.echo(one_line(error), err=True)
            return error.exit_code
        except OverflowError:
            typer.echo(
                "a number is too large: the sum leaves the range of floats; try: check the zeros", err=True
            )
            return InputError.exit_code
        return 0

    return run


def answer(payload: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print one answer; raises InputError for one that is no finite number."""
    try:
        document = json.dumps(payload, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InputError(
            "the result is not finite", why="a number is too large", next_step="check the zeros"
        ) from None
    typer.echo(document if as_json else text)
