"""A cell of the record sheet while it is worked out: a value with its sources, or a blank with its reason."""

from dataclasses import dataclass
from typing import Protocol, Self

from console.core.reading.trainlog import TrainLog
from console.core.record.figures import Source


class Place(Protocol):
    """Anything that was read at a known place of a log."""

    @property
    def start_byte(self) -> int: ...
    @property
    def end_byte(self) -> int: ...
    @property
    def line(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """The log of one node: what was read from it, and the mirror it was read from."""

    log: TrainLog
    file: str
    """The mirror, relative to the experiment's folder."""
    sha256: str | None = None
    """Of the whole mirror; None while the log still grows."""

    def source(self, node: str, first: Place, words: str, last: Place | None = None) -> Source:
        """Where `first` stands in this log, or everything from `first` to `last`."""
        return Source(
            words=words,
            file=self.file,
            node=node,
            start_byte=first.start_byte,
            end_byte=(last or first).end_byte,
            line=first.line,
            sha256=self.sha256,
        )


@dataclass(frozen=True, slots=True)
class Cell:
    """Either a value with at least one source, or no value and a reason."""

    value: float | None
    sources: tuple[Source, ...]
    reason: str

    @classmethod
    def of(cls, value: float, *sources: Source) -> Self:
        return cls(value, sources, "")

    @classmethod
    def blank(cls, reason: str) -> Self:
        return cls(None, (), reason)


def computed(words: str, value: float, *inputs: Cell) -> Cell:
    """A value worked out from other cells: the calculation, then the sources of what went into it."""
    sources = [Source(words=words)]
    for cell in inputs:
        sources += [source for source in cell.sources if source not in sources]
    return Cell.of(value, *sources)
