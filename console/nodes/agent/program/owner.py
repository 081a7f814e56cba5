"""Who else starts this service: compose, swarm, Kubernetes, a systemd unit, a keepalive."""

from __future__ import annotations

import contextlib
import glob
import os
import re

from . import commands, processes
from .answers import Doc
from .masking import mask_text
from .memory import read_text

_UNIT_FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/lib/systemd/system",
)
_CRON_FILES = ("/etc/crontab", "/etc/cron.d/*", "/etc/cron.hourly/*")


def none() -> Doc:
    return {"kind": "none", "name": "", "evidence": ""}


def of_container(found: Doc) -> Doc:
    """The owner of a container: by its labels, else by a unit or a cron entry that names it."""
    labels = found.get("Config", {}).get("Labels") or {}
    for label, kind in (
        ("com.docker.swarm.service.name", "swarm"),
        ("io.kubernetes.pod.name", "kubernetes"),
        ("com.docker.compose.project", "compose"),
    ):
        if label in labels:
            return {"kind": kind, "name": str(labels[label]), "evidence": f"label {label}={labels[label]}"}
    name = str(found.get("Name", "")).lstrip("/")
    return unit_of_container(name) or keepalive_of(name) or none()


def unit_of_container(name: str) -> Doc | None:
    """A systemd unit whose commands name the container, or whose control group holds its `docker run`."""
    word = re.compile(rf"(?<![A-Za-z0-9_.-]){re.escape(name)}(?![A-Za-z0-9_.-])")
    folders = [*_UNIT_FOLDERS, os.path.expanduser("~/.config/systemd/user")]
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, "*.service"))):
            for line in read_text(path).splitlines():
                if line.startswith("Exec") and word.search(line):
                    return {
                        "kind": "systemd",
                        "name": os.path.basename(path),
                        "evidence": f"{path}: {mask_text(line)[:200]}",
                    }
    for pid in processes.all_pids():
        words = processes.arguments(pid)
        if (
            "run" in words[:4]
            and os.path.basename(words[0] if words else "") in ("docker", "podman")
            and name in words
        ):
            unit = _unit_of_process(pid)
            if unit:
                return {
                    "kind": "systemd",
                    "name": unit,
                    "evidence": f"`docker run` {pid} is in the unit's group",
                }
    return None


def _unit_of_process(pid: int) -> str | None:
    for line in read_text(f"/proc/{pid}/cgroup").splitlines():
        last = line.rpartition("/")[2]
        if last.endswith(".service") and not last.startswith(("docker", "user@", "ssh")):
            return last
    return None


def keepalive_of(name: str) -> Doc | None:
    """A cron entry that names the service."""
    texts: list[str] = []
    for pattern in _CRON_FILES:
        for path in sorted(glob.glob(pattern)):
            texts += [f"{path}: {line}" for line in read_text(path).splitlines()]
    with contextlib.suppress(commands.Failed):
        texts += [f"crontab: {line}" for line in commands.output(["crontab", "-l"], timeout=5).splitlines()]
    for text in texts:
        body = text.partition(": ")[2]
        if name in body and not body.lstrip().startswith("#"):
            return {"kind": "keepalive", "name": name, "evidence": mask_text(text)[:200]}
    return None
