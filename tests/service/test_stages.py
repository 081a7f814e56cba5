"""The stages of a starting engine, from log lines modelled on recorded ones."""

import pytest

from console.nodes.service.stages import FIRST_GUESS_SECONDS, StageClock, eta_seconds, read_start

LINES = [
    "(APIServer pid=1) INFO 06-07 13:19:30 [model.py:555] Resolved architecture: StandIn",
    "(EngineCore pid=96) INFO 06-07 13:19:43 [gpu_model_runner.py:4777] Starting to load model stand-in...",
    "(EngineCore pid=96)\nLoading safetensors checkpoint shards:  50% Completed | 1/2 [05:57<05:57]",
    "(EngineCore pid=96) INFO 06-07 13:27:20 [gpu.py:4879] Model loading took 48.5 GiB and 455.9 s",
    "(EngineCore pid=96) INFO 06-07 13:28:07 [monitor.py:48] torch.compile took 25.31 s in total",
    "(EngineCore pid=96) INFO 06-07 13:28:50 [core.py:281] init engine (profile) took 65.02 seconds",
    "(APIServer pid=1) INFO:     Application startup complete.",
]


@pytest.mark.parametrize(
    ("count", "stage"),
    [
        (0, "starting"),
        (1, "starting"),
        (2, "weights"),
        (3, "weights"),
        (4, "compile"),
        (5, "graphs"),
        (6, "serving"),
        (7, "ready"),
    ],
)
def test_the_stage_is_the_furthest_that_the_log_names(count: int, stage: str) -> None:
    start = read_start("\n".join(LINES[:count]))
    assert start.stage == stage
    assert start.percent == (50.0 if count == 3 else None)
    assert start.trouble is None


def test_the_last_error_is_kept() -> None:
    text = "Traceback (most recent call last):\n(APIServer pid=1) ValueError: Free memory on device is less\n"
    assert read_start(text).trouble == "ValueError: Free memory on device is less"


def test_without_a_history_a_recorded_start_is_the_guess() -> None:
    seconds, source = eta_seconds(read_start(""), 6.0, [])
    assert seconds == sum(FIRST_GUESS_SECONDS.values()) - 6.0
    assert "48 GiB" in source


def test_the_eta_learns_from_earlier_starts() -> None:
    clock = StageClock(began_at=100.0)
    for count, now in ((2, 110.0), (4, 150.0), (5, 155.0), (6, 175.0), (7, 176.0)):
        clock.saw(read_start("\n".join(LINES[:count])), now)
    assert clock.times == {"starting": 10.0, "weights": 40.0, "compile": 5.0, "graphs": 20.0, "serving": 1.0}
    weights = read_start(LINES[1])
    seconds, source = eta_seconds(weights, 15.0, [clock.times])
    assert seconds == 25.0 + 5.0 + 20.0 + 1.0
    assert source == "median of 1 earlier starts"
    late, _ = eta_seconds(weights, 1000.0, [clock.times])
    assert late == 26.0
    assert eta_seconds(read_start(LINES[6]), 0.0, []) == (0.0, "ready")


def test_a_percentage_beats_the_median() -> None:
    half = read_start("\n".join(LINES[:3]))
    seconds, _ = eta_seconds(half, 30.0, [])
    later = FIRST_GUESS_SECONDS["compile"] + FIRST_GUESS_SECONDS["graphs"] + FIRST_GUESS_SECONDS["serving"]
    assert seconds == 30.0 + later
