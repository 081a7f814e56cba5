"""Predictions beside measurements: which one counts, and causes only where a recorded fact supports them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.lab_story import GIB, Story, demo, seven_b_log, spark

from console.core.record import events as ev
from console.core.record.experiment import Experiment
from console.core.record.figures import Source
from console.core.record.network import network_of
from console.core.record.predictions import UNEXPLAINED, Compared, predictions
from console.report.onepage import one_page
from console.report.sheet import sheet_markdown


def story(**facts: Any) -> Story:
    made = spark(only=("E0", "E1", "T2"))
    made.run("E0", seven_b_log(60.0, 32768))
    made.run("E1", seven_b_log(30.0, 32768), peaks={"node-a": 20 * GIB, "node-b": 20 * GIB})
    for node in ("node-a", "node-b"):
        made.add(ev.NodeDescribed, node=node, facts=facts)
    return made


def planned(experiment: Experiment, config: str, **settings: Any) -> Experiment:
    run = experiment.runs[f"{config}-1"]
    return replace(experiment, runs={**experiment.runs, run.id: replace(run, settings=settings)})


def changed(experiment: Experiment, config: str, **fields: Any) -> Experiment:
    row = experiment.rows[config].model_copy(update=fields)
    return replace(experiment, rows={**experiment.rows, config: row})


def of(experiment: Experiment, config: str, quantity: str) -> Compared:
    (found,) = [one for one in predictions(experiment) if (one.config, one.quantity) == (config, quantity)]
    return found


def step_band(low: float, number: float, high: float) -> Mapping[str, Any]:
    return {"predicted_step_seconds": number, "predicted_step_seconds_band": [low, high]}


def memory_band(low: float, number: float, high: float) -> Mapping[str, Any]:
    return {
        "predicted_memory_bytes": round(number * GIB),
        "predicted_memory_bytes_band": [low * GIB, high * GIB],
    }


def test_the_prediction_of_the_plan_counts() -> None:
    experiment = planned(story().experiment, "E0", **step_band(50, 55, 65))
    found = of(experiment, "E0", "step_seconds")
    assert (found.made, found.predicted, found.inside, found.why) == ("before the run", 55, True, ("", ""))
    assert found.ratio == pytest.approx(60 / 55)


def test_without_one_todays_ledger_is_asked_and_that_is_said() -> None:
    found = of(story().experiment, "E0", "memory_bytes")
    assert found.made == "computed afterwards"
    assert found.predicted is not None
    assert found.predicted > 10 * GIB


def test_what_can_not_be_predicted_says_why() -> None:
    for one in predictions(demo().experiment):
        assert one.predicted is None
        assert one.missing == "the profile names no device"
        assert one.why == ("", "")


def test_a_gap_without_a_fact_is_unexplained() -> None:
    experiment = planned(story().experiment, "E0", **step_band(5, 6, 7))
    assert of(experiment, "E0", "step_seconds").why == UNEXPLAINED


@pytest.mark.parametrize(("drawn", "says"), [(210.0, True), (600.0, False)])
def test_little_power_on_one_node_means_that_the_host_sets_the_pace(drawn: float, says: bool) -> None:
    experiment = planned(
        story(power_watts=700.0, launch_seconds=4.2e-6).experiment, "E0", **step_band(5, 6, 7)
    )
    experiment = changed(experiment, "E0", power_watts={"node-a": drawn})
    why, _ = of(experiment, "E0", "step_seconds").why
    assert ("host-bound" in why and "210 W of the 700 W" in why and "4.2 µs a launch" in why) is says
    assert (why == UNEXPLAINED[0]) is not says


@pytest.mark.parametrize(
    ("alone", "says"),
    [(600.0, None), (None, None), (300.0, "host-bound on one node already (E0 drew 300 W)")],
)
def test_on_more_nodes_the_link_may_make_the_device_wait(alone: float | None, says: str | None) -> None:
    experiment = planned(story(power_watts=700.0).experiment, "E1", **step_band(5, 6, 7))
    experiment = changed(experiment, "E1", power_watts={"node-b": 210.0})
    if alone is not None:
        experiment = changed(experiment, "E0", power_watts={"node-a": alone})
    why, why_zh = of(experiment, "E1", "step_seconds").why
    assert "node-b drew 210 W of the 700 W" in why
    assert (says or "the device mostly waited (launches, the link or the other rank)") in why
    assert ("host-bound" in why) is (says is not None)
    assert ("受限于主机端" in why_zh) is (says is not None)


def test_a_baseline_that_failed_says_nothing_of_the_host() -> None:
    experiment = planned(story(power_watts=700.0).experiment, "E1", **step_band(5, 6, 7))
    for config in ("E0", "E1"):
        experiment = changed(experiment, config, power_watts={"node-a": 210.0})
    why, _ = of(ended(experiment, "E0", "failed"), "E1", "step_seconds").why
    assert "the device mostly waited" in why


def test_tensor_parallelism_is_held_against_as_many_passes_without_it() -> None:
    """E1 has two ranks of 8 micro-batches each, E0 and T2 have 16 on every rank."""
    made = story()
    made.run("T2", seven_b_log(90.0, 32768))
    experiment = planned(made.experiment, "T2", **step_band(25, 30, 35))
    why, why_zh = of(experiment, "T2", "step_seconds").why
    assert "communication in every layer: 1.50× the step of E0, whose ranks make the same 16 passes" in why
    assert "E0" in why_zh
    assert "E1" not in why


def test_without_a_run_of_as_many_passes_nothing_is_said_of_communication() -> None:
    made = spark(only=("E0", "E1", "T2"))
    made.run("E1", seven_b_log(30.0, 32768))
    made.run("T2", seven_b_log(90.0, 32768))
    experiment = planned(made.experiment, "T2", **step_band(25, 30, 35))
    assert of(experiment, "T2", "step_seconds").why == UNEXPLAINED


def test_traffic_over_sockets_is_named() -> None:
    made = story()
    made.add(ev.TransportSeen, run="E1-1", node="node-a", words="NCCL 2.28: network Socket; NET/Socket/0")
    experiment = planned(made.experiment, "E1", **step_band(5, 6, 7))
    assert "NET/Socket" in of(experiment, "E1", "step_seconds").why[0]


@pytest.mark.parametrize(
    ("tokens", "seconds", "ratio", "side"),
    [(13_246.0, 5.201, 3.18, "above"), (13_246.0, 1.6, 0.98, "inside"), (32_768.0, 4.2, 1.04, "inside"),
     (65_536.0, 4.2, 0.52, "below")],
)  # fmt: skip
def test_a_step_is_held_against_the_tokens_that_it_trained(
    tokens: float, seconds: float, ratio: float, side: str
) -> None:
    experiment = planned(story().experiment, "E0", **step_band(3.572, 4.044, 4.577))
    experiment = changed(experiment, "E0", tokens_per_step=tokens, steady_step_seconds=seconds)
    found = of(experiment, "E0", "step_seconds")
    assert (found.predicted, found.low, found.high) == (4.044, 3.572, 4.577), "as the journal has them"
    assert found.expected == pytest.approx(4.044 * tokens / 32_768)
    assert found.ratio == pytest.approx(ratio, abs=0.005)
    assert (found.side, found.inside) == (side, side == "inside")
    assert (found.why == UNEXPLAINED) is (side != "inside")


def test_other_tokens_than_predicted_for_are_told() -> None:
    experiment = planned(story().experiment, "E0", **step_band(3.572, 4.044, 4.577))
    assert of(experiment, "E0", "step_seconds").basis == ("", "")
    words, words_zh = of(changed(experiment, "E0", tokens_per_step=13_245.5), "E0", "step_seconds").basis
    assert words == "predicted for 32,768 tokens a step; 13,246 were trained"
    assert "32,768" in words_zh
    assert "13,246" in words_zh


def test_what_was_trained_for_unknown_tokens_is_not_compared() -> None:
    experiment = planned(story().experiment, "E0", **step_band(3.572, 4.044, 4.577))
    found = of(changed(experiment, "E0", tokens_per_step=None), "E0", "step_seconds")
    assert (found.predicted, found.ratio, found.inside, found.why) == (4.044, None, None, ("", ""))
    assert found.basis[0] == (
        "predicted for 32,768 tokens a step; how many were trained is not known: not compared"
    )


def with_longest_row(made: Story, tokens: float) -> None:
    made.add(
        ev.DatasetMeasured, run="E0-1", mean_tokens=200.0, max_tokens=tokens, samples=320,
        source=Source(words="log"),
    )  # fmt: skip


@pytest.mark.parametrize(("longest", "explained"), [(600.0, True), (1900.0, False), (None, False)])
def test_only_a_short_longest_row_explains_little_memory(longest: float | None, explained: bool) -> None:
    made = story()
    if longest is not None:
        with_longest_row(made, longest)
    experiment = planned(made.experiment, "E0", **memory_band(40, 50, 60))
    found = of(changed(experiment, "E0", tokens_per_step=3200.0), "E0", "memory_bytes")
    assert found.ratio == pytest.approx(20 / 50), "memory is not scaled by tokens"
    assert ("rows of 2,048 tokens were assumed; the longest has 600" in found.why[0]) is explained
    assert (found.why == UNEXPLAINED) is not explained


@pytest.mark.parametrize(("longest", "told"), [(1820.0, True), (2048.0, False)])
def test_memory_inside_its_band_tells_of_shorter_rows(longest: float, told: bool) -> None:
    made = story()
    with_longest_row(made, longest)
    found = of(planned(made.experiment, "E0", **memory_band(17, 19, 21)), "E0", "memory_bytes")
    assert found.inside
    assert (found.basis[0] == "predicted for rows of 2,048 tokens; the longest has 1,820") is told
    assert (found.basis == ("", "")) is not told


def logged(made: Story, config: str, reserved_gib: float) -> None:
    made.add(
        ev.StepLogged, run=f"{config}-1", step=1, total=2, loss=1.0, grad_norm=1.0, memory_gib=reserved_gib,
        start_byte=0, end_byte=1, line=1,
    )  # fmt: skip


def driven(experiment: Experiment, config: str, **sizes: int) -> Experiment:
    peaks = {name.replace("_", "-"): size for name, size in sizes.items()}
    source = (Source(words="driver's figure for the run's processes"),)
    sources = {f"peak_memory_bytes.{node}": source for node in peaks}
    return changed(experiment, config, peak_memory_bytes=peaks, sources=sources)


def test_memory_above_is_what_lies_outside_of_torch() -> None:
    made = story()
    logged(made, "E0", 18.0)
    experiment = driven(made.experiment, "E0", node_a=24 * GIB)
    why, _ = of(planned(experiment, "E0", **memory_band(17, 19, 21)), "E0", "memory_bytes").why
    assert "torch reserved 18.0 GiB, inside the band" in why
    assert "6.0 GiB more" in why
    assert "CUDA context" in why


def test_a_sum_over_one_computer_is_seen_as_one() -> None:
    made = story(boot_id="one")
    logged(made, "E1", 18.0)
    experiment = driven(made.experiment, "E1", node_a=42 * GIB, node_b=42 * GIB)
    why, _ = of(planned(experiment, "E1", **memory_band(17, 19, 21)), "E1", "memory_bytes").why
    assert "2 processes of the run together" in why


@pytest.mark.parametrize("reserved", [30.0, None])
def test_torch_above_the_band_itself_is_unexplained(reserved: float | None) -> None:
    made = story()
    if reserved is not None:
        logged(made, "E0", reserved)
    experiment = driven(made.experiment, "E0", node_a=32 * GIB)
    found = of(planned(experiment, "E0", **memory_band(17, 19, 21)), "E0", "memory_bytes")
    assert found.why == UNEXPLAINED


def reduced(made: Story, **answer: Any) -> None:
    made.walk()
    made.add(
        ev.StepEnded, item="pair", step="all_reduce", node=None, command="probe all_reduce", outcome="passed",
        seconds=9.0, answer={"sums_right": True, "ranks": {"node-a": {}, "node-b": {}}, **answer},
    )  # fmt: skip


def test_the_network_stands_in_the_environment() -> None:
    made = story()
    sizes = [{"bytes": 256 << 20, "seconds": 0.002}]
    chosen = {"paths": ["P2P/CUMEM"], "version": "2.28.9"}
    reduced(made, backend="nccl", sizes=sizes, busbw_bytes_per_second=134.2e9, transport=chosen)
    found = network_of(made.experiment)
    assert found is not None
    assert (found.way, found.largest_bytes) == ("P2P/CUMEM, NCCL 2.28.9", 256 << 20)
    for text in (sheet_markdown(made.experiment), one_page(made.experiment)):
        assert "all-reduce over nccl (P2P/CUMEM, NCCL 2.28.9), 0.25 GiB in 0.002 s, busbw 134.2 GB/s" in text


def test_a_network_that_failed_says_so() -> None:
    made = story()
    reduced(made, sums_right=False, backend=None, sizes=[], problems=["node-b: connection refused"])
    assert "the all-reduce failed: node-b: connection refused" in sheet_markdown(made.experiment)
    assert network_of(story().experiment) is None


OUT_OF_MEMORY = (
    "node-a: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 120.18 GiB. GPU 0 has a total "
    "capacity of 139.80 GiB of which 68.17 GiB is free. Including non-PyTorch memory, this process has "
    "71.62 GiB memory in use."
)


def ended(experiment: Experiment, config: str, outcome: str, cause: str = "") -> Experiment:
    run = replace(experiment.runs[f"{config}-1"], outcome=outcome, cause=cause)
    return replace(experiment, runs={**experiment.runs, run.id: run})


def test_out_of_memory_says_what_was_held_and_asked_for() -> None:
    experiment = planned(story().experiment, "E0", **memory_band(700, 800, 900))
    found = of(ended(experiment, "E0", "failed", OUT_OF_MEMORY), "E0", "memory_bytes")
    why, why_zh = found.why
    assert "its run failed after" in why
    assert "out of memory: it held 71.62 GiB and asked for 120.18 GiB more" in why
    assert "71.62 GiB" in why_zh


@pytest.mark.parametrize("band", [(5, 6, 7), (50, 55, 65)], ids=["outside", "inside"])
def test_figures_of_a_run_that_failed_are_not_explained(band: tuple[float, float, float]) -> None:
    made = story()
    logged(made, "E0", 18.0)
    experiment = planned(made.experiment, "E0", **step_band(*band))
    found = of(ended(experiment, "E0", "failed", OUT_OF_MEMORY), "E0", "step_seconds")
    assert found.why[0] == "its run failed at step 1 of 2; not a figure of a whole run"
    assert "第 1 步" in found.why[1]


def test_a_failed_run_without_a_figure_says_so_too() -> None:
    experiment = planned(story().experiment, "E0", **step_band(5, 6, 7))
    experiment = changed(
        ended(experiment, "E0", "stopped"), "E0", steady_step_seconds=None, tokens_per_step=3200.0
    )
    found = of(experiment, "E0", "step_seconds")
    assert found.why[0].startswith("its run was stopped")
    assert found.basis == ("", ""), "no step was made, so nothing was trained"
