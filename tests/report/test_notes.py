"""What a run's findings say in the reports, in either language."""

import json

import pytest
from support.lab_story import Story, train_log

from console.core.reading.findings import Finding
from console.core.record import events as ev
from console.report.notes import notes
from console.report.onepage import one_page
from console.report.sheet import sheet_json, sheet_markdown

FINDING = Finding(
    id="low-clock",
    severity="warning",
    title="The GPU is stuck at a low clock",
    seen="SM clock 8e+08 Hz",
    suspects=("a clock limit",),
    first_action="Take the node off mains power.",
    facts_link="https://example.org",
    node="node-a",
    since=3.0,
    title_zh="GPU 停在低频",
    seen_zh="SM 频率只有 8e+08 Hz",
    first_action_zh="给该节点断电。",
)


def found(finding: Finding) -> Story:
    """A run that had this finding, and one without."""
    story = Story()
    story.add(ev.FindingRaised, node=finding.node, run="E0-1", finding=finding)
    story.run("E0", train_log([0.8] * 20))
    story.run("E1", train_log([0.5] * 20))
    return story


@pytest.mark.parametrize(
    ("lang", "note"),
    [
        ("en", "warning: node-a: The GPU is stuck at a low clock (SM clock 8e+08 Hz)"),
        ("zh", "警告：node-a: GPU 停在低频（SM 频率只有 8e+08 Hz）"),
    ],
)
def test_a_finding_stands_in_both_reports_in_their_language(lang: str, note: str) -> None:
    experiment = found(FINDING).experiment
    language = "zh" if lang == "zh" else "en"
    assert note in sheet_markdown(experiment, language)
    assert note in one_page(experiment, language)
    assert not any(note in other for other in notes(experiment, experiment.rows["E1"], language))


def test_a_finding_of_an_old_journal_stands_in_english() -> None:
    old = FINDING.model_copy(update={"title_zh": "", "seen_zh": "", "first_action_zh": ""})
    experiment = found(old).experiment
    (note,) = (one for one in notes(experiment, experiment.rows["E0"], "zh") if FINDING.title in one)
    assert note == "警告：node-a: The GPU is stuck at a low clock（SM clock 8e+08 Hz）"


def test_a_finding_on_no_node_is_of_the_whole_run() -> None:
    experiment = found(FINDING.model_copy(update={"node": None, "severity": "failure"})).experiment
    assert "故障：GPU 停在低频（SM 频率只有 8e+08 Hz）" in notes(experiment, experiment.rows["E0"], "zh")


def test_the_document_has_what_to_do_first_in_both_languages() -> None:
    (finding,) = json.loads(sheet_json(found(FINDING).experiment))["findings"]
    assert (finding["first_action"], finding["first_action_zh"]) == (
        FINDING.first_action,
        FINDING.first_action_zh,
    )
