"""What the diagnosis is told to expect of a run: only what the plan says or the checklist proved."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from console.cli.files import read_lab, read_rules
from console.core.ledger.of_lab import prediction_of
from console.core.reading.diagnosis import Diagnosis, Expectation
from console.core.record import events as ev
from console.core.record.views import RunView
from console.engine import diagnosing
from console.engine.diagnosing import Diagnosing
from console.engine.opening import LabFiles, open_recorder
from console.engine.recorder import Recorder

NOW = datetime(2026, 1, 1, 22, tzinfo=UTC)


@pytest.fixture
def expected(monkeypatch: pytest.MonkeyPatch) -> list[Expectation]:
    """The expectations of every diagnosis that is begun."""
    seen: list[Expectation] = []

    def begun(rules: Any, expectation: Expectation) -> Diagnosis:
        seen.append(expectation)
        return Diagnosis(rules, expectation)

    monkeypatch.setattr(diagnosing, "Diagnosis", begun)
    return seen


def opened(folder: Path, *, files: LabFiles | None = None) -> Recorder:
    return open_recorder(folder, files or read_lab("h200-pair"))


def run_of(recorder: Recorder, *, purpose: str = "matrix", config: str = "E0", **settings: object) -> RunView:
    node = recorder.experiment.profile.nodes[0].name
    recorder.record(
        ev.RunPlanned(
            at=NOW,
            run=f"{config}-1",
            config=config,
            attempt=1,
            purpose=purpose,
            launches=(ev.NodeLaunch(node=node, rank=0, argv=("true",), env={}),),
            log_node=node,
            settings=settings,
        )
    )
    return recorder.experiment.runs[f"{config}-1"]


def paired(recorder: Recorder, **answer: object) -> None:
    recorder.record(
        ev.StepEnded(
            at=NOW, item="pair", step="meet", command="pair", outcome="passed", seconds=1.0, answer=answer
        )
    )


def test_the_slow_end_of_the_prediction_is_what_is_expected(tmp_path: Path, expected: list[Expectation]):
    recorder = opened(tmp_path)
    Diagnosing(recorder, read_rules()).begin(run_of(recorder, save_steps=40), "megatron")
    profile = recorder.experiment.profile
    column = prediction_of(profile, profile.configuration("E0"))
    assert column.step_seconds.high is not None
    assert column.step_seconds.number is not None
    assert column.step_seconds.high > column.step_seconds.number
    assert (expected[0].step_seconds, expected[0].save_steps) == (column.step_seconds.high, 40)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("device: H200", "device: none such"),
        ("device: H200", ""),
        ("name: Qwen2.5-7B\n", "name: None-7B\n"),
        ("dtype: bfloat16", "use_cpu: true"),
    ],
)
def test_what_the_ledger_does_not_know_is_not_expected(
    tmp_path: Path, expected: list[Expectation], old: str, new: str
):
    files = read_lab("h200-pair")
    assert old in files.profile_text
    text = files.profile_text.replace(old, new, 1)
    recorder = opened(tmp_path, files=LabFiles(text, "x.yaml", files.checklist_text))
    Diagnosing(recorder, read_rules()).begin(run_of(recorder), "megatron")
    assert (expected[0].step_seconds, expected[0].save_steps) == (None, None)


def test_a_run_of_the_checklist_has_no_prediction(tmp_path: Path, expected: list[Expectation]):
    recorder = opened(tmp_path)
    run = run_of(recorder, purpose="smoke", config="smoke-ordinary", save_steps=10)
    Diagnosing(recorder, read_rules()).begin(run, "swift")
    assert (expected[0].step_seconds, expected[0].save_steps) == (None, 10)


@pytest.mark.parametrize(
    ("answers", "known"),
    [
        ([], None),
        ([{}], None),
        ([{"cache_ok": None}], None),
        ([{"cache_ok": False}], False),
        ([{"cache_ok": False}, {"cache_ok": True}], True),
    ],
)
def test_the_cache_is_shared_only_where_the_pair_item_proved_it(
    tmp_path: Path, expected: list[Expectation], answers: list[dict[str, object]], known: bool | None
):
    recorder = opened(tmp_path)
    for answer in answers:
        paired(recorder, **answer)
    Diagnosing(recorder, read_rules()).begin(run_of(recorder), "megatron")
    assert expected[0].shared_cache is known
