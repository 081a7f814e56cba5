"""One call of the agent: the request goes in over stdin, one JSON document comes back, made safe."""

import json
import os
from typing import Any

from console.core.errors import AnswerUnreadable, InputError, ScriptFailed, ServiceError
from console.core.plan.service import BorrowedService, NoService
from console.nodes.agent.bundle import Bundle, bundle
from console.nodes.agent.runner import Answered, Runner
from console.nodes.text import clean

_NOT_INSTALLED = 98
_CALL = f'd=~/.lab/agent/"$1"; [ -r "$d/__main__.py" ] || exit {_NOT_INSTALLED}; exec python3 -I -S "$d" "$2"'
# Unpacked, so that python3 compiles it once and not at every call; moved into place in one step.
_INSTALL = """\
set -e
umask 077
d=~/.lab/agent/"$1" t=~/.lab/agent/"$1.$$"
trap 'rm -rf "$t" "$t.zip"' EXIT
mkdir -p ~/.lab/agent
cat >"$t.zip"
[ "$(wc -c <"$t.zip")" -eq "$2" ]
python3 -I -S -m zipfile -e "$t.zip" "$t"
mv -T "$t" "$d" 2>/dev/null || :
[ -r "$d/__main__.py" ]
"""
_REFUSED = 3
_DISK_FULL = ("No space left on device", "Disk quota exceeded")


async def call(node: Runner, subcommand: str, request: dict[str, Any], *, timeout: float) -> dict[str, Any]:
    """The answer to one request; the program is brought to the node when it is not there yet.

    Raises `InputError` or `ServiceError` for a refusal, `NodeError` for trouble on the way or on the node.
    """
    packed = bundle()
    data = json.dumps(request).encode()
    answer = await node.run(_CALL, args=(packed.name, subcommand), timeout=timeout, stdin=data, check=False)
    if answer.exit_status == _NOT_INSTALLED:
        await _install(node, packed)
        answer = await node.run(
            _CALL, args=(packed.name, subcommand), timeout=timeout, stdin=data, check=False
        )
    return _read(node, subcommand, answer)


async def _install(node: Runner, packed: Bundle) -> None:
    """Bring the program to the node. Raises `ScriptFailed` and what `run` raises."""
    size = str(len(packed.data))
    answer = await node.run(_INSTALL, args=(packed.name, size), timeout=60, stdin=packed.data, check=False)
    if answer.exit_status == 0:
        return
    lines = clean(answer.stderr).strip().splitlines() or [f"exit status {answer.exit_status}"]
    full = next((line for line in lines if any(sign in line for sign in _DISK_FULL)), None)
    raise ScriptFailed(
        node.name,
        f"{'no space left on the disk of' if full else 'the guard could not be unpacked into'} ~/.lab/agent",
        exit_status=answer.exit_status if answer.exit_status is not None else -1,
        why=f"the guard is unpacked there before anything is stopped: {(full or lines[-1])[-300:]}",
        next_step="free disk space for this user on the node (see `df -h ~`), then start again"
        if full
        else "see that ~/.lab can be written and python3 (3.8 or later) is on the node",
    )


def _read(node: Runner, subcommand: str, answer: Answered) -> dict[str, Any]:
    if answer.exit_status not in (0, _REFUSED):
        lines = clean(answer.stderr).strip().splitlines()
        raise ScriptFailed(
            node.name,
            f"the agent's {subcommand} ended with {answer.exit_status}",
            exit_status=answer.exit_status if answer.exit_status is not None else -1,
            why=lines[-1][:400] if lines else "",
            next_step="python3 (3.8 or later) must be on the node" if answer.exit_status == 127 else "",
        )
    try:
        document = json.loads(answer.stdout)
        content = document["answer"] if answer.exit_status == 0 else document["refused"]
    except (ValueError, KeyError, TypeError) as trouble:
        raise AnswerUnreadable(
            node.name, f"the agent's answer to {subcommand} can't be read", why=str(trouble)
        ) from trouble
    safe: dict[str, Any] = _safe(content)
    if answer.exit_status == 0:
        return safe
    error = InputError if safe.get("kind") == "input" else ServiceError
    raise error(safe["what"], why=safe["why"], next_step=safe["next"], node=node.name)


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_safe(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): _safe(item) for key, item in value.items()}
    return value


def service_part(service: NoService | BorrowedService) -> dict[str, Any]:
    """What a request says about the service; the API key travels in it and is written down nowhere."""
    if isinstance(service, NoService):
        return {"spec": None}
    key = os.environ.get(service.api_key_env) if service.api_key_env else None
    return {"spec": service.model_dump(mode="json", exclude={"overrides"}), "api_key": key}
