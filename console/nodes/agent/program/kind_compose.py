"""A service of a compose project: stopped and started by compose, from the files that its containers name."""

from __future__ import annotations

import os

from . import commands, engine, owner
from .answers import Doc
from .kinds import Kind, View

_LABEL = "com.docker.compose."


class ComposeKind(Kind):
    @property
    def docker(self) -> list[str]:
        return list(self.spec["docker"])

    def _containers(self) -> list[Doc]:
        """Every container of the service, inspected."""
        listing = commands.output(
            [*self.docker, "ps", "-aq", "--no-trunc",
             "--filter", f"label={_LABEL}project={self.spec['project']}",
             "--filter", f"label={_LABEL}service={self.spec['service']}",
             "--filter", f"label={_LABEL}oneoff=False"],
            timeout=20,
        )  # fmt: skip
        found = [engine.inspect(self.docker, name) for name in sorted(listing.split())]
        return [container for container in found if container is not None]

    def look(self) -> View:
        containers = self._containers()
        if not containers:
            return View(exists=False, status="absent")
        views = [engine.view(container) for container in containers]
        worst = next((view for view in views if not view.running), views[0])
        counts = [view.restart_count for view in views if view.restart_count is not None]
        return View(
            exists=True,
            running=all(view.running for view in views),
            status=worst.status,
            exit_code=worst.exit_code,
            restart_count=sum(counts) if counts else None,
            marks=tuple(mark for view in views for mark in view.marks),
            looping=any(view.looping for view in views),
            detail={"containers": containers},
        )

    def pids(self, view: View) -> list[int]:
        return [pid for one in view.detail["containers"] for pid in engine.container_pids(self.docker, one)]

    def describe(self, view: View) -> Doc:
        containers: list[Doc] = view.detail["containers"]
        first = containers[0]
        labels = {key: str(value) for key, value in (first["Config"].get("Labels") or {}).items()}
        compose_labels = {key: value for key, value in labels.items() if key.startswith(_LABEL)}
        described: Doc = {
            "owner": owner.of_container(first),
            "image": first["Config"].get("Image"),
            "image_digest": engine.image_digest(self.docker, str(first.get("Image", ""))),
            "restart_policy": engine.restart_policy(first),
            "restart_count": view.restart_count,
            "auto_remove": bool(first.get("HostConfig", {}).get("AutoRemove")),
            "compose_labels": compose_labels,
            "compose_tool": self._tool(),
            "inspect": {"containers": containers, "restart_policies": _policies(containers)},
            "warnings": [],
        }
        missing = [path for path in _config_files(compose_labels) if not os.path.exists(path)]
        if described["compose_tool"] is None and not (
            self.spec["start_command"] and self.spec["stop_command"]
        ):
            described["refusal"] = "neither the compose plugin nor docker-compose is on the node"
            described["refusal_next_step"] = (
                "install docker-compose-v2, or give start_command and stop_command"
            )
        elif described["compose_tool"] is not None and missing:
            described["refusal"] = f"the compose file is no longer where it was: {', '.join(missing)}"
            described["refusal_next_step"] = "put the file back, then retry"
        return described

    def _tool(self) -> list[str] | None:
        if commands.works([*self.docker, "compose", "version"]):
            return [*self.docker, "compose"]
        if commands.works(["docker-compose", "version"]):
            position = self.docker.index("docker") if "docker" in self.docker else 0
            return [*self.docker[:position], "docker-compose", *self.docker[position + 1 :]]
        return None

    def command_lines(self, described: Doc) -> dict[str, list[list[str]]]:
        lines: dict[str, list[list[str]]] = {}
        policies: dict[str, str] = described["inspect"].get("restart_policies", {})
        lines["restart_off"] = [
            [*self.docker, "update", "--restart=no", name]
            for name, policy in policies.items()
            if policy != "no"
        ]
        lines["restart_back"] = [
            [*self.docker, "update", f"--restart={policy}", name]
            for name, policy in policies.items()
            if policy != "no"
        ]
        tool = described.get("compose_tool")
        if tool is None:
            lines["stop"] = [list(self.spec["stop_command"])]
            lines["start"] = [list(self.spec["start_command"])]
            return lines
        labels = described.get("compose_labels") or {}
        front = [*tool, "-p", str(self.spec["project"])]
        folder = labels.get(_LABEL + "project.working_dir")
        for path in _config_files(labels):
            front += ["-f", path]
        if folder:
            front += ["--project-directory", folder]
        name = str(self.spec["service"])
        lines["stop"] = [[*front, "stop", "-t", str(int(self.spec["stop_seconds"])), name]]
        lines["start"] = [[*front, "start", name]]
        return lines

    def log(self, since: float, limit: int) -> str:
        texts = [engine.logs(self.docker, str(one["Id"]), since, limit) for one in self._containers()]
        return "".join(texts)[-limit:]


def _policies(containers: list[Doc]) -> dict[str, str]:
    return {str(one["Name"]).lstrip("/"): engine.restart_policy(one) for one in containers}


def _config_files(labels: dict[str, str]) -> list[str]:
    folder = labels.get(_LABEL + "project.working_dir", "")
    names = [name for name in labels.get(_LABEL + "project.config_files", "").split(",") if name]
    return [os.path.join(folder, name) for name in names]
