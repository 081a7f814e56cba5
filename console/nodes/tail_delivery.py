"""What the frames of a reader do to the mirror, and what of it is handed on."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from console.core.errors import NodeError
from console.nodes.mirror import Mirror
from console.nodes.remote_file import RemoteFile
from console.nodes.tail_frames import TailFrame
from console.nodes.tail_state import StreamWatch
from console.nodes.text import clean

Change = Literal["rotated", "truncated", "replaced", "fetched again"]


@dataclass(frozen=True)
class TailEvent:
    """What makes the mirror not simply grow.

    `fetched again`: the mirror was removed or changed here, and is begun anew. Else the remote file is no
    longer the file it was, and bytes go on in a new segment with its own mirror.
    """

    kind: Change
    segment: int
    mirror: Path
    lost_bytes: bool
    """Whether bytes of the old file may never have been seen."""
    why: str


class Delivery:
    """Adds to the mirror; hands on each byte once per segment, in order, and every event."""

    def __init__(
        self,
        file: RemoteFile,
        mirror: Mirror,
        watch: StreamWatch,
        on_bytes: Callable[[bytes, int], None],
        on_event: Callable[[TailEvent], None] | None,
    ) -> None:
        self._file = file
        self._mirror = mirror
        self._watch = watch
        self._on_bytes = on_bytes
        self._on_event = on_event
        self._delivered_to = mirror.end

    def take(self, frame: TailFrame) -> None:
        """Raises NodeError for a file that can't be read and for what no reader should send, OSError for a
        mirror that can't be written, and what a callback raises."""
        kind, offset, payload = frame
        if kind == b"D":
            self._data(offset, payload)
        elif kind == b"W":
            self._watch.turn("waiting", "no such file yet")
        elif kind == b"H":
            pass
        elif kind == b"O":
            self._opened(offset, int(json.loads(payload)["inode"]))
        elif kind in (b"R", b"T"):
            self._next_segment(kind, json.loads(payload))
        elif kind == b"E":
            raise NodeError(
                self._file.node.name,
                f"the log can't be read: {clean(str(json.loads(payload)['error']))}",
                next_step="check its owner and mode on the node",
            )
        else:
            raise NodeError(self._file.node.name, "the reader of a log sent what it should not")

    def begin_again(self, why: str) -> None:
        """Have the current segment's mirror fetched from its first byte. Raises OSError."""
        self._mirror.begin_again()
        self._tell("fetched again", why, lost_bytes=False)

    def _data(self, offset: int, data: bytes) -> None:
        if offset != self._mirror.end:
            raise NodeError(
                self._file.node.name,
                f"{self._file.path}: bytes at {offset} came where {self._mirror.end} was expected",
                next_step="the console reads again from what it has",
            )
        self._mirror.append(data)
        self._watch.came()
        fresh = data[max(0, self._delivered_to - offset) :]
        if fresh:
            self._delivered_to = self._mirror.end
            self._on_bytes(fresh, self._mirror.end - len(fresh))

    def _opened(self, offset: int, inode: int) -> None:
        mark = self._mirror.mark
        if self._mirror.end == mark.base:
            self._mirror.begin(inode, offset)
        elif mark.inode != inode:
            self._mirror.begin(inode, mark.base)
        self._watch.turn("live")

    def _next_segment(self, kind: bytes, facts: dict[str, Any]) -> None:
        self._mirror.next_segment(int(facts["inode"]))
        self._delivered_to = 0
        self._watch.turn("live")
        why = str(clean(str(facts["why"])))
        change: Change = "rotated"
        if kind == b"T":
            change = "truncated" if "truncated" in why else "replaced"
        self._tell(change, why, lost_bytes=bool(facts["lost"]))

    def _tell(self, kind: Change, why: str, *, lost_bytes: bool) -> None:
        if self._on_event is not None:
            self._on_event(TailEvent(kind, self._mirror.mark.segment, self._mirror.path, lost_bytes, why))
