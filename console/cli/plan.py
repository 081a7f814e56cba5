"""`lab plan`: what would run, what it should cost, and what is known to go wrong. Changes nothing."""

import json
from dataclasses import asdict
from typing import Any

from console.cli.files import read_lab, unfilled_places
from console.cli.options import Json, Only, ProfileName, WindowLength, chosen, parse_window
from console.cli.plan_text import plan_lines
from console.core.ledger.classic import classic_account
from console.core.ledger.of_lab import architecture_of, prediction_of
from console.core.plan.align import CHECKS
from console.core.plan.checklist import parse_checklist
from console.core.plan.launch import check_fit, check_matrices
from console.core.plan.matrix import Configuration, Matrix, effective_settings
from console.core.plan.profile import Profile
from console.engine.duration import BASIS, LabTime, RunTime, lab_time
from console.engine.forecast import forecast, lint_launches


def plan(
    profile: ProfileName,
    as_json: Json = False,
    only: Only = "",
    window: WindowLength = "",
) -> int:
    """Prerequisites, commands per node, ledger, time and lint; exit 1 when lint finds an error."""
    files = read_lab(profile)
    lab = files.profile
    check_matrices(lab)
    configs = [lab.configuration(name) for name in chosen(only)] or list(lab.matrix.configurations)
    checklist = parse_checklist(files.checklist_text, file=lab.checklist)
    time = lab_time(lab, configs, checklist, parse_window(window))
    document: dict[str, Any] = {
        "profile": lab.name,
        "title": lab.title,
        "unfilled": unfilled_places(files),
        "prerequisites": _prerequisites(lab),
        "ledger": _ledger(lab),
        "configurations": [
            _configuration(lab, config, run) for config, run in zip(configs, time.runs, strict=True)
        ],
        "degraded_path": _ids(lab.degraded_matrix),
        "time": _time(time),
    }
    if as_json:
        print(json.dumps(document, ensure_ascii=False, indent=1))
    else:
        print("\n".join(plan_lines(document)))
    errors = [f for c in document["configurations"] for f in c["lint"] if f["severity"] == "error"]
    return 1 if errors else 0


def _prerequisites(lab: Profile) -> list[dict[str, Any]]:
    blocking = set(lab.policies.prerequisite_blocks)
    return [{"name": name, "words": words, "blocks": name in blocking} for name, words in CHECKS.items()]


def _ledger(lab: Profile) -> dict[str, Any]:
    architecture = architecture_of(lab.model)
    if architecture is None:
        return {"known": False, "why": "the model's shapes are in no catalogue; give model.name"}
    total = architecture.parameters.total
    return {
        "known": True,
        "model": architecture.name,
        "parameters": total,
        "classic_full_static_bytes": classic_account(total).static_bytes,
        "device": lab.device,
    }


def _configuration(lab: Profile, config: Configuration, time: RunTime) -> dict[str, Any]:
    launches = forecast(lab, config)
    settings = effective_settings(lab.settings, config)
    return {
        "id": config.id,
        "title": config.title,
        "mode": config.mode,
        "varies": config.varies,
        "parallel": config.parallel,
        "global_batch": settings.global_batch,
        "micro_batch": settings.micro_batch,
        "data_parallel": config.data_parallel,
        "micro_batches": check_fit(config, settings),
        "expect": config.expect,
        "paper": _paper(lab, config),
        "time": asdict(time),
        "nodes": [
            {
                "node": launch.node,
                "rank": launch.rank,
                "shows_log": launch.shows_log,
                "env": launch.env,
                "argv": list(launch.argv),
            }
            for launch in launches
        ],
        "lint": [finding.model_dump() for finding in lint_launches(lab, config, launches)],
    }


def _paper(lab: Profile, config: Configuration) -> dict[str, Any] | None:
    column = prediction_of(lab, config)
    if column.memory_bytes.number is None:
        return None
    return {
        name: column.value(name).model_dump()
        for name in ("memory_bytes", "step_seconds", "tokens_per_second", "mfu")
    } | {"fit": column.fit, "fit_reason": column.fit_reason}


def _ids(matrix: Matrix | None) -> list[str]:
    return [config.id for config in matrix.configurations] if matrix else []


def _time(time: LabTime) -> dict[str, Any]:
    return asdict(time) | {"fit": time.fit, "basis": BASIS}
