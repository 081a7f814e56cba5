"""Rows: every figure with its source, every blank with its reason."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab_story import CPU_FACTS, GIB, GPU_FACTS, SEVEN_B, Story, demo, seven_b_log, spark, train_log

from console.core.plan.matrix import effective_settings
from console.core.reading.trainlog import read_whole
from console.core.record import events as ev
from console.core.record.experiment import Experiment
from console.core.record.figures import Row, Source
from console.core.record.rows import LoggedRun, PeakMemory, build_row, memory_key

FIELDS = (
    "steady_step_seconds",
    "tokens_per_step",
    "tokens_per_second",
    "peak_tflops",
    "mfu_6n",
    "mfu_lora",
    "final_loss",
)


def assert_accounted(row: Row) -> None:
    """No figure without source, no blank without reason, never both, never a zero that stands for nothing."""
    cells: dict[str, float | None] = {name: getattr(row, name) for name in FIELDS}
    cells |= {memory_key(node): size for node, size in row.peak_memory_bytes.items()}
    for name, value in cells.items():
        if value is None:
            assert row.blanks[name].strip(), name
            assert name not in row.sources
        else:
            assert math.isfinite(value), name
            assert row.sources[name], name
            assert all(source.words.strip() for source in row.sources[name])
            assert name not in row.blanks
            if name != "final_loss":
                assert value > 0, name
    assert set(row.blanks) | set(row.sources) == set(cells)


def row_of(story: Story, config: str = "E0") -> Row:
    return story.experiment.rows[config]


def test_speed_is_the_median_after_warm_up_and_its_source_is_that_line() -> None:
    log = train_log([9.0] + [2.0] * 4 + [0.8] * 14 + [5.0], tokens_per_step=1440)
    story = Story()
    story.run("E0", log)
    row = row_of(story)
    assert row.steady_step_seconds == pytest.approx(0.8, rel=1e-4)
    assert row.tokens_per_step == pytest.approx(1440)
    assert row.tokens_per_second == pytest.approx(1800, rel=1e-4)
    source = row.sources["steady_step_seconds"][0]
    assert (source.file, source.node) == ("logs/node-a/E0-1.log", "node-a")
    assert source.sha256
    line = log[source.start_byte : source.end_byte].decode()
    assert line.startswith("{'loss'")
    assert log[: source.start_byte].count(b"\n") + 1 == source.line
    assert "first 5 left out" in source.words
    assert_accounted(row)


def test_the_scatter_of_the_steps_is_kept_and_told() -> None:
    story = Story()
    story.run(
        "E0", train_log([9.0] * 5 + [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4, 2.6], tokens_per_step=1440)
    )
    row = row_of(story)
    spread = row.step_spread
    assert spread is not None
    assert spread.count == 9
    assert (spread.lower_seconds, spread.upper_seconds) == pytest.approx((1.4, 2.2), abs=1e-4)
    assert spread.median_error_seconds == pytest.approx(0.93 * 0.8 / 3, abs=1e-4)
    assert row.step_error == pytest.approx(0.93 * 0.8 / 3 / 1.8, abs=1e-4)
    words = row.sources["steady_step_seconds"][0].words
    assert "half of them within 1.4 to 2.2 s: standard error of the median 0.25 s" in words


def test_three_steps_have_no_quartiles() -> None:
    story = Story()
    story.run("E0", train_log([9.0, 9.0, 1.0, 1.2, 1.4]))
    row = row_of(story)
    assert row.steady_step_seconds == pytest.approx(1.2, abs=1e-4)
    assert (row.step_spread, row.step_error) == (None, None)
    assert "standard error" not in row.sources["steady_step_seconds"][0].words


def test_rows_of_older_journals_have_no_spread() -> None:
    event = next(event for event in demo().events if isinstance(event, ev.RowRecorded))
    older = json.loads(ev.event_json(event))
    del older["row"]["step_spread"]
    parsed = ev.parse_event(json.dumps(older))
    assert isinstance(parsed, ev.RowRecorded)
    assert parsed.row == event.row.model_copy(update={"step_spread": None})


def test_warm_up_of_the_profile_decides_what_is_left_out() -> None:
    story = Story(head="degraded: no GPU\nwarmup_steps: 1")
    story.run("E0", train_log([9.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0]))
    assert "first 1 left out" in row_of(story).sources["steady_step_seconds"][0].words
    assert row_of(story).steady_step_seconds == pytest.approx(3.0)


def test_without_a_token_count_the_mean_length_times_the_global_batch_counts() -> None:
    story = Story()
    story.run("E0", train_log([0.5] * 12, mean_tokens=90.0))
    row = row_of(story)
    assert row.tokens_per_step == pytest.approx(90 * 16)
    words = row.sources["tokens_per_step"][0].words
    assert "Dataset Token Length mean 90" in words
    assert "global batch 16" in words


def test_a_configuration_s_own_global_batch_counts() -> None:
    story = Story(only=("E0", "G1"))
    story.run("G1", train_log([0.5] * 12, mean_tokens=90.0))
    assert row_of(story, "G1").tokens_per_step == pytest.approx(90 * 8)


def test_mfu_by_hand() -> None:
    story = spark()
    story.run("E0", seven_b_log(4.0, tokens=3200))
    row = row_of(story)
    rate = 3200 / 4.0
    assert row.peak_tflops == 90
    assert row.mfu_6n == pytest.approx(6 * 7_635_802_100 * rate / 90e12, rel=1e-6)
    h, kv, ffn, layers, vocab = 3584, 512, 18944, 28, 152064
    matmul = layers * (h * (2 * h + 2 * kv) + 3 * h * ffn) + vocab * h
    attention, mlp = 2 * (h + h) + 2 * (h + kv), 2 * (h + ffn) + (ffn + h)
    lora = 8 * layers * (attention + mlp)  # ordinary mode: adapters on each layer by itself
    span = 200 + 30**2 / 200
    per_token = 4 * matmul + 6 * h * layers * span + 6 * lora
    assert row.mfu_lora == pytest.approx(per_token * rate / 90e12, rel=1e-6)
    assert row.mfu_lora < row.mfu_6n


def test_the_peak_is_the_sum_of_what_was_measured_on_the_run_s_nodes() -> None:
    row = demo().experiment.rows["E1"]
    assert row.peak_tflops == pytest.approx(0.16)
    assert row.peak_source.startswith(
        "measured dense float32 matrix product: node-a 0.08 + node-b 0.08 = 0.16"
    )
    assert [source.node for source in row.sources["peak_tflops"]] == ["node-a", "node-b"]


def test_a_measured_peak_of_another_dtype_says_so() -> None:
    story = spark()
    story.add(ev.NodeDescribed, node="node-a", facts={"matmul_dtype": "float16"})
    story.run("E0", seven_b_log(4.0))
    assert "float16" in row_of(story).peak_source
    assert "the run trains in bfloat16" in row_of(story).peak_source


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "90", True, None])
def test_without_a_usable_measurement_on_every_node_the_profile_s_peak_counts(bad: object) -> None:
    story = spark()
    story.facts = GPU_FACTS
    story.add(ev.NodeDescribed, node="node-b", facts={"matmul_tflops": bad})
    story.run("E1", seven_b_log(2.0))
    row = row_of(story, "E1")
    assert row.peak_tflops == 250
    assert row.peak_source.startswith("derived dense bfloat16: 2 × 125 TFLOP/s")


def test_without_any_peak_mfu_is_blank_and_the_reason_names_the_node() -> None:
    story = Story(facts={})
    story.run("E0", train_log([0.5] * 12))
    row = row_of(story)
    assert row.mfu_6n is None
    assert row.mfu_lora is None
    assert "node-a" in row.blanks["mfu_6n"]
    assert row.peak_source == ""
    assert_accounted(row)


def test_a_rank_s_share_of_a_cut_model_is_not_taken_for_the_model() -> None:
    story = spark(only=("E0", "P2"))
    log = train_log([3.0] * 20, tokens_per_step=3200, parameters="3817.9M Params (10.0M Trainable [0.2643%])")
    story.run("P2", log)
    row = row_of(story, "P2")
    rate = row.tokens_per_second
    assert rate is not None
    assert row.mfu_6n == pytest.approx(6 * 7_615_616_512 * rate / 180e12, rel=1e-6)
    assert any("each rank prints its own share" in source.words for source in row.sources["mfu_6n"])


def test_an_unknown_model_has_6n_but_no_lora_rule() -> None:
    story = Story(model="{path: somewhere/else}")
    story.run("E0", train_log([0.5] * 12))
    row = row_of(story)
    assert row.mfu_6n is not None
    assert row.mfu_lora is None
    assert "shapes are not known" in row.blanks["mfu_lora"]


def test_full_training_uses_the_rule_for_full_training() -> None:
    story = spark()
    full = replace(story, settings="{tuner: full, dtype: bfloat16, max_length: 2048, epochs: 1}", events=[])
    full.run("E0", seven_b_log(4.0))
    story.run("E0", seven_b_log(4.0))
    whole, adapters = row_of(full).mfu_lora, row_of(story).mfu_lora
    assert whole is not None
    assert adapters is not None
    assert 1.4 < whole / adapters < 1.5
    assert "6 N_g" in row_of(full).sources["mfu_lora"][0].words


def test_a_failed_run_keeps_its_figures_and_says_how_it_ended() -> None:
    story = Story()
    story.run("E0", train_log([0.5] * 12, end=False), outcome="failed", cause="OutOfMemoryError: 2 GiB")
    row = row_of(story)
    assert row.steady_step_seconds == pytest.approx(0.5)
    assert row.notes[0] == "run failed at step 12 of 12: OutOfMemoryError: 2 GiB"


def test_a_run_that_never_stepped_is_all_blanks_with_the_cause() -> None:
    story = Story()
    story.run("E0", b"ValueError: no such file\n", outcome="failed", cause="ValueError: no such file")
    row = row_of(story)
    assert [getattr(row, name) for name in FIELDS if name != "peak_tflops"] == [None] * 6
    assert "no such file" in row.blanks["steady_step_seconds"]
    assert row.notes[0].startswith("run failed before its first step")
    assert_accounted(row)


def test_a_missing_log_is_a_reason() -> None:
    story = Story()
    run = story.run("E0", train_log([0.5] * 12), record=False)
    row = build_row(story.experiment, run, logs={}, peaks_memory={})
    assert "was not kept" in row.blanks["steady_step_seconds"]
    assert row.blanks[memory_key("node-a")] == "nothing was recorded on this node"
    assert_accounted(row)


def test_steps_on_another_node_than_expected_are_used_and_told() -> None:
    story = Story()
    run = story.run("E1", train_log([0.5] * 12), record=False)
    silent, loud = read_whole(b"nothing\n"), read_whole(train_log([0.5] * 12))
    logs = {
        "node-a": LoggedRun(log=silent, file="logs/node-a/E1-1.log"),
        "node-b": LoggedRun(log=loud, file="logs/node-b/E1-1.log"),
    }
    row = build_row(story.experiment, run, logs=logs, peaks_memory={})
    assert row.steady_step_seconds == pytest.approx(0.5)
    assert row.sources["steady_step_seconds"][0].node == "node-b"
    assert "steps were read on node-b, not on node-a as expected" in row.notes


def test_a_nan_loss_is_a_blank_and_a_note() -> None:
    story = Story()
    story.run("E0", train_log([0.5] * 12, losses={11: "nan", 12: "nan"}))
    row = row_of(story)
    assert row.final_loss is None
    assert row.blanks["final_loss"] == "the loss of step 12, the last one, is nan"
    assert "loss or grad_norm not finite in 2 of 12 steps (11, 12)" in row.notes


def test_a_filtered_nan_is_not_taken_for_a_loss_of_zero() -> None:
    story = Story()
    story.run("E0", train_log([0.5] * 12, losses={12: "0.0"}, norms={12: "nan"}))
    row = row_of(story)
    assert row.final_loss is None
    assert "filtered" in row.blanks["final_loss"]
    assert any("loss 0.0 there is a NaN" in note for note in row.notes)


def test_notes_gather_attempts_adoption_transport_and_the_shared_computer() -> None:
    story = Story()
    story.run("E1", train_log([0.5] * 12), outcome="failed", cause="refused")
    story.run("E1", train_log([0.5] * 12), attempt=2, adopted=True)
    notes = " / ".join(row_of(story, "E1").notes)
    assert "attempt 2 (before it: E1-1 failed)" in notes
    assert "adopted while running, on node-a, node-b" in notes
    assert "transport: gloo over TCP" in notes
    assert "share one computer: they slow each other down" in notes


def test_devices_of_one_computer_are_not_said_to_slow_each_other_down() -> None:
    story = spark(only=("E0", "E1"))
    for node in ("node-a", "node-b"):
        story.add(ev.NodeDescribed, node=node, facts={"boot_id": "one"})
    story.run("E1", seven_b_log(2.0))
    assert "perhaps a device" in " ".join(row_of(story, "E1").notes)
    apart = replace(story, head="device: H200", gpus=(0, 1), events=[])
    for node in ("node-a", "node-b"):
        apart.add(ev.NodeDescribed, node=node, facts={"boot_id": "one"})
    apart.run("E1", seven_b_log(2.0))
    notes = " ".join(row_of(apart, "E1").notes)
    assert "devices of one computer: nothing crosses a network" in notes
    assert "slow each other down" not in notes


def test_no_size_is_shown_without_its_source() -> None:
    story = Story()
    run = story.run("E0", train_log([0.5] * 12), record=False)
    logs = {"node-a": LoggedRun(log=read_whole(train_log([0.5] * 12)), file="f")}
    row = build_row(story.experiment, run, logs=logs, peaks_memory={"node-a": PeakMemory(GIB, None, None)})
    assert row.peak_memory_bytes == {"node-a": None}
    assert "without its source" in row.blanks[memory_key("node-a")]


def test_rows_are_kept_by_the_journal_as_they_are() -> None:
    event = next(event for event in demo().events if isinstance(event, ev.RowRecorded))
    assert ev.parse_event(ev.event_json(event)) == event


def test_settings_of_the_plan_count_not_those_of_a_later_profile() -> None:
    experiment = demo().experiment
    config = experiment.profile.configuration("E0")
    assert effective_settings(experiment.profile.settings, config).global_batch == 16


durations = st.lists(st.floats(0.01, 50), min_size=0, max_size=25)
facts = st.sampled_from([{}, CPU_FACTS, GPU_FACTS, {"matmul_tflops": math.nan}])


@settings(max_examples=60, deadline=None)
@given(
    seconds=durations,
    known=facts,
    model=st.sampled_from([SEVEN_B, "{path: somewhere/else}"]),
    mean=st.sampled_from([None, 0.0, 90.0]),
    tokens=st.sampled_from([None, 1440]),
    parameters=st.sampled_from([None, "0.8651M Params (0.0655M Trainable [7.5714%])"]),
    losses=st.dictionaries(st.integers(1, 25), st.sampled_from(["nan", "inf", "0.0"]), max_size=3),
    outcome=st.sampled_from(["done", "failed", "stopped", "timed out"]),
    config=st.sampled_from(["E0", "E1", "R1", "G1", "P2"]),
    size=st.sampled_from([None, 5 * GIB]),
)
def test_whatever_the_log_lacks_no_cell_is_left_unaccounted(
    seconds: list[float],
    known: Mapping[str, object],
    model: str,
    mean: float | None,
    tokens: int | None,
    parameters: str | None,
    losses: dict[int, str],
    outcome: str,
    config: str,
    size: int | None,
) -> None:
    story = Story(facts=known, model=model)
    log = train_log(seconds, mean_tokens=mean, tokens_per_step=tokens, parameters=parameters, losses=losses)
    story.run(config, log, outcome=outcome, peaks={"node-a": size, "node-b": size})
    assert_accounted(row_of(story, config))


def test_unknown_run_is_a_key_error() -> None:
    experiment: Experiment = demo().experiment
    with pytest.raises(KeyError):
        build_row(experiment, "nope", logs={}, peaks_memory={})


def test_reasons_of_the_engine_are_kept() -> None:
    story = Story()
    run = story.run("E0", train_log([0.5] * 12), record=False)
    memory = {"node-a": PeakMemory(reason="the node's sampler delivered nothing during the run")}
    row = build_row(story.experiment, run, logs={}, peaks_memory=memory)
    assert row.blanks[memory_key("node-a")] == "the node's sampler delivered nothing during the run"


def test_sources_name_the_words_they_were_given() -> None:
    story = Story()
    run = story.run("E0", train_log([0.5] * 12), record=False)
    source = Source(words="driver's figure", node="node-a", file="experiment.sqlite3#samples")
    memory = {"node-a": PeakMemory(3 * GIB, source, None)}
    row = build_row(story.experiment, run, logs={}, peaks_memory=memory)
    assert row.peak_memory_bytes == {"node-a": 3 * GIB}
    assert row.sources[memory_key("node-a")] == (source,)
