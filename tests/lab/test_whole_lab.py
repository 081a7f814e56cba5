"""The whole lab, for real: two nodes, seven items, training on both, the sheet, and a kill in between."""

import csv
import hashlib
import io
import subprocess

import pytest
from lab_support import lab, pids_of

from console.core.record import events as ev
from console.core.record.folding import fold

pytestmark = pytest.mark.training
FULL = ("steady_step_seconds", "tokens_per_second", "tokens_per_step", "mfu_6n", "mfu_lora", "peak_tflops")


def test_the_killed_lab_was_completed(told) -> None:
    assert told.exit_code == 0, told.output[-3000:]
    assert fold(told.events).outcome == "accepted"


def test_nothing_that_was_shown_is_lost(told) -> None:
    assert told.events[: len(told.shown_before)] == told.shown_before


def test_training_went_on_without_the_console(told) -> None:
    assert told.alive_after_kill


def test_the_second_console_adopted_both_jobs(told) -> None:
    started = [e for e in told.events if isinstance(e, ev.JobStarted) and e.run == "E1-1"]
    assert sorted(e.node for e in started if not e.adopted) == ["node-a", "node-b"]
    assert sorted(e.node for e in started if e.adopted) == ["node-a", "node-b"]
    assert len({(e.node, e.pid) for e in started}) == 2


@pytest.mark.parametrize("run", ["E0-1", "E1-1"])
def test_no_step_is_lost_and_none_is_told_twice(told, run: str) -> None:
    steps = [e.step for e in told.events if isinstance(e, ev.StepLogged) and e.run == run]
    assert steps == list(range(1, 21))


def test_mirrors_are_byte_exact(told) -> None:
    experiment = fold(told.events)
    for run in experiment.runs.values():
        for node, source in run.logs.items():
            assert source.file is not None
            data = (told.folder / source.file).read_bytes()
            on_node = told.folder / "nodes" / node / "home" / ".lab" / experiment.name / run.id / "log"
            assert hashlib.sha256(data).hexdigest() == source.sha256
            assert data == on_node.read_bytes()


def test_seven_items_each_with_a_conclusion(told) -> None:
    items = {item["id"]: item["state"] for item in told.record["checklist"]}
    assert len(items) == 7
    assert items["ordinary"] == "passed"
    assert items["pair"] == "passed"
    assert items["megatron"] == "failed"


def test_megatron_fails_for_the_true_reason(told) -> None:
    (ended,) = [e for e in told.events if isinstance(e, ev.RunEnded) and e.run == "smoke-megatron-1"]
    assert ended.outcome == "failed"
    assert "ModuleNotFoundError" in ended.cause


def test_rows_are_full(told) -> None:
    rows = {row["id"]: row for row in told.record["rows"]}
    assert list(rows) == ["E0", "E1"]
    for row in rows.values():
        assert all(row[name] is not None and row[name] > 0 for name in FULL), row
        assert all(row["sources"][name] for name in FULL)
        assert "measured dense float32 matrix product" in row["peak_source"]
    assert set(rows["E0"]["peak_memory_bytes"]) == {"node-a"}
    assert set(rows["E1"]["peak_memory_bytes"]) == {"node-a", "node-b"}
    assert rows["E1"]["parallel"] == "DP2"
    assert min(rows["E1"]["peak_memory_bytes"].values()) > 50_000_000


def test_figures_hang_together(told) -> None:
    for row in told.record["rows"]:
        rate = row["tokens_per_step"] / row["steady_step_seconds"]
        assert row["tokens_per_second"] == pytest.approx(rate)
        assert 0 < row["mfu_lora"] < 1
        assert 0 < row["mfu_6n"] < 1


def test_both_configurations_saw_the_same_tokens(told) -> None:
    """The same data, seed and global batch: only the cut differs."""
    one, two = told.record["rows"]
    assert one["tokens_per_step"] == pytest.approx(two["tokens_per_step"], rel=0.05)


def test_acceptance_has_five_entries_with_proof(told) -> None:
    acceptance = told.record["acceptance"]
    assert len(acceptance) == 5
    assert all(entry["met"] and entry["proof"] for entry in acceptance)
    assert told.record["verdict"]
    assert set(told.record["environment"]["nodes"]) == {"node-a", "node-b"}


def test_the_page_says_where_and_why_it_was_degraded(told) -> None:
    page = (told.folder / "exports" / "summary.md").read_text()
    assert "CPU nodes on one computer" in page
    assert "transformer_engine" in page or "megatron" in page.lower()


def test_csv_has_a_line_per_configuration(told) -> None:
    lines = list(csv.reader(io.StringIO((told.folder / "exports" / "record.csv").read_text())))
    assert [line[0] for line in lines] == ["id", "E0", "E1"]


def test_nothing_is_left_running(told) -> None:
    assert [pid for run in ("E0-1", "E1-1") for pid in pids_of(told.folder, run)] == []


def test_export_and_replay_need_no_node(told) -> None:
    exported = subprocess.run(
        lab("export", str(told.folder), "--format", "json"), capture_output=True, text=True, check=True
    )
    assert '"E1"' in exported.stdout
    replayed = subprocess.run(
        lab("replay", str(told.folder), "--json"), capture_output=True, text=True, check=True
    )
    assert len(replayed.stdout.splitlines()) == len(told.events)


def test_a_finished_lab_stays_finished(told) -> None:
    before = len(told.events)
    again = subprocess.run(
        lab("demo", "--headless", "--out", str(told.folder), "--only", "E0,E1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert len(told.events) == before
