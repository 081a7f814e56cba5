"""The document of `record.json`: everything about an experiment that a reader may want to compute with."""

from typing import Any

from console.core.record.acceptance import Lang, criteria, verdict
from console.core.record.events import StepEnded
from console.core.record.experiment import Experiment
from console.core.record.gaps import degradation, rows_in_order, without_row
from console.core.record.views import RunView
from console.report.expectations import expectations
from console.report.predicted import network_facts, prediction_cells
from console.report.redaction import Redactor

SCHEMA = 1


def record_document(experiment: Experiment, lang: Lang = "en") -> dict[str, Any]:
    """Plain JSON values, secrets masked, no NaN. `lang` is that of proofs and verdict."""
    redactor = Redactor()
    document = {
        "schema": SCHEMA,
        "experiment": experiment.name,
        "title": experiment.profile.title,
        "console_version": experiment.console_version,
        "opened_at": experiment.opened_at.isoformat(),
        "last_event_at": experiment.last_at.isoformat(),
        "outcome": experiment.outcome,
        "verdict": verdict(experiment, lang),
        "acceptance": _acceptance(experiment, lang),
        "rows": _rows(experiment),
        "without_row": {config: why for config, (why, _) in without_row(experiment).items()},
        "environment": _environment(experiment),
        "plan": _plan(experiment),
        "hypotheses": _hypotheses(experiment),
        "checklist": _checklist(experiment),
        "decisions": _decisions(experiment),
        "runs": [_run(run) for run in experiment.runs.values()],
        "findings": _findings(experiment),
        "service": _service(experiment),
    }
    plain: dict[str, Any] = redactor.plain(document)
    return plain | {"redactions": redactor.count}


def _rows(experiment: Experiment) -> list[dict[str, Any]]:
    cells = prediction_cells(experiment)
    return [
        row.model_dump(mode="python") | {"prediction": cells[row.id]} for row in rows_in_order(experiment)
    ]


def _acceptance(experiment: Experiment, lang: Lang) -> list[dict[str, Any]]:
    return [
        {
            "number": one.number,
            "text": one.text,
            "text_zh": one.text_zh,
            "met": one.met,
            "proof": one.proof,
            "missing": one.missing,
        }
        for one in criteria(experiment, lang)
    ]


def _environment(experiment: Experiment) -> dict[str, Any]:
    return {
        "embedded": experiment.profile.embedded,
        "degraded": degradation(experiment),
        "checklist_verdict": str(experiment.verdict) if experiment.verdict else None,
        "nodes": {name: dict(node.facts) for name, node in experiment.nodes.items()},
        "network": network_facts(experiment),
    }


def _plan(experiment: Experiment) -> dict[str, Any]:
    profile = experiment.profile
    return {
        "profile": profile.name,
        "model": profile.model.model_dump(mode="json"),
        "dataset": profile.dataset.model_dump(mode="json"),
        "settings": profile.settings.model_dump(mode="json"),
        "configurations": [
            profile.configuration(config).model_dump(mode="json") for config in experiment.configurations
        ],
        "peaks": [peak.model_dump(mode="json") for peak in profile.peaks],
        "baselines": dict(profile.baselines),
        "warmup_steps": profile.warmup_steps,
    }


def _hypotheses(experiment: Experiment) -> dict[str, Any]:
    at = experiment.hypotheses_at
    return {
        "written_at": at.isoformat() if at else None,
        "sha256": experiment.hypotheses_sha256,
        "texts": [
            {
                "config": one.config,
                "text": one.text,
                "outcome": one.outcome,
                "against": one.against or None,
                "step_ratio": one.step_ratio,
                "tokens_ratio": one.tokens_ratio,
            }
            for one in expectations(experiment)
        ],
    }


def _checklist(experiment: Experiment) -> list[dict[str, Any]]:
    items = []
    for item in experiment.checklist.items:
        view = experiment.items[item.id]
        items.append(
            {
                "number": item.number,
                "id": item.id,
                "title": item.title,
                "title_zh": item.title_zh,
                "state": str(view.state),
                "attempt": view.attempt,
                "seconds": view.seconds,
                "reason": view.reason,
                "closes": list(view.closes),
                "steps": [_step(step) for step in view.evidence],
            }
        )
    return items


def _step(step: StepEnded) -> dict[str, Any]:
    return {
        "step": step.step,
        "node": step.node,
        "command": step.command,
        "outcome": step.outcome,
        "exit_status": step.exit_status,
        "seconds": step.seconds,
        "judgements": [judgement.model_dump(mode="json") for judgement in step.judgements],
        "error": step.error,
        "evidence": step.evidence,
    }


def _decisions(experiment: Experiment) -> list[dict[str, Any]]:
    return [
        {
            "id": one.id,
            "asked_at": one.asked_at.isoformat(),
            "subject": one.subject,
            "what_happened": one.what_happened,
            "raw_error": one.raw_error,
            "choice": one.choice,
            "reason": one.reason,
            "by": one.by or None,
            "made_at": one.made_at.isoformat() if one.made_at else None,
        }
        for one in experiment.decisions.values()
    ]


def _run(run: RunView) -> dict[str, Any]:
    """Commands without environments: those may name secrets."""
    return {
        "id": run.id,
        "config": run.config,
        "attempt": run.attempt,
        "purpose": run.purpose,
        "planned_at": run.planned_at.isoformat(),
        "ended_at": run.ended_at.isoformat() if run.ended_at else None,
        "outcome": run.outcome,
        "cause": run.cause,
        "log_node": run.log_node,
        "commands": {launch.node: list(launch.argv) for launch in run.launches},
        "logs": {node: source.model_dump(mode="json") for node, source in run.logs.items()},
    }


def _findings(experiment: Experiment) -> list[dict[str, Any]]:
    return [
        {
            "id": active.finding.id,
            "severity": active.finding.severity,
            "title": active.finding.title,
            "title_zh": active.finding.title_zh or None,
            "seen": active.finding.seen,
            "seen_zh": active.finding.seen_zh or None,
            "first_action": active.finding.first_action,
            "first_action_zh": active.finding.first_action_zh or None,
            "node": active.node,
            "run": active.run,
            "raised_at": active.raised_at.isoformat(),
            "cleared_at": active.cleared_at.isoformat() if active.cleared_at else None,
        }
        for active in experiment.findings
    ]


def _service(experiment: Experiment) -> dict[str, Any]:
    service = experiment.service
    return {
        "kind": experiment.profile.service.kind,
        "name": experiment.profile.service.name,
        "state": service.state,
        "since": service.since.isoformat() if service.since else None,
        "words": service.words,
        "was_stopped": service.was_stopped,
    }
