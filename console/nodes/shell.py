"""Scripts over stdin to a bare bash, and their answers between random markers.

The command given to the login shell is words only, so that bash, zsh, fish and tcsh read it alike. `timeout`
makes the script a process group of its own and ends it on the node even when the link is gone. Whatever
start-up files print comes before the first marker and is not part of the answer; an answer without its last
marker was cut short.
"""

import math
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console.nodes.text import SafeText, clean

SCRIPT_VARIABLE = "LAB_SCRIPT"
"""Every process that a script starts carries it, so that all of them can be found and ended."""

_KILL_AFTER_SECONDS = 10


@dataclass(frozen=True)
class Answer:
    """What a script left: its exit status and both outputs, complete or not at all."""

    exit_status: int
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def text(self) -> SafeText:
        """The output as safe text."""
        return clean(self.stdout)

    @property
    def error_text(self) -> SafeText:
        """The error output as safe text."""
        return clean(self.stderr)


@dataclass(frozen=True)
class Frame:
    """One framed script: what the login shell is asked to run, and what bash reads."""

    command: str
    payload: bytes
    mark: str
    script_id: str

    @property
    def begin(self) -> bytes:
        """Stands before the script's output, followed by the pid of its bash."""
        return f"BEGIN-{self.mark} ".encode()

    @property
    def end(self) -> bytes:
        """Stands after the script's output, followed by its exit status."""
        return f"\nEND-{self.mark} ".encode()

    @property
    def variable(self) -> str:
        """What every process of the script carries in its environment."""
        return f"{SCRIPT_VARIABLE}={self.script_id}"


def exports(env: Mapping[str, str]) -> str:
    """Lines of a script that set these variables for what follows."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in env.items())


def frame(
    script: str,
    args: Sequence[str] = (),
    *,
    limit_seconds: float | None,
    stdin: bytes = b"",
    ends: bool = True,
) -> Frame:
    """Frame a bash script; `limit_seconds` is when the node itself ends it (None: never).

    With `ends` False there is no last marker: the end of the channel is the end of the output.

    Raises ValueError for NUL characters, which no shell can carry.
    """
    if "\0" in script or any("\0" in arg for arg in args):
        raise ValueError("NUL character in a script or its arguments")
    mark, script_id = secrets.token_hex(12), secrets.token_hex(8)
    body = script.encode("utf-8", "surrogateescape")
    quoted = " ".join(shlex.quote(arg) for arg in args)
    # One compound command: bash has parsed all of it before the first byte of the body is read, so the rest
    # of stdin is the body and then the script's own stdin.
    last = rf"printf '\nEND-{mark} %d\n' $__lab_status"
    header = f"""{{
export LC_ALL=C {SCRIPT_VARIABLE}={script_id}; unset BASH_ENV ENV
__lab_body=$(head -c {len(body)}; printf x)
[ ${{#__lab_body}} -eq {len(body) + 1} ] || exit 1
printf '\\nBEGIN-{mark} %d\\n' $$; printf '\\nBEGIN-{mark} %d\\n' $$ >&2
(cd "${{HOME:-/}}" 2>/dev/null || cd /; set -- {quoted}; eval "${{__lab_body%x}}")
__lab_status=$?
{f"{last} >&2; {last}; exit 0" if ends else "exit $__lab_status"}
}}
"""
    limit = "" if limit_seconds is None else f"timeout -k {_KILL_AFTER_SECONDS} {math.ceil(limit_seconds)} "
    return Frame(
        command=f"{limit}bash --noprofile --norc",
        payload=header.encode("utf-8", "surrogateescape") + body + stdin,
        mark=mark,
        script_id=script_id,
    )


class Unframer:
    """Collects one output of a framed script and finds the part between its markers."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._buffer = bytearray()
        self._searched = 0
        self.pid: int | None = None
        """Of the script's bash, once the first marker came."""
        self.exit_status: int | None = None
        """Once the last marker came."""

    def feed(self, data: bytes) -> None:
        self._buffer += data
        if self.pid is None:
            self.pid = self._take_begin()
        if self.pid is not None and self.exit_status is None:
            self._find_end()

    @property
    def content(self) -> bytes:
        """Output between the markers; before the first marker: whatever came."""
        return bytes(self._buffer)

    @property
    def size(self) -> int:
        return len(self._buffer)

    def _take_begin(self) -> int | None:
        start = self._buffer.find(self._frame.begin, max(0, self._searched - len(self._frame.begin)))
        self._searched = len(self._buffer) if start < 0 else start
        line_end = self._buffer.find(b"\n", start) if start >= 0 else -1
        if line_end < 0:
            return None
        pid = int(self._buffer[start + len(self._frame.begin) : line_end])
        del self._buffer[: line_end + 1]
        self._searched = 0
        return pid

    def _find_end(self) -> None:
        end = self._buffer.find(self._frame.end, max(0, self._searched - len(self._frame.end)))
        self._searched = len(self._buffer) if end < 0 else end
        line_end = self._buffer.find(b"\n", end + 1) if end >= 0 else -1
        if line_end >= 0:
            self.exit_status = int(self._buffer[end + len(self._frame.end) : line_end])
            del self._buffer[end:]
