"""What a log says about its run around the metrics, and how it ends."""

import pytest

from console.core.reading.trainlog import TrainLogReader, read_whole
from tests.reading.samples import log, raw


def test_the_launch_line_gives_the_layout() -> None:
    launch = log("megatron-4x-last-rank.log").launch
    assert launch is not None
    assert (launch.nnodes, launch.node_rank, launch.nproc_per_node) == (2, 1, 1)
    assert (launch.master_addr, launch.master_port) == ("node-a", 29500)


def test_world_model_and_data() -> None:
    read = log("megatron-4x-last-rank.log")
    assert read.world is not None
    assert (read.world.rank, read.world.world_size) == (1, 2)
    assert read.parameters is not None
    assert (read.parameters.total, read.parameters.trainable) == (7_620_100, 40_100)
    assert read.dataset is not None
    assert (read.dataset.mean, read.dataset.size) == (120.25, 118)
    assert read.validation_dataset is not None
    assert read.validation_dataset.size == 2


def test_topology_names_megatron() -> None:
    read = read_whole(b"[INFO:swift] TP: 1, PP: 2, VPP: None, CP: 1, EP: 4, ETP: 1\n")
    assert read.framework == "megatron"
    assert read.topology is not None
    assert (read.topology.tp, read.topology.pp, read.topology.vpp, read.topology.ep) == (1, 2, None, 4)


def test_saved_checkpoints_of_both_frameworks() -> None:
    assert [seen.step for seen in log("swift-4x.log").checkpoints] == [20]
    assert [seen.step for seen in log("megatron-4x-last-rank.log").checkpoints] == [40]


@pytest.mark.parametrize(
    "name", ["swift-4x.log", "swift-logging.jsonl", "megatron-4x-last-rank.log", "megatron-logging.jsonl"]
)
def test_a_regular_end_is_seen(name: str) -> None:
    assert log(name).ended


@pytest.mark.parametrize("name", ["failed-node-a.log", "failed-node-b.log", "stopped.log", "megatron-3x.log"])
def test_no_end_is_claimed_without_one(name: str) -> None:
    assert not log(name).ended


def test_a_last_checkpoint_is_no_success() -> None:
    """It is printed on the way out of a crash, too."""
    read = read_whole(
        b"[INFO:swift] rank: 0, local_rank: 0, world_size: 1\n"
        b"[INFO:swift] last_model_checkpoint: /out/checkpoint-20\n"
    )
    assert not read.ended


def test_a_log_cut_before_its_end_has_not_ended() -> None:
    data = raw("swift-4x.log")
    assert not read_whole(data[: data.index(b"[INFO:swift] End time")]).ended


def test_the_hint_settles_only_what_the_text_leaves_open() -> None:
    assert read_whole(b"hello\n", "megatron").framework == "megatron"
    assert read_whole(raw("swift-4x.log"), "megatron").framework == "swift"
    assert read_whole(b"hello\n").framework == "unknown"


def test_a_reader_that_starts_within_a_file_counts_from_there() -> None:
    data = raw("swift-logging.jsonl")
    half = data.index(b"\n", len(data) // 2) + 1
    lines = data.count(b"\n", 0, half)
    reader = TrainLogReader(start_byte=half, start_line=lines + 1)
    late = [*reader.feed(data[half:]), *reader.finish()]
    whole = TrainLogReader()
    places = [(fact.start_byte, fact.line) for fact in [*whole.feed(data), *whole.finish()]]
    assert [(fact.start_byte, fact.line) for fact in late] == places[-len(late) :]


def test_a_finished_reader_takes_nothing_more() -> None:
    reader = TrainLogReader()
    reader.finish()
    with pytest.raises(ValueError, match="finished"):
        reader.feed(b"x")
