"""`lab plan`: what would run, what it should cost, and what is known to go wrong. Changes nothing."""

import json
import shlex
from typing import Any

from console.cli.files import read_lab
from console.cli.options import Json, Only, ProfileName, chosen
from console.core.ledger.classic import classic_account
from console.core.ledger.of_lab import architecture_of, prediction_of
from console.core.plan.align import CHECKS
from console.core.plan.launch import check_fit
from console.core.plan.matrix import Configuration, Matrix, effective_settings, guard
from console.core.plan.profile import Profile
from console.engine.forecast import forecast, lint_launches

GIB = 2**30


def plan(
    profile: ProfileName,
    as_json: Json = False,
    only: Only = "",
) -> int:
    """Prerequisites, commands per node, ledger and lint; exit 1 when lint finds an error."""
    files = read_lab(profile)
    lab = files.profile
    for matrix in (lab.matrix, lab.degraded_matrix):
        if matrix is not None:
            guard(matrix, lab.settings)
    configs = [lab.configuration(name) for name in chosen(only)] or list(lab.matrix.configurations)
    document: dict[str, Any] = {
        "profile": lab.name,
        "title": lab.title,
        "prerequisites": _prerequisites(lab),
        "ledger": _ledger(lab),
        "configurations": [_configuration(lab, config) for config in configs],
        "degraded_path": _ids(lab.degraded_matrix),
    }
    if as_json:
        print(json.dumps(document, ensure_ascii=False, indent=1))
    else:
        _print(document)
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


def _configuration(lab: Profile, config: Configuration) -> dict[str, Any]:
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


def _print(document: dict[str, Any]) -> None:
    print(f"{document['profile']}: {document['title']}\n")
    print("prerequisites, checked before anything is stopped")
    for check in document["prerequisites"]:
        print(f"  {'blocks ' if check['blocks'] else 'warns  '} {check['words']}")
    _print_ledger(document["ledger"])
    for config in document["configurations"]:
        _print_configuration(config)
    if document["degraded_path"]:
        print(f"\nif the main line is down: {', '.join(document['degraded_path'])}")


def _print_ledger(ledger: dict[str, Any]) -> None:
    if not ledger["known"]:
        print(f"\nledger: {ledger['why']}")
        return
    static = ledger["classic_full_static_bytes"] / 1e9
    words = (
        f"\nledger: {ledger['model']}, {ledger['parameters']:,} parameters; full training by the 16 B rule "
    )
    print(words + (f"{static:.0f} GB" if static >= 1 else f"{static * 1e3:.0f} MB"))
    if ledger["device"] is None:
        print("  no device in the profile: no paper figures for memory and step time")


def _print_configuration(config: dict[str, Any]) -> None:
    batch = (
        f"global {config['global_batch']} = micro {config['micro_batch']} × DP {config['data_parallel']} "
        f"× {config['micro_batches']}"
    )
    how = f"{config['mode']}, {config['parallel']}; varies {config['varies']}"
    print(f"\n{config['id']}  {config['title']}  [{how}]")
    print(f"  {batch}")
    if config["expect"]:
        print(f"  expected: {config['expect']}")
    paper = config["paper"]
    if paper:
        memory, step = paper["memory_bytes"], paper["step_seconds"]
        print(f"  paper: {_banded(memory, GIB, 1)} GiB, {_banded(step, 1, 2)} s/it")
        print(f"    {paper['fit']}: {paper['fit_reason']}")
    for node in config["nodes"]:
        mark = " (its log is shown)" if node["shows_log"] else ""
        print(f"  on {node['node']}, rank {node['rank']}{mark}:")
        print("    " + " ".join(f"{key}={shlex.quote(value)}" for key, value in node["env"].items()) + " \\")
        print("    " + shlex.join(node["argv"]))
    for finding in config["lint"]:
        print(f"  {finding['severity']}: {finding['what']}")
        print(f"    if ignored: {finding['if_ignored']}\n    remedy: {finding['remedy']}")


def _banded(value: dict[str, Any], unit: float, digits: int) -> str:
    number, low, high = (value[part] / unit for part in ("number", "low", "high"))
    return f"{number:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
