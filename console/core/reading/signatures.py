"""Line patterns that mean something: data of `checklists/diagnosis.yaml`, compiled for the reader."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """`contains`: literals, one of which every matching line has; they make the search cheap."""

    id: str
    contains: tuple[bytes, ...]
    pattern: re.Pattern[str]
