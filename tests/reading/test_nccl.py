"""Which way NCCL's bytes travel."""

from console.core.reading.nccl import transport
from tests.reading.samples import log


def test_two_rails_of_rdma() -> None:
    seen = log("nccl-rdma-two-rails.log").transport
    assert seen is not None
    assert (seen.network, seen.rails) == ("IB", 2)
    assert seen.hcas == ("rocep1s0f1:1", "roceP2p1s0f1:1")
    assert (seen.nodes, seen.ranks) == (2, 2)
    assert seen.version == "2.28.9+cuda13.0"
    assert all(path.startswith("NET/IB") for path in seen.paths)
    assert seen.rdma
    assert not seen.sockets_between_nodes


def test_no_gpudirect_is_said_not_judged() -> None:
    seen = log("nccl-rdma-two-rails.log").transport
    assert seen is not None
    assert seen.gdr is False
    assert seen.warnings == ()


def test_one_rail() -> None:
    seen = log("nccl-rdma-one-rail.log").transport
    assert seen is not None
    assert seen.rails == 1


def test_sockets() -> None:
    seen = log("nccl-sockets.log").transport
    assert seen is not None
    assert (seen.network, seen.rails, seen.interfaces) == ("Socket", 0, ("enP7s7",))
    assert seen.sockets_between_nodes
    assert seen.gdr is None


def test_nothing_said() -> None:
    assert transport(()) is None
    assert log("swift-4x.log").transport is None
