"""Running other programs with a limit, and starting this one detached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Sequence

from .answers import Doc
from .masking import mask_text

# Variables that mark processes of a script or of a job; what outlives both must carry neither.
_MARKS = ("LAB_SCRIPT", "LAB_RUN_ID")


# Nothing of the node's own Python set-up is wanted: no site packages, no PYTHON variables.
_ISOLATED = ("-I", "-S")


class Failed(Exception):
    """A program could not be started, did not end in time, or ended with an error."""


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _MARKS}
    return dict(kept, LC_ALL="C")


def output(argv: Sequence[str], *, timeout: float, merged: bool = False) -> str:
    """Standard output of a command (with `merged` both outputs). Raises `Failed` with a masked reason."""
    status, text, errors = attempt(argv, timeout=timeout, merged=merged)
    if status != 0:
        reason = mask_text((errors or text).strip())[-400:]
        raise Failed(f"`{' '.join(argv[:4])}` ended with {status}: {reason}")
    return text


def attempt(argv: Sequence[str], *, timeout: float, merged: bool = False) -> tuple[int, str, str]:
    """Exit status and both outputs of a command. Raises `Failed` when it does not start or does not end."""
    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            timeout=timeout, check=False, env=environment(),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"`{' '.join(argv[:4])}` did not end within {timeout:.0f} s") from None
    except OSError as trouble:
        raise Failed(f"`{argv[0]}` can't be started: {trouble.strerror}") from None
    return (
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        (done.stderr or b"").decode("utf-8", "replace"),
    )


def works(argv: Sequence[str], *, timeout: float = 20.0) -> bool:
    try:
        return attempt(argv, timeout=timeout)[0] == 0
    except Failed:
        return False


def start_detached(subcommand: str, request: Doc, log_path: str) -> tuple[int, Doc]:
    """Start this program in a session of its own; its pid, and the one line it says when it is ready.

    Its environment is new, so that neither the mark of the calling script nor its end reaches it. The request
    goes through a pipe: an API key in it is in no argument list and no file. Raises `Failed`.
    """
    reader, writer = os.pipe()
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        child = subprocess.Popen(
            own_command(subcommand, str(writer)),
            stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=(writer,),
            start_new_session=True, env=environment(), cwd="/",
        )  # fmt: skip
    except OSError as trouble:
        os.close(reader)
        raise Failed(f"python3 can't be started again: {trouble}") from None
    finally:
        os.close(writer)
        os.close(log)
    assert child.stdin is not None
    with child.stdin:
        child.stdin.write(json.dumps(request).encode())
    with os.fdopen(reader, "rb") as pipe:
        line = pipe.readline()
    if not line:
        raise Failed(f"{subcommand} ended before it was ready; see {log_path}")
    document: Doc = json.loads(line)
    return child.pid, document


def say_ready(handle: int, document: Doc) -> None:
    """The detached side: tell the starter, once, and let go of the pipe."""
    with os.fdopen(handle, "wb") as pipe:
        pipe.write(json.dumps(document).encode() + b"\n")


def own_command(*arguments: str) -> list[str]:
    """The command line that runs this program again."""
    return [sys.executable, *_ISOLATED, os.path.abspath(sys.argv[0]), *arguments]


def first_line(text: str) -> str | None:
    lines = text.strip().splitlines()
    return lines[0] if lines else None
