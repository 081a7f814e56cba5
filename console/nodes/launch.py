"""The files of a run folder: what to run, and the supervisor that runs it."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from console.core.errors import InputError
from console.nodes import remote
from console.nodes.shell import exports
from console.nodes.text import is_secret_name, redact

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class JobPlan:
    """What to run. Variables of `env` whose name says secret reach the job but stay in no file."""

    experiment: str
    run: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    """None: the run folder. `~/` in front is the node's home folder."""
    versions: Mapping[str, str] = field(default_factory=dict)


def valid_name(name: str, what: str) -> str:
    """The name, fit for a folder and a unit. Raises InputError otherwise."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} can't be used as name of {what}",
            why="letters, digits, dot, underscore and hyphen, beginning with a letter or digit, at most 100",
        )
    return name


def checked(plan: JobPlan) -> JobPlan:
    """The plan, if a shell can carry it. Raises InputError."""
    valid_name(plan.experiment, "experiment")
    valid_name(plan.run, "run")
    if not plan.argv or not plan.argv[0]:
        raise InputError(f"run {plan.run}: there is nothing to run")
    for name in plan.env:
        if not _VARIABLE.fullmatch(name):
            raise InputError(f"run {plan.run}: {name!r} can't name an environment variable")
    if any("\0" in text for text in (*plan.argv, *plan.env.values(), plan.cwd or "")):
        raise InputError(f"run {plan.run}: a NUL character in its arguments or environment")
    return plan


def plan_text(plan: JobPlan) -> str:
    """plan.json: everything but secrets."""
    document = {
        "experiment": plan.experiment,
        "run": plan.run,
        "argv": [redact(word)[0] for word in plan.argv],
        "env": {name: redact(value)[0] for name, value in plan.env.items() if not is_secret_name(name)},
        "secret_env": sorted(name for name in plan.env if is_secret_name(name)),
        "cwd": plan.cwd,
        "versions": dict(plan.versions),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def launch_text(plan: JobPlan) -> str:
    """launch.sh: the supervisor, with the plan's words in it."""
    variables = exports({name: value for name, value in plan.env.items() if not is_secret_name(name)})
    words = " ".join(shlex.quote(word) for word in plan.argv)
    cwd = plan.cwd or ""
    place = shlex.quote(cwd) if cwd else '"$dir"'
    if cwd.startswith("~/"):
        place = f'"$HOME"/{shlex.quote(cwd[2:])}'
    values = {"@EXPORTS@\n": variables, "@CWD@": place, "@ARGV@": words}
    return re.sub("@EXPORTS@\n|@CWD@|@ARGV@", lambda found: values[found.group()], remote.source("launch.sh"))


def secrets_text(plan: JobPlan) -> str:
    """Sourced once by the supervisor and removed before the job starts."""
    return exports({name: value for name, value in plan.env.items() if is_secret_name(name)})
