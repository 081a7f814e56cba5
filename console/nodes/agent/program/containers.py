"""The lab's own containers, known by their label; a container of the service never carries it."""

from __future__ import annotations

import json
from typing import Sequence

from . import commands
from .answers import Doc

LABEL = "lab.run"


def of_lab(docker: Sequence[str], experiment: str) -> list[str]:
    """Ids of running containers labelled `lab.run=<experiment>/<run>`; empty where there is no docker."""
    try:
        listing = commands.output(
            [*docker, "ps", "-q", "--no-trunc", "--filter", f"label={LABEL}"], timeout=20
        )
        names = listing.split()
        found: list[Doc] = (
            json.loads(commands.output([*docker, "inspect", *names], timeout=20)) if names else []
        )
    except commands.Failed:
        return []
    return [
        str(one["Id"])
        for one in found
        if str((one["Config"].get("Labels") or {}).get(LABEL, "")).startswith(f"{experiment}/")
    ]


def end_of_lab(docker: Sequence[str], experiment: str, grace_seconds: float) -> list[str]:
    """Stop them, each with its grace; the ids that were stopped."""
    names = of_lab(docker, experiment)
    if names:
        commands.attempt([*docker, "stop", "-t", str(int(grace_seconds)), *names], timeout=grace_seconds + 30)
    return names
