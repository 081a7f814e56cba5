"""No line that looks like metrics is lost unseen: recorded logs leave none, strange ones are counted."""

import json

import pytest
from support.lab_story import Story, train_log
from typer.testing import CliRunner

from console.cli.main import app
from console.core.reading.facts import UnreadMetric
from console.core.reading.reader import MOST_UNREAD
from console.core.reading.trainlog import read_whole
from tests.reading.samples import ALL, FIXTURES, facts, log, raw

STRANGE = (
    "{'loss': 1.25, 'step': 5}",
    "{'loss': '0.5', 'grad_norm': 'nan', 'learning_rate': '1e-05', 'epoch': '0.1'}",
    '{"eval_loss": 0.75, "epoch": 1.0}',
    "{'train_runtime': 12.5, 'train_samples_per_second': 3.0}",
    "{'memory(GiB)': 18.9, 'progress': '5/60'}",
    " iteration        5/      93 | lm loss: 1.640021E+00 | grad norm: 1.211 |",
    " step 5 | loss: 1.64 | grad norm: 1.2",
    "validation | lm loss value: 2.5E+00 |",
)
ORDINARY = (
    "[INFO:swift] max_grad_norm=1.0, metric_for_best_model='loss'",
    "{'loss_scale': 'default', 'gradient_checkpointing': True}",
    "NCCL INFO threadThresholds 8/8/64 | 16/8/64 | 512 | 512",
    "    loss: torch.Tensor | None = None",
    "| N/A   35C    P0    78W / 700W |  20480MiB / 143771MiB |      0%      Default |",
    "memory(GiB) is absent on a CPU; train_speed(s/it) is a mean",
)


@pytest.mark.parametrize("name", ALL)
def test_nothing_of_the_recorded_logs_is_unread(name: str) -> None:
    assert [one.text for one in log(name).unread] == []
    assert log(name).unread_lines == 0


@pytest.mark.parametrize("line", STRANGE)
def test_what_no_format_takes_is_counted_with_its_place(line: str) -> None:
    before = raw("swift-4x.log")
    read = read_whole(before + line.encode() + b"\n")
    assert read.unread_lines == 1
    (unread,) = read.unread
    assert unread.text == line
    assert unread.start_byte == len(before)
    assert read.steps == log("swift-4x.log").steps


@pytest.mark.parametrize("line", ORDINARY)
def test_other_lines_are_not_metrics(line: str) -> None:
    assert read_whole(line.encode() + b"\n").unread_lines == 0


def test_the_count_goes_on_where_the_examples_end() -> None:
    read = read_whole((STRANGE[0].encode() + b"\n") * 1000)
    assert (read.unread_lines, len(read.unread)) == (1000, MOST_UNREAD)


def test_how_the_bytes_arrive_changes_nothing() -> None:
    data = b"\r".join(line.encode() for line in STRANGE) + b"\n" + raw("megatron-3x.log")
    whole, single = facts([data]), facts(data[n : n + 1] for n in range(len(data)))
    assert list(map(repr, whole)) == list(map(repr, single)), "NaN is not equal to itself"
    assert sum(isinstance(fact, UnreadMetric) for fact in whole) == len(STRANGE)


def test_parse_log_gives_count_and_place(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "a.log"
    file.write_text("\n".join(STRANGE) + "\n")
    document = json.loads(CliRunner().invoke(app, ["parse-log", str(file), "--json"]).stdout)
    assert document["unread_metric_lines"] == len(STRANGE)
    assert [one["line"] for one in document["unread"]] == list(range(1, len(STRANGE) + 1))
    assert "line 1: {'loss': 1.25" in CliRunner().invoke(app, ["parse-log", str(file)]).stdout
    clean = json.loads(
        CliRunner().invoke(app, ["parse-log", str(FIXTURES / "swift-4x.log"), "--json"]).stdout
    )
    assert clean["unread_metric_lines"] == 0


def test_the_row_keeps_the_count_and_its_notes_say_where() -> None:
    story = Story()
    story.run("E0", train_log([0.5] * 12))
    assert story.experiment.rows["E0"].unread_metric_lines == 0
    story.run("E0", STRANGE[0].encode() + b"\n" + train_log([0.5] * 12), attempt=2)
    row = story.experiment.rows["E0"]
    assert row.unread_metric_lines == 1
    assert any("look like metrics and were not read, the first is line 1" in note for note in row.notes)
