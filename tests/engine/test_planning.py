"""What the journal keeps of a run's plan, and that the record reads past what is no setting."""

from dataclasses import replace

import pytest
from support.lab_story import Story, train_log

from console.cli.files import read_lab
from console.core.ledger.of_lab import prediction_of
from console.core.plan.matrix import effective_settings
from console.core.reading.trainlog import read_whole
from console.core.record.rows import LoggedRun, build_row
from console.engine.planning import matrix_settings

GIB = 2**30


@pytest.mark.parametrize("config_id", ["E0", "E1", "E2", "E3"])
def test_the_predicted_memory_goes_into_the_plan(config_id: str) -> None:
    profile = read_lab("h200-pair").profile
    config = profile.configuration(config_id)
    kept = matrix_settings(profile, config)
    column = prediction_of(profile, config)
    assert column.memory_bytes.number is not None
    predicted = kept.pop("predicted_memory_bytes")
    assert predicted == round(column.memory_bytes.number)
    assert isinstance(predicted, int)
    assert 4 * GIB < predicted < 141 * GIB
    assert kept.pop("predicted_memory_bytes_band") == [column.memory_bytes.low, column.memory_bytes.high]
    assert kept.pop("predicted_step_seconds") == column.step_seconds.number
    assert kept.pop("predicted_step_seconds_band") == [column.step_seconds.low, column.step_seconds.high]
    assert kept == effective_settings(profile.settings, config).model_dump(mode="json")


def test_nothing_is_predicted_of_training_on_the_cpu() -> None:
    profile = read_lab("embedded").profile
    kept = matrix_settings(profile, profile.configuration("E0"))
    assert not [name for name in kept if name.startswith("predicted")]


def test_a_row_is_the_same_with_and_without_the_prediction() -> None:
    story = Story()
    log = train_log([0.5] * 12)
    run_id = story.run("E0", log)
    experiment = story.experiment
    run = experiment.runs[run_id]
    predicted = replace(run, settings={**run.settings, "predicted_memory_bytes": 9 * GIB})
    logs = {run.log_node: LoggedRun(log=read_whole(log), file="logs/node-a/E0-1.log", sha256=None)}
    plain = build_row(experiment, run_id, logs=logs, peaks_memory={})
    more = replace(experiment, runs={**experiment.runs, run_id: predicted})
    assert build_row(more, run_id, logs=logs, peaks_memory={}) == plain
    assert plain.steady_step_seconds == pytest.approx(0.5)
