"""Which way NCCL's bytes travel, from its own INFO lines."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from console.core.reading.facts import NcclLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """Evidence of one process's transports. `lines` are the lines it rests on.

    `network`: what NCCL chose for traffic between hosts; None if no line said so (yet).
    `hcas`: adapters NCCL listed, e.g. ("rocep1s0f1:1", "roceP2p1s0f1:1"); `rails` is their number.
    `paths`: transports actually connected by channels: P2P, SHM, NET/IB, NET/Socket.
    `gdr`: GPUDirect RDMA, None when unsaid; False is normal on a Spark.
    """

    version: str | None
    network: Literal["IB", "Socket"] | str | None
    hcas: tuple[str, ...]
    interfaces: tuple[str, ...]
    paths: tuple[str, ...]
    gdr: bool | None
    nodes: int | None
    ranks: int | None
    warnings: tuple[str, ...]
    lines: tuple[NcclLine, ...]

    @property
    def rails(self) -> int:
        return len(self.hcas)


def transport(lines: Iterable[NcclLine]) -> Transport | None:
    """Fold NCCL lines of one log into one record; None if there is no line."""
    raise NotImplementedError
