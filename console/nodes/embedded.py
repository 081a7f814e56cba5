"""Nodes on this computer: SSH servers on loopback inside the process, with real shells behind them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from console.nodes.ssh import SshTarget


@dataclass(frozen=True)
class EmbeddedNode:
    """One embedded node: its name, home folder, and how to reach it."""

    name: str
    home: Path
    target: SshTarget


@asynccontextmanager
async def embedded_nodes(
    root: Path, names: Sequence[str] = ("node-a", "node-b")
) -> AsyncIterator[tuple[EmbeddedNode, ...]]:
    """Serve the nodes while the block runs. Keys, homes and (if free) ports under `root` are used again."""
    raise NotImplementedError
    yield
