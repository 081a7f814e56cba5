"""The single next action, from the state alone."""

from datetime import datetime
from itertools import pairwise
from statistics import median

from console.core.plan.checklist import Verdict
from console.core.record.experiment import Experiment
from console.core.record.views import RunView, StepView
from console.tui import figures
from console.tui.words import Words


def next_action(
    experiment: Experiment, now: datetime, words: Words, *, read_only: bool
) -> tuple[str, str | None]:
    """What comes next in words, and the id of the action that brings it about, if a person has to."""
    if decision := experiment.open_decision:
        if read_only:
            return words("next.watch_decide", subject=decision.subject), None
        return words("next.decide", subject=decision.subject), "decide"
    if experiment.outcome:
        return words(f"next.{experiment.outcome}"), None
    if hypotheses_due(experiment) and not read_only:
        return words("next.hypotheses"), "hypotheses"
    if away := [node for node in experiment.nodes.values() if node.link == "down"]:
        since = max(figures.since(node.link_since, now) for node in away if node.link_since)
        names = ", ".join(node.name for node in away)
        return words("next.no_contact", nodes=names, time=figures.span(since)), None
    if experiment.service.state in ("stopping", "draining", "restoring"):
        return words("next.service", state=words.state(experiment.service.state)), None
    if run := experiment.current_run:
        return _running(experiment, run, words), None
    for item in experiment.checklist.items:
        if experiment.items[item.id].state == "running":
            title = item.title_zh if words.lang == "zh" else item.title
            return words("next.item", number=item.number, title=title), None
    if experiment.walk_started is None:
        return words("next.before"), None
    if experiment.service.owed and all(experiment.runs_of(c) for c in experiment.configurations):
        return words("next.restore_first"), None if read_only else "restore"
    return words("next.nothing"), None


def hypotheses_due(experiment: Experiment) -> bool:
    """It is settled what will run, no run of the matrix has been planned, and nothing was written yet."""
    return (
        experiment.hypotheses_at is None
        and _path_settled(experiment)
        and experiment.outcome is None
        and not any(run.purpose == "matrix" for run in experiment.runs.values())
    )


def _path_settled(experiment: Experiment) -> bool:
    """The checklist is done, and where the main line is down it was decided what runs instead."""
    if experiment.verdict is not Verdict.DOWN:
        return experiment.verdict is not None
    decided = experiment.decisions.get("walk")
    choice = decided.choice if decided else None
    return choice == "go on" or (choice == "degrade" and experiment.degraded is not None)


def seconds_left(run: RunView) -> float | None:
    """Time to the run's last step at the median pace of its latest steps; None while too few are known."""
    last = run.last_step
    if last is None or last.total is None or len(run.steps) < 3:
        return None
    latest = run.steps[-21:]
    pace = median(
        _seconds_between(before, after) / max(1, after.step - before.step)
        for before, after in pairwise(latest)
    )
    return pace * max(0, last.total - last.step)


def _seconds_between(before: StepView, after: StepView) -> float:
    """By the trainer's own clock when the log tells it: lines may reach the console many at a time."""
    if before.elapsed_seconds is not None and after.elapsed_seconds is not None:
        return max(0.0, after.elapsed_seconds - before.elapsed_seconds)
    return (after.at - before.at).total_seconds()


def _running(experiment: Experiment, run: RunView, words: Words) -> str:
    last = run.last_step
    if last is None:
        return words("next.starting", run=run.config)
    parts = [words("next.running", run=run.config, step=f"{last.step}/{last.total or '?'}")]
    if (left := seconds_left(run)) is not None:
        parts.append(words("next.about", time=figures.span(left)))
    ids = experiment.configurations
    following = ids[ids.index(run.config) + 1 :] if run.purpose == "matrix" and run.config in ids else ()
    if following:
        parts.append(words("next.then", config=following[0]))
    return ", ".join(parts)
