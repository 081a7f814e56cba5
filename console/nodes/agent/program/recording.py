"""`inspect`: everything about the service, noted before it is touched."""

from __future__ import annotations

import platform
import re
import time

from . import commands, gpu, memory, processes, web
from .answers import Doc, Refused
from .folder import boot_id
from .kinds import kind_of
from .masking import mask_document


def inspect(request: Doc) -> Doc:
    """The service record.

    Raises `Refused` for a pattern that can't be used, a service that does not exist, and one that should
    answer and does not.
    """
    spec = request["spec"]
    _require_pattern(spec["engine_pattern"])
    kind = kind_of(spec)
    try:
        view = kind.look()
        if not view.exists:
            raise Refused(
                f"there is no {_named(spec)} on this node",
                kind="input",
                next_step="correct the service in the profile, or start it once by hand",
            )
        described = kind.describe(view)
        command_lines = kind.command_lines(described)
        identities = processes.identities(kind.pids(view)) if view.running else []
    except commands.Failed as trouble:
        raise Refused(
            f"{_named(spec)} can't be inspected",
            why=str(trouble),
            next_step="make the command work for this user",
        ) from None
    described = mask_document(described)
    record: Doc = {
        "kind": spec["kind"],
        "name": spec["name"],
        "at": time.time(),
        "boot_id": boot_id(),
        "running": view.running,
        "can_be_restored": described.get("refusal") is None,
        "refusal": described.get("refusal"),
        "refusal_next_step": described.get("refusal_next_step"),
        "warnings": described["warnings"],
        "owner": described["owner"],
        "image": described.get("image"),
        "image_digest": described.get("image_digest"),
        "restart_policy": described.get("restart_policy"),
        "restart_count": described.get("restart_count"),
        "auto_remove": described.get("auto_remove"),
        "compose_labels": described.get("compose_labels", {}),
        "processes": identities,
        "memory": memory.reading(),
        "driver_version": gpu.driver()[0],
        "inspect": described["inspect"],
        "commands": command_lines,
    }
    record.update(_interface(request, view.running))
    return record


def _require_pattern(pattern: str) -> None:
    """Raises `Refused` for a pattern that only the console's newer Python understands."""
    try:
        re.compile(pattern)
    except re.error as trouble:
        raise Refused(
            f"service.engine_pattern {pattern!r} is not a regular expression on this node",
            why=f"{trouble}; its Python is {platform.python_version()}",
            kind="input",
            next_step="correct it in the profile",
        ) from None


def _named(spec: Doc) -> str:
    kind = spec["kind"]
    if kind == "docker":
        return f"container {spec['container']}"
    if kind == "compose":
        return f"compose service {spec['project']}/{spec['service']}"
    return f"unit {spec['unit']}" if kind == "systemd" else f"service {spec['name']}"


def _interface(request: Doc, running: bool) -> Doc:
    """What the HTTP interface says: models, counters, the reference completion."""
    nothing: Doc = {"model_ids": [], "requests": None, "reference": None}
    if not request["answers"]:
        return dict(nothing, reference_missing="this node does not answer requests")
    if not running:
        return dict(nothing, reference_missing="the service was not running")
    spec = request["spec"]
    service = web.Web(spec["base_url"], web.api_key(request))
    try:
        status, _ = service.request("GET", "/health", timeout=10)
        models = service.model_ids()
    except web.NoAnswer as trouble:
        raise Refused(
            f"{spec['name']} runs but does not answer at {spec['base_url']}",
            why=str(trouble),
            next_step="correct service.base_url in the profile, or wait until the service is ready",
        ) from None
    if status != 200:
        raise Refused(
            f"{spec['name']} is not healthy before anything was touched: /health says {status}",
            next_step="bring the service into order first, so that it can be given back as it was",
        )
    counters = _counters(service)
    reference, missing = (None, "not asked for")
    if request["reference"]:
        reference, missing = _reference(service, spec, models, counters)
    return {
        "model_ids": models,
        "requests": counters,
        "reference": reference,
        "reference_missing": None if reference else missing,
    }


def _counters(service: web.Web) -> Doc | None:
    try:
        return service.counters()
    except web.NoAnswer:
        return None


def model_to_ask(spec: Doc, models: list[str]) -> str | None:
    return spec.get("model_id") or (models[0] if models else None)


def _reference(
    service: web.Web, spec: Doc, models: list[str], counters: Doc | None
) -> tuple[Doc | None, str]:
    busy = web.in_flight(counters) if counters else None
    if busy:
        return None, f"{busy:.0f} requests were in flight, so no reference was sent among them"
    model = model_to_ask(spec, models)
    if model is None:
        return None, "the service lists no model"
    canary = spec["canary"]
    try:
        answer = service.completion(model, canary, tokens=canary["max_tokens"])
        speeds = [service.completion(model, canary, tokens=canary["speed_tokens"]) for _ in range(2)]
    except web.NoAnswer as trouble:
        return None, str(trouble)
    fastest = max(speeds, key=lambda one: one["tokens_per_second"] or 0.0)
    return {
        "text": answer["text"],
        "tokens": fastest["tokens"],
        "seconds": fastest["seconds"],
        "tokens_per_second": fastest["tokens_per_second"],
    }, ""
