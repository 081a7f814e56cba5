"""The files that a record cites, held against what is in the experiment's folder now."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from console.core.record.acceptance import Lang
from console.core.record.experiment import Experiment
from console.core.record.figures import Source

Fault = Literal[
    "missing", "not a file", "shorter than cited", "not the recorded sha256", "not whole", "unreadable"
]
IN_CHINESE: Mapping[Fault, str] = {
    "missing": "不存在",
    "not a file": "不是文件",
    "shorter than cited": "比引用的短",
    "not the recorded sha256": "与记录的 sha256 不同",
    "not whole": "不完整",
    "unreadable": "无法读取",
}


@dataclass(frozen=True, slots=True)
class Unsound:
    """A cited file that is not as recorded."""

    file: str
    fault: Fault

    def words(self, lang: Lang) -> str:
        return IN_CHINESE[self.fault] if lang == "zh" else self.fault


@dataclass(slots=True)
class _Cited:
    """What is said of one file: how far it is cited, and its sha256 where that was recorded."""

    end_byte: int = 0
    sha256: str | None = None


def unsound_sources(experiment: Experiment, folder: Path) -> tuple[Unsound, ...]:
    """Cited files of `folder` that are missing or differ, in the order in which they are cited."""
    found = ((file, _fault(folder / file, cited)) for file, cited in _cited_files(experiment).items())
    return tuple(Unsound(file, fault) for file, fault in found if fault is not None)


def _cited_files(experiment: Experiment) -> dict[str, _Cited]:
    files: dict[str, _Cited] = {}
    for source in _sources(experiment):
        if source.file is None:
            continue
        cited = files.setdefault(source.file.split("#")[0], _Cited())
        cited.end_byte = max(cited.end_byte, source.end_byte or 0)
        cited.sha256 = cited.sha256 or source.sha256
    for item in experiment.items.values():
        for step in item.evidence:
            if step.evidence is not None:
                files.setdefault(step.evidence, _Cited())
    return files


def _sources(experiment: Experiment) -> Iterator[Source]:
    for run in experiment.runs.values():
        yield from run.logs.values()
        yield from (counted.source for counted in (run.dataset, run.parameters) if counted is not None)
        yield from (seen.source for seen in run.transports if seen.source is not None)
    for row in experiment.rows.values():
        yield from chain.from_iterable(row.sources.values())


def _fault(path: Path, cited: _Cited) -> Fault | None:
    try:
        if not path.exists():
            return "missing"
        if not path.is_file():
            return "not a file"
        if path.stat().st_size < cited.end_byte:
            return "shorter than cited"
        if cited.sha256 is not None and _sha256(path) != cited.sha256:
            return "not the recorded sha256"
        if path.suffix == ".json":
            json.loads(path.read_bytes())
    except ValueError:
        return "not whole"
    except OSError:
        return "unreadable"
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
