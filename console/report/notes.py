"""The notes of a row in the page's language."""

from collections.abc import Sequence

from console.core.record.acceptance import Lang
from console.core.record.experiment import Experiment
from console.core.record.figures import Row
from console.core.record.notes_zh import in_chinese
from console.core.record.views import ActiveFinding

_SEVERITIES = {"note": "提示", "warning": "警告", "failure": "故障"}


def notes(experiment: Experiment, row: Row, lang: Lang) -> tuple[str, ...]:
    """In Chinese, a note of a finding is in the words of the finding's rule."""
    if lang == "en":
        return row.notes
    findings = [active for active in experiment.findings if active.run == row.run]
    return tuple(_in_chinese(note, findings) for note in row.notes)


def _in_chinese(note: str, findings: Sequence[ActiveFinding]) -> str:
    for active in findings:
        finding, where = active.finding, f"{active.node}: " if active.node else ""
        if note == f"{finding.severity}: {where}{finding.title} ({finding.seen})":
            said = finding.said("zh")
            return f"{_SEVERITIES[finding.severity]}：{where}{said.title}（{said.seen}）"
    return in_chinese(note)
