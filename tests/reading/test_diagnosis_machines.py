"""Rules about the nodes side by side: readings, transports, ranks that don't work together."""

import pytest

from console.core.reading.diagnosis import Diagnosis, Expectation
from console.core.reading.facts import TopologyLine
from tests.reading.diagnosing import PAIR, busy, diagnosis, ids, met, nccl, place, step, steps

RAILS = Expectation(nodes=("node-a", "node-b"), rdma=True, rails=2)
SOCKET = "vm:1:1 [0] NCCL INFO Using network Socket"
IB = "vm:1:1 [0] NCCL INFO Using network IB"
TWO_HCAS = "NCCL INFO NET/IB : Using [0]rocep1s0f1:1/RoCE [1]roceP2p1s0f1:1/RoCE [RO]; OOB eth:10.0.0.2<0>"
ONE_HCA = "NCCL INFO NET/IB : Using [0]rocep1s0f1:1/RoCE [RO]; OOB eth:10.0.0.2<0>"
TWO_NODES = "NCCL INFO comm 0x1 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0"
ONE_NODE = "NCCL INFO comm 0x1 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0"


def training(expectation: Expectation | None = PAIR) -> Diagnosis:
    watched = diagnosis(expectation)
    for node in ("node-a", "node-b"):
        watched.link(node, "up", 0.0)
        watched.job(node, "running", 0.0)
    watched.facts("node-a", steps([3.0, 2.9, 2.8]), 0.0)
    return watched


def sampled(watched: Diagnosis, seconds: int, **settings) -> Diagnosis:
    return sampled_from(watched, 0, seconds, **settings)


def sampled_from(
    watched: Diagnosis,
    first: int,
    seconds: int,
    *,
    stepping: bool = True,
    **readings: dict[str, float | None],
) -> Diagnosis:
    """One reading a second of each node; `readings` are the fields by node, with _ for -."""
    for second in range(first, first + seconds):
        if stepping:
            watched.facts("node-a", [step(4 + second, 2.7 - second / 1000)], float(second))
        for node, fields in readings.items():
            watched.sample(busy(node.replace("_", "-"), float(second), **fields))
    watched.tick(float(first + seconds))
    return watched


def test_healthy_readings_raise_nothing():
    watched = sampled(training(), 120, node_a={}, node_b={})
    assert watched.active == ()


def test_a_gpu_that_is_busy_at_idle_power_without_progress_spins():
    watched = sampled(training(), 90, stepping=False, node_a={"watts": 22.0}, node_b={"watts": 80.0})
    assert ("gpu-spins", "node-a") in {finding.key for finding in watched.active}
    assert ("gpu-spins", "node-b") not in {finding.key for finding in watched.active}


def test_low_power_with_progress_does_not_spin():
    assert "gpu-spins" not in ids(sampled(training(), 90, node_a={"watts": 22.0}))


def test_an_unreadable_power_proves_nothing():
    assert "gpu-spins" not in ids(sampled(training(), 90, stepping=False, node_a={"watts": None}))


def test_a_low_clock_under_load_is_stuck_and_clears():
    watched = sampled(training(), 60, node_a={"clock_hertz": 0.8e9})
    assert ids(watched) == {"low-clock"}
    watched.sample(busy("node-a", 62.0))
    watched.tick(62.0)
    assert watched.active == ()


@pytest.mark.parametrize("fields", [{"clock_hertz": 0.8e9, "use": 0.1}, {"clock_hertz": 2.2e9}])
def test_a_low_clock_without_load_or_a_usual_one_is_fine(fields: dict[str, float | None]):
    assert sampled(training(), 60, node_a=fields).active == ()


def test_a_gap_in_the_readings_is_not_proof_of_a_state_that_lasted():
    watched = training()
    for second in (0.0, 1.0, 2.0, 58.0, 59.0, 60.0):
        watched.sample(busy("node-a", second, clock_hertz=0.8e9))
    watched.tick(60.0)
    assert "low-clock" not in ids(watched)


def test_a_node_that_works_while_the_other_waits_is_the_slow_rank():
    watched = sampled(training(), 90, node_a={"watts": 38.0}, node_b={"watts": 88.0})
    assert [finding.key for finding in watched.active] == [("slow-rank", "node-b")]


def test_a_lower_clock_is_the_slow_rank():
    watched = sampled(training(), 90, node_a={"clock_hertz": 1.6e9}, node_b={"clock_hertz": 2.3e9})
    assert [finding.key for finding in watched.active] == [("slow-rank", "node-a")]


def test_pipeline_stages_may_draw_different_power():
    watched = training()
    pipeline = TopologyLine(**place(5), tp=1, pp=2, vpp=None, cp=1, ep=1, etp=1)
    watched.facts("node-a", [pipeline], 0.0)
    assert sampled(watched, 90, node_a={"watts": 38.0}, node_b={"watts": 88.0}).active == ()


def test_sockets_where_rdma_was_intended():
    watched = diagnosis(RAILS)
    watched.facts("node-a", nccl(TWO_NODES, "NCCL INFO NET/IB : No device found.", SOCKET), 0.0)
    (finding,) = watched.active
    assert finding.id == "nccl-sockets"
    assert finding.seen == SOCKET
    assert "No device found" in finding.suspects[0]


@pytest.mark.parametrize(
    ("expectation", "lines"),
    [
        (PAIR, (TWO_NODES, SOCKET)),
        (RAILS, (ONE_NODE, SOCKET, "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM")),
        (RAILS, (TWO_NODES, TWO_HCAS, IB, "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0")),
    ],
    ids=["no RDMA planned", "one host", "RDMA in use"],
)
def test_sockets_that_are_right_or_not_used(expectation: Expectation, lines: tuple[str, ...]):
    watched = diagnosis(expectation)
    watched.facts("node-a", nccl(*lines), 0.0)
    assert watched.active == ()


def test_one_rail_of_two():
    watched = diagnosis(RAILS)
    watched.facts("node-b", nccl(ONE_HCA, IB), 0.0)
    (finding,) = watched.active
    assert (finding.id, finding.node) == ("nccl-one-rail", "node-b")
    assert "1 of 2 adapters: rocep1s0f1:1" in finding.seen
    assert finding.line == 10


def test_ranks_that_report_different_losses_train_alone():
    watched = diagnosis(PAIR)
    watched.facts("node-a", steps([3.0, 2.9]), 0.0)
    watched.facts("node-b", steps([3.1, 2.95]), 0.0)
    assert ids(watched) == {"trains-alone"}


def test_a_higher_rank_that_prints_metrics_trains_alone():
    watched = diagnosis(PAIR)
    watched.facts("node-b", [met(1), step(1)], 0.0)
    assert ids(watched) == {"trains-alone"}


def test_rank_0_may_print_and_megatron_prints_on_the_last_rank():
    watched = diagnosis(PAIR)
    watched.facts("node-a", [met(0), step(1)], 0.0)
    watched.facts("node-b", [met(1)], 0.0)
    megatron = diagnosis(Expectation(framework="megatron", nodes=("node-a", "node-b")))
    megatron.facts("node-b", [met(1), step(1)], 0.0)
    assert watched.active == megatron.active == ()
