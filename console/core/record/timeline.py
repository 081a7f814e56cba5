"""The one line that an event leaves in the timeline."""

from dataclasses import dataclass
from datetime import datetime

from console.core.plan.checklist import Verdict
from console.core.record import events as ev


@dataclass(frozen=True, slots=True)
class Line:
    at: datetime
    words: str
    level: str = "info"
    node: str | None = None
    run: str | None = None


def line_of(event: ev.Event) -> Line | None:
    """The timeline's line for `event`, or None for events too small for it."""
    found = _words(event)
    return Line(event.at, found[0], found[1], event.node, event.run) if found else None


def _words(event: ev.Event) -> tuple[str, str] | None:
    match event:
        case ev.ExperimentOpened():
            return f"experiment {event.name} opened", "info"
        case ev.ConsoleAttached():
            return f"console attached (pid {event.pid} on {event.host})", "info"
        case ev.LinkChanged():
            return _with_why(f"link {event.state}", event.why), _level(event.state != "down")
        case ev.ItemStarted():
            return f"checklist: {event.item} started", "info"
        case ev.ItemEnded():
            return f"checklist: {event.item} {event.state}", _level(event.state.good)
        case ev.WalkEnded():
            return f"checklist: {event.verdict}", _level(event.verdict is not Verdict.DOWN)
        case ev.DecisionAsked():
            return f"decision needed: {event.subject}", "warning"
        case ev.DecisionMade():
            return f"decided by {event.by}: {event.choice} ({event.reason})", "info"
        case ev.Degraded():
            return f"degraded: {event.reason}", "warning"
        case ev.HypothesesWritten():
            return "hypotheses written and sealed", "info"
        case ev.RunPlanned():
            return f"{event.config} planned (attempt {event.attempt})", "info"
        case ev.JobStarted():
            return f"job {'adopted' if event.adopted else 'started'}, pid {event.pid}", "info"
        case ev.RunEnded():
            return _with_why(f"run {event.outcome}", event.cause), _level(event.outcome == "done")
        case ev.FindingRaised():
            return event.finding.seen, "warning"
        case ev.ServiceChanged():
            return _with_why(f"service {event.state}", event.words), "info"
        case ev.Noted():
            return event.words, event.level
        case ev.ExperimentClosed():
            return _with_why(f"experiment {event.outcome}", event.words), "info"
        case _:
            return None


def _with_why(words: str, why: str) -> str:
    return f"{words}: {why}" if why else words


def _level(good: bool) -> str:
    return "info" if good else "warning"
