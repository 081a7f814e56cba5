"""Findings on the screens, in the language of the screens."""

from pathlib import Path

from console.core.record import events as ev
from console.tui.screens.record import source_text
from console.tui.screens.window import finding_rows
from console.tui.words import Words
from tui.support import decision, story

CHINESE = {"title_zh": "只用一条", "seen_zh": "两个网卡只用了一个", "first_action_zh": "启用另一个网卡。"}


def test_a_finding_and_what_to_do_first_are_in_chinese_where_the_journal_has_it(folder: Path) -> None:
    session = story(folder)
    finding = session.experiment.findings[0].finding.model_copy(update=CHINESE)
    session.happen(ev.FindingRaised(at=session.clock, node="spark-a", run="E1-1", finding=finding))
    newest, old = (row.plain for row in finding_rows(session.experiment, Words("zh"), "E1-1"))
    assert "两个网卡只用了一个 → 启用另一个网卡。" in newest
    assert f"{finding.seen} → {finding.first_action}" in old
    english, _ = (row.plain for row in finding_rows(session.experiment, Words("en"), "E1-1"))
    assert f"{finding.seen} → {finding.first_action}" in english


def test_the_record_has_a_finding_in_chinese_among_the_notes(folder: Path) -> None:
    session = story(folder)
    finding = session.experiment.findings[0].finding.model_copy(update=CHINESE)
    note = f"warning: spark-a: {finding.title} ({finding.seen})"
    row = session.experiment.rows["E0"].model_copy(update={"notes": (note,)})
    session.happen(
        ev.FindingRaised(at=session.clock, node="spark-a", run="E0-1", finding=finding),
        ev.RowRecorded(at=session.clock, run="E0-1", row=row),
    )
    shown = source_text(session.experiment, "E0", "notes", folder, Words("zh")).plain
    assert "警告：spark-a: 只用一条（两个网卡只用了一个）" in shown


def test_what_made_a_run_fail_is_told_after_its_end(folder: Path) -> None:
    session, words = story(folder), Words("en")
    finding = session.experiment.findings[0].finding
    failure = finding.model_copy(update={"id": "oom-first-step", "severity": "failure", "seen": "no memory"})
    clock = session.clock
    session.happen(
        ev.FindingRaised(at=clock, node="spark-a", run="E1-1", finding=failure),
        ev.FindingCleared(at=clock, node="spark-a", run="E1-1", finding_id=failure.id),
    )

    def told(run: str | None) -> bool:
        return any("no memory" in row.plain for row in finding_rows(session.experiment, words, run))

    assert not told("E1-1")  # it went away while the run went on
    session.happen(ev.RunEnded(at=clock, run="E1-1", outcome="failed", cause="no memory", logs={}))
    assert told("E1-1")
    assert not told(None)
    session.happen(decision().model_copy(update={"at": clock, "decision": "run:E1-1"}))
    assert told(None)
