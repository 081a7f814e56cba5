"""Python tracebacks out of interleaved output, one state per `[rankN]:` prefix.

A traceback starts with its head line, goes on with indented lines, and ends with the exception line: the
first one that is not indented and reads like `package.Kind: message`. Other lines belong to someone else.
"""

import re
from dataclasses import dataclass, field

from console.core.reading.facts import Traceback
from console.core.reading.lines import excerpt

TRACEBACK_MARK = b"Traceback (most recent call last)"
TERMINATE_MARK = b"terminate called after throwing an instance of"
EXCEPTION_MARKS = (b"Error: ", b"Exception: ")
NO_MODULE_MARK = b": No module named "

TRACEBACK_MARKS = (TRACEBACK_MARK, TERMINATE_MARK, *EXCEPTION_MARKS, NO_MODULE_MARK)

MOST_LINES = 3000
MOST_STRANGERS = 60
HEAD_LINES, TAIL_LINES = 4, 16

_PREFIX = re.compile(r"^\[(?:rank|default)(\d{1,9})\]:\s?")
_HEAD = re.compile(r"(?:\[(?:rank|default)(\d{1,9})\]:\s?)?Traceback \(most recent call last\)")
_TERMINATE = re.compile(r"terminate called after throwing an instance of '([^']+)'")
_SUFFIXES = r"Error|Exception|Interrupt|Exit|Iteration|Warning|Expired|Failure|Timeout|Empty|Full|Group"
_EXCEPTION = re.compile(rf"((?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*|\w*(?:{_SUFFIXES}))(?:\([^)]*\))?(?::\s?(.*))?$")
_BARE = re.compile(
    r"((?:[A-Za-z_]\w*\.)+\w*(?:Error|Exception)"
    r"|(?:Value|Runtime|Key|Import|ModuleNotFound|Assertion|OS|Type|FileNotFound|Permission|NotImplemented"
    r"|Attribute|Index|Memory|Connection|Timeout|ZeroDivision|Unicode\w*|Name|Recursion|System)Error"
    r"): (.*)$"
)
_NOT_STARTED = re.compile(
    r"\S*python[\d.]*: (?:Error while finding module specification for .* \((\w+Error): (.*)\)$"
    r"|(No module named \S.*))"
)
"""What `python -m` says of a module that it can't start: a line of its own, with no traceback."""
_WRAPPER = re.compile(r"(?:ChildFailedError|ProcessRaisedException|ProcessExitedException)$")
_SECONDARY_KIND = re.compile(r"(?:SignalException|KeyboardInterrupt)$")
_SECONDARY = re.compile(
    r"Connection (?:reset|closed) by peer|Broken pipe|ncclRemoteError|remote process exited"
    r"|Watchdog caught collective|recvValue failed|communicator was aborted|got signal: (?:2|15)\b"
)


def rank_of(text: str) -> tuple[int | None, str]:
    """The rank of a `[rankN]: ` prefix, and the text behind it."""
    match = _PREFIX.match(text)
    return (int(match[1]), text[match.end() :]) if match else (None, text)


@dataclass(slots=True)
class _Open:
    start_byte: int
    line: int
    kind: str | None = None
    head: list[str] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    lines: int = 0
    strangers: int = 0

    def add(self, text: str) -> None:
        self.lines += 1
        kept = excerpt(text, 300)
        if len(self.head) < HEAD_LINES:
            self.head.append(kept)
            return
        self.tail.append(kept)
        if len(self.tail) > TAIL_LINES:
            del self.tail[0]

    def text(self) -> str:
        left_out = self.lines - len(self.head) - len(self.tail)
        gap = [f"… {left_out} lines …"] if left_out else []
        return "\n".join([*self.head, *gap, *self.tail])


class TracebackReader:
    """Feed it every line from a mark on until `open` is False again."""

    def __init__(self) -> None:
        self._open: dict[int | None, _Open] = {}

    @property
    def open(self) -> bool:
        return bool(self._open)

    def line(self, text: str, start_byte: int, end_byte: int, line: int) -> Traceback | None:
        """The traceback that this line completes, if it does."""
        head = _HEAD.search(text)
        if head is not None:
            rank = int(head[1]) if head[1] else rank_of(text)[0]
            cut = self._close(rank, end_byte) if rank in self._open else None
            self._open[rank] = opened = _Open(start_byte, line)
            opened.add(text[head.start() :])
            return cut
        terminated = _TERMINATE.search(text)
        if terminated is not None:
            rank = rank_of(text)[0]
            self._open[rank] = opened = _Open(start_byte, line, kind=terminated[1])
            opened.add(text)
            return None
        rank, rest = rank_of(text)
        if rank in self._open:
            return self._inside(rank, rest, end_byte)
        return self._bare(rank, rest, start_byte, end_byte, line)

    def finish(self, end_byte: int) -> tuple[Traceback, ...]:
        """Tracebacks that the log breaks off in."""
        return tuple(self._close(rank, end_byte) for rank in tuple(self._open))

    def _inside(self, rank: int | None, text: str, end_byte: int) -> Traceback | None:
        state = self._open[rank]
        if state.kind is not None:
            what = text.strip().removeprefix("what():").strip()
            state.add(text)
            return self._close(rank, end_byte, state.kind, what)
        if not text.strip() or text[0] in " \t":
            state.add(text)
        elif match := _EXCEPTION.match(text):
            state.add(text)
            return self._close(rank, end_byte, match[1], match[2] or "")
        else:
            state.strangers += 1
        if state.lines > MOST_LINES or state.strangers > MOST_STRANGERS:
            return self._close(rank, end_byte)
        return None

    def _bare(
        self, rank: int | None, text: str, start_byte: int, end_byte: int, line: int
    ) -> Traceback | None:
        if match := _BARE.match(text):
            kind, message = match[1], match[2]
        elif match := _NOT_STARTED.match(text):
            kind, message = match[1] or ModuleNotFoundError.__name__, match[2] or match[3]
        else:
            return None
        return _traceback(kind, message, rank, excerpt(text), False, start_byte, end_byte, line)

    def _close(
        self, rank: int | None, end_byte: int, kind: str = "unfinished traceback", message: str | None = None
    ) -> Traceback:
        state = self._open.pop(rank)
        if message is None:
            message = (state.tail or state.head)[-1].strip()
        framed = state.kind is None
        return _traceback(
            state.kind or kind, message, rank, state.text(), framed, state.start_byte, end_byte, state.line
        )


def _traceback(
    kind: str,
    message: str,
    rank: int | None,
    text: str,
    framed: bool,
    start_byte: int,
    end_byte: int,
    line: int,
) -> Traceback:
    return Traceback(
        start_byte=start_byte,
        end_byte=end_byte,
        line=line,
        kind=excerpt(kind, 120),
        message=excerpt(message, 2000),
        rank=rank,
        text=text,
        framed=framed,
        wrapper=bool(_WRAPPER.search(kind)),
        secondary=bool(_SECONDARY_KIND.search(kind) or _SECONDARY.search(message)),
    )
