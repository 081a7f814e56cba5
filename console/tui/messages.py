"""What has happened, told to the widget that draws it. Names are in the past tense; one handler owns each."""

from dataclasses import dataclass

from textual.message import Message

from console.core.errors import LabError


class ExperimentChanged(Message):
    """At least one event arrived since the last one of these was handled."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, ExperimentChanged)


@dataclass
class WishGranted(Message):
    """The session has taken a wish (an answer, a stop, a restore) into the journal."""

    wish: str


@dataclass
class WishRefused(Message):
    """The session would not take a wish."""

    wish: str
    error: LabError


@dataclass
class WorkFailed(Message):
    """What conducts the experiment has ended with an error; the screens stay for reading."""

    error: LabError


@dataclass
class LogAdvanced(Message):
    """The log view has drawn further lines of its mirror."""

    lines: int
    following: bool

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, LogAdvanced)


@dataclass
class SearchEnded(Message):
    """The search in a log has come to a line with the needle, or has found none in the whole log."""

    needle: str
    found: bool


@dataclass
class FilterGivenUp(Message):
    """The expression took too long on a line of the log; all lines are shown again."""

    line: str


@dataclass
class CellChosen(Message):
    """A number of the record sheet was selected."""

    row: str
    column: str
