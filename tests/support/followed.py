"""A followed log together with everything it delivered."""

from itertools import pairwise
from pathlib import Path

from console.nodes.ssh import Node
from console.nodes.tail import Tail
from console.nodes.tail_delivery import TailEvent
from support.hosts import Host
from support.processes import processes_with


class Followed:
    """A tail and everything it delivered, by segment."""

    def __init__(self, node: Node, path: str, mirror: Path, **settings: object) -> None:
        self.chunks: list[tuple[int, int, bytes]] = []
        self.events: list[TailEvent] = []
        self.tail = Tail(node, path, mirror, self._on_bytes, on_event=self.events.append, **settings)  # type: ignore[arg-type]

    def _on_bytes(self, data: bytes, start: int) -> None:
        self.chunks.append((self.tail.segment, start, data))

    def delivered(self, segment: int = 0) -> bytes:
        """Bytes of a segment; fails when they are not one piece."""
        pieces = [(start, data) for seg, start, data in self.chunks if seg == segment]
        for (start, data), (following, _) in pairwise(pieces):
            assert following == start + len(data), "gap or repeat"
        return b"".join(data for _, data in pieces)


def readers(host: Host) -> int:
    """Readers of logs that run on the host."""
    return len(processes_with("LAB_READER=") & processes_with(f"HOME={host.home}"))
