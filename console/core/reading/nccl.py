"""Which way NCCL's bytes travel, from its own INFO lines.

Lines carry prefixes of launchers, so nothing is anchored at the line start. A channel line names a transport
(`via P2P/CUMEM`, `via SHM/direct/direct`, `via NET/IB/1`, `via NET/Socket/0`); hundreds of them say the same.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from console.core.reading.facts import NcclLine

NCCL_MARKS = (
    b"] via ", b"NET/IB", b"NET/Socket", b"Using network ", b"NCCL version ", b" nNodes ", b"GPU Direct RDMA",
    b"Connected all rings",
)  # fmt: skip

_VIA = re.compile(r"\] via ((?:P2P|SHM|NET|COLLNET)\S*)")
_ADAPTER = re.compile(r"\[\d+\]([\w.+-]+:\d+)/(\w+)")
_INTERFACE = re.compile(r"\[\d+\]([\w.-]+)(?::|\s|$)")
_NETWORK = re.compile(r"Using network (\w+)")
_VERSION = re.compile(r"NCCL version ([\w.+-]+)")
_SIZE = re.compile(r"nRanks (\d{1,9}) nNodes (\d{1,9})")
_RINGS = re.compile(r"Connected all rings.*\bGDR (\d)")
_TROUBLE = re.compile(r"No device found|Invalid GID index|Failed to initialize NET plugin IB|NCCL WARN")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """Evidence of one process's transports. `lines` are the lines it rests on.

    `network`: what NCCL chose for traffic between hosts (IB, Socket, or a plugin's name); None if no line
    said so yet. `hcas`: the adapters NCCL listed, such as ("rocep1s0f1:1", "roceP2p1s0f1:1").
    `interfaces`: the network interfaces of the socket transport. `paths`: transports that channels really
    connected with, such as P2P/CUMEM or NET/IB/0. `gdr`: GPUDirect RDMA, None when unsaid; False is normal on
    a Spark. `nodes`, `ranks`: the largest communicator seen.
    """

    version: str | None
    network: str | None
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
        """Adapters in use; 0 if none was listed."""
        return len(self.hcas)

    @property
    def sockets_between_nodes(self) -> bool:
        """Traffic between hosts goes over TCP. One host alone has none, whatever network NCCL chose."""
        if any(path.startswith("NET/Socket") for path in self.paths):
            return True
        if self.network != "Socket" or (self.nodes is not None and self.nodes < 2):
            return False
        return not self.paths or any(path.startswith("NET") for path in self.paths)

    @property
    def rdma(self) -> bool:
        """An RDMA network was chosen or a channel uses one."""
        return (self.network or "").startswith("IB") or any(path.startswith("NET/IB") for path in self.paths)


def nccl_key(text: str) -> str | None:
    """What a line adds to the evidence; lines of one key say the same. None if it adds nothing."""
    if match := _VIA.search(text):
        return f"via {match[1]}"
    for pattern in (_NETWORK, _VERSION, _SIZE, _RINGS):
        if match := pattern.search(text):
            return match[0]
    if "Using [" in text or "GPU Direct RDMA" in text or _TROUBLE.search(text):
        return re.sub(r"^.*?NCCL (?:INFO|WARN) ", "", text)
    return None


def transport(lines: Iterable[NcclLine]) -> Transport | None:
    """Fold NCCL lines of one log into one record; None if there is no line."""
    kept = tuple(lines)
    if not kept:
        return None
    version = network = None
    hcas: dict[str, None] = {}
    interfaces: dict[str, None] = {}
    paths: dict[str, None] = {}
    warnings: dict[str, None] = {}
    gdr: bool | None = None
    sizes: list[tuple[int, int]] = []
    for line in kept:
        text = line.text
        if match := _VIA.search(text):
            paths[match[1]] = None
            gdr = True if "/GDRDMA" in match[1] else gdr
        if match := _VERSION.search(text):
            version = match[1]
        if match := _NETWORK.search(text):
            network = match[1]
        if match := _SIZE.search(text):
            sizes.append((int(match[1]), int(match[2])))
        if "NET/IB : Using" in text:
            hcas.update(dict.fromkeys(name for name, _ in _ADAPTER.findall(text)))
        if "NET/Socket : Using" in text:
            interfaces.update(dict.fromkeys(_INTERFACE.findall(text)))
        if "GPU Direct RDMA" in text:
            gdr = "Disabled" not in text
        if match := _RINGS.search(text):
            gdr = gdr or match[1] != "0"
        if _TROUBLE.search(text):
            warnings[text] = None
    return Transport(
        version=version,
        network=network,
        hcas=tuple(hcas),
        interfaces=tuple(interfaces),
        paths=tuple(paths),
        gdr=gdr,
        nodes=max((nodes for _, nodes in sizes), default=None),
        ranks=max((ranks for ranks, _ in sizes), default=None),
        warnings=tuple(warnings),
        lines=kept,
    )
