"""Line patterns that mean something: data of `checklists/diagnosis.yaml`, compiled for the reader."""

import re
from dataclasses import dataclass

from console.core.reading.facts import Symptom
from console.core.reading.line_heads import without_bar
from console.core.reading.lines import excerpt
from console.core.reading.tracebacks import rank_of


@dataclass(frozen=True, slots=True)
class Signature:
    """`contains`: literals, one of which every matching line has; they make the search cheap."""

    id: str
    contains: tuple[bytes, ...]
    pattern: re.Pattern[str]

    def symptom(self, text: str, place: dict[str, int]) -> Symptom | None:
        match = self.pattern.search(text)
        if match is None:
            return None
        groups = tuple(excerpt(group or "", 200) for group in match.groups())
        text = without_bar(text, match.start())
        return Symptom(**place, signature=self.id, text=excerpt(text), groups=groups, rank=rank_of(text)[0])
