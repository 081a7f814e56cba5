"""The shape of a watching function: what `watch` rules name.

Each takes the situation, the rule's parameters and the time, and returns what it sees: one `Seen` per node
concerned, or nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from console.core.reading.facts import LogFact
from console.core.reading.situation import Situation

Parameters = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Seen:
    """`values` fill the rule's `seen` text; `first_suspect`, if set, goes before the rule's own."""

    values: Mapping[str, object] = field(default_factory=dict)
    node: str | None = None
    fact: LogFact | None = None
    first_suspect: str | None = None


Watcher = Callable[[Situation, Parameters, float], Sequence[Seen]]
