"""The Docker engine through its command line, and through its socket where a look must be cheap."""

from __future__ import annotations

import json
import os
import socket
from typing import Sequence

from . import commands, processes
from .answers import Doc
from .kinds import View

_SOCKET = "/var/run/docker.sock"


def inspect(docker: Sequence[str], name: str) -> Doc | None:
    """`docker inspect` of a container; None when there is none of that name. Raises `Failed`."""
    status, text, errors = commands.attempt([*docker, "inspect", "--type", "container", name], timeout=20)
    if status == 0:
        found: Doc = json.loads(text)[0]
        return found
    if "no such container" in errors.lower():
        return None
    raise commands.Failed(f"docker inspect: {errors.strip()[-300:]}")


def view(found: Doc | None) -> View:
    if found is None:
        return View(exists=False, status="absent")
    state = found.get("State", {})
    restarting = bool(state.get("Restarting"))
    return View(
        exists=True,
        running=bool(state.get("Running")) and not restarting and not state.get("Paused"),
        status=str(state.get("Status", "")),
        exit_code=state.get("ExitCode"),
        restart_count=found.get("RestartCount"),
        marks=(str(found.get("Id", "")), str(state.get("StartedAt", ""))),
        looping=restarting,
        detail=found,
    )


def container_pids(docker: Sequence[str], found: Doc) -> list[int]:
    """Processes of a running container, as the host numbers them."""
    root = int(found.get("State", {}).get("Pid") or 0)
    if not root:
        return []
    pids = processes.descendants(root)
    try:
        listing = commands.output([*docker, "top", str(found["Id"]), "-eo", "pid"], timeout=20)
    except commands.Failed:
        return sorted(pids)
    return sorted(pids | {int(word) for word in listing.split() if word.isdigit()})


def image_digest(docker: Sequence[str], image: str) -> str | None:
    """The image's registry digest, else its local id; None when the image is gone."""
    try:
        text = commands.output([*docker, "image", "inspect", image], timeout=20)
    except commands.Failed:
        return None
    found = json.loads(text)[0]
    digests = found.get("RepoDigests") or []
    return str(digests[0] if digests else found.get("Id"))


def restart_policy(found: Doc) -> str:
    policy = found.get("HostConfig", {}).get("RestartPolicy") or {}
    name = str(policy.get("Name") or "no")
    count = int(policy.get("MaximumRetryCount") or 0)
    return f"{name}:{count}" if name == "on-failure" and count else name


def logs(docker: Sequence[str], name: str, since: float, limit: int) -> str:
    """Both streams of a container's log since that time, its last `limit` bytes."""
    arguments = [*docker, "logs", "--tail", "4000"]
    if since > 0:
        arguments += ["--since", f"{since:.3f}"]
    return commands.output([*arguments, name], timeout=30, merged=True)[-limit:]


def peek(docker: Sequence[str], name: str) -> bool | None:
    """Whether the container runs, asked of the engine's socket; None when the socket can't be used."""
    path = _socket_path(docker)
    if path is None:
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(2.0)
            connection.connect(path)
            connection.sendall(f"GET /containers/{name}/json HTTP/1.0\r\nHost: docker\r\n\r\n".encode())
            parts = []
            while True:
                part = connection.recv(65536)
                if not part:
                    break
                parts.append(part)
    except OSError:
        return None
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    if b" 404 " in head.split(b"\r\n", 1)[0]:
        return False
    try:
        state = json.loads(body)["State"]
    except (ValueError, KeyError):
        return None
    return bool(state.get("Running")) or bool(state.get("Restarting"))


def _socket_path(docker: Sequence[str]) -> str | None:
    words = list(docker)
    address = os.environ.get("DOCKER_HOST", "")
    for index, word in enumerate(words[:-1]):
        if word in ("-H", "--host"):
            address = words[index + 1]
    if address.startswith("unix://"):
        return address[7:]
    return _SOCKET if not address and os.access(_SOCKET, os.R_OK | os.W_OK) else None
