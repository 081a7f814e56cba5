"""A remote file as a gap-free stream of bytes, kept in a byte-exact mirror."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from console.nodes.ssh import Node


@dataclass(frozen=True)
class StreamState:
    """Whether the tail delivers; says nothing about link or job."""

    state: Literal["waiting", "live", "stalled", "lost"]
    """waiting: no such file yet. live: the reader answers. stalled: it is silent. lost: no reader."""
    changed_at_monotonic: float
    heard_at_monotonic: float | None = None
    """Last sign of the reader, bytes or not."""
    bytes_at_monotonic: float | None = None
    """Last bytes of the file."""
    why: str = ""


@dataclass(frozen=True)
class TailEvent:
    """The remote file is no longer the file it was: bytes go on in a new segment with its own mirror."""

    kind: Literal["rotated", "truncated", "replaced"]
    segment: int
    mirror: Path
    lost_bytes: bool
    """Whether bytes of the old file may never have been seen."""
    why: str


@dataclass(frozen=True)
class MirrorProof:
    """sha256 of mirror and node's file, taken over the same length."""

    sha256: str
    node_sha256: str
    size_bytes: int

    @property
    def same(self) -> bool:
        return self.sha256 == self.node_sha256


class Tail:
    """Mirrors one remote file. Offsets in mirror and remote file are the same numbers."""

    def __init__(
        self,
        node: Node,
        remote_path: str,
        mirror: Path,
        on_bytes: Callable[[bytes, int], None],
        *,
        on_event: Callable[[TailEvent], None] | None = None,
        start: Literal["begin", "end"] = "begin",
    ) -> None:
        """`on_bytes(data, start_offset)` is called in order, without gap or repeat, within a segment.

        A mirror that is there already is checked against the node and continued; what it holds is not
        delivered again. `start="end"` begins a new mirror 256 KiB before the end of a larger file.
        """
        raise NotImplementedError

    @property
    def stream(self) -> StreamState:
        raise NotImplementedError

    @property
    def base(self) -> int:
        """First offset the mirror holds (0: it is whole); before it the mirror has a hole."""
        raise NotImplementedError

    @property
    def end(self) -> int:
        """Offset after the last byte the mirror holds."""
        raise NotImplementedError

    @property
    def segment(self) -> int:
        """0 until the remote file was rotated, truncated or replaced."""
        raise NotImplementedError

    @property
    def mirror(self) -> Path:
        """Mirror of the current segment."""
        raise NotImplementedError

    async def start(self) -> None:
        """Begin to follow; returns at once, works in the background through losses of the link."""
        raise NotImplementedError

    async def fetch_before(self, count: int = 262144) -> tuple[bytes, int]:
        """Fetch up to `count` bytes before `base` into the mirror; returns them and their start offset."""
        raise NotImplementedError

    async def finish(self, timeout: float = 60.0) -> MirrorProof:
        """After the job ended: fetch everything, compare sha256 with the node, stop following."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop following; the reader on the node ends."""
        raise NotImplementedError
