"""What every probe is made of: arguments in, one JSON document out, and programs that can't hang it.

Runs on a node under Python 3.10 or later, standard library only.
"""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TEXT_LIMIT = 20_000
"""Characters kept of a program's output; the end is kept, because errors stand there."""


class Failed(Exception):
    """A failure that the probe expects: `kind` names it, the text is the raw error, `facts` go along."""

    def __init__(self, kind: str, error: str, **facts: Any) -> None:
        super().__init__(error)
        self.kind = kind
        self.error = error
        self.facts = facts


@dataclass(frozen=True)
class Ran:
    """What a program left. `status` is None when it was ended at its time limit."""

    status: int | None
    out: str
    err: str
    seconds: float

    @property
    def ok(self) -> bool:
        return self.status == 0

    @property
    def error(self) -> str:
        """The raw text that says what went wrong; never empty for a failure."""
        if self.status is None or (self.status == 124 and not self.err):
            return f"no answer within {self.seconds:.0f} s\n{self.err}".strip()
        if self.status < 0:
            return f"{self.err}\nended by {_signal_name(-self.status)}".strip()
        return (self.err or self.out).strip() or f"exit status {self.status}"


def answer(probe: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Run `probe` on the JSON object in argv[1] and print its answer as the only line of standard output."""
    # Libraries print to descriptor 1 from C code too, so it leads to standard error while the probe works.
    out = os.dup(1)
    os.dup2(2, 1)
    document = json.dumps(_answered(probe), allow_nan=False)
    sys.stdout.flush()
    with os.fdopen(out, "w", encoding="utf-8") as stream:
        stream.write(document + "\n")


def _answered(probe: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    try:
        args = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
        if not isinstance(args, dict):
            raise Failed("bad arguments", "the argument is not a JSON object")
        return _finite({"ok": True} | probe(args))
    except Failed as failure:
        return _finite({"ok": False, "kind": failure.kind, "error": failure.error} | failure.facts)
    except OSError as error:
        return {"ok": False, "kind": os_kind(error), "error": str(error)}
    except Exception:  # noqa: BLE001 - the last edge: whatever happened is the answer
        return {"ok": False, "kind": "unexpected", "error": traceback.format_exc()[-TEXT_LIMIT:]}


def os_kind(error: OSError) -> str:
    """A word for what the operating system refused."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "missing"
    if isinstance(error, PermissionError) or error.errno == 30:  # EROFS
        return "no access"
    if error.errno in (28, 122):  # ENOSPC, EDQUOT
        return "disk full"
    return "os error"


def bounded(
    argv: Sequence[str],
    seconds: float,
    *,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    stdin: str | None = None,
) -> Ran:
    """Run a program for at most `seconds`; at the limit its whole process group is ended.

    A program that can't be started gives status 127. Output is decoded leniently and shortened.
    """
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C", **(env or {})},
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
    except OSError as error:
        return Ran(127, "", f"{argv[0]}: {error.strerror or error}", time.monotonic() - began)
    status: int | None
    try:
        out, err = process.communicate(stdin.encode() if stdin is not None else None, timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        status = None
        try:
            out, err = process.communicate(timeout=2)
        except subprocess.TimeoutExpired as stuck:
            # Blocked inside the kernel (a wedged driver does that): not even SIGKILL ends it.
            out, err = stuck.stdout or b"", stuck.stderr or b""
    return Ran(status, _decoded(out), _decoded(err), time.monotonic() - began)


def ask_child(
    program: str, args: Mapping[str, Any], seconds: float, *, interpreter: str | None = None
) -> tuple[dict[str, Any] | None, Ran]:
    """Run a Python program in a process of its own; it writes JSON to the descriptor in `sys.argv[1]`.

    The answer is None when the program died, hung, or wrote nothing. Its arguments are JSON in `sys.argv[2]`.
    """
    # A file, not a pipe: nobody reads while the child runs, and a pipe would block a long answer.
    with tempfile.TemporaryFile() as stream:
        number = stream.fileno()
        argv = [interpreter or sys.executable, "-c", program, str(number), json.dumps(dict(args))]
        ran = bounded(argv, seconds, pass_fds=(number,))
        stream.seek(0)
        body = stream.read()
    try:
        parsed = json.loads(body) if body else None
    except ValueError:
        parsed = None
    return (parsed if isinstance(parsed, dict) else None), ran


def read_text(path: str | Path) -> str | None:
    """A small file's text, or None when it isn't there or may not be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _decoded(body: bytes) -> str:
    return body.decode("utf-8", "replace")[-TEXT_LIMIT:]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _finite(value: Any) -> Any:
    """The value with NaN and infinities as None, which JSON can't carry."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
