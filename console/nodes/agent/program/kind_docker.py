"""A container started by hand."""

from __future__ import annotations

from . import engine, owner
from .answers import Doc
from .kinds import Kind, View


class DockerKind(Kind):
    @property
    def docker(self) -> list[str]:
        return list(self.spec["docker"])

    @property
    def container(self) -> str:
        return str(self.spec["container"])

    def look(self) -> View:
        return engine.view(engine.inspect(self.docker, self.container))

    def peek(self) -> bool:
        seen = engine.peek(self.docker, self.container)
        return self.look().running if seen is None else seen

    def pids(self, view: View) -> list[int]:
        return engine.container_pids(self.docker, view.detail)

    def describe(self, view: View) -> Doc:
        found = view.detail
        own = owner.of_container(found)
        remove = bool(found.get("HostConfig", {}).get("AutoRemove"))
        digest = engine.image_digest(self.docker, str(found.get("Image", "")))
        described: Doc = {
            "owner": own,
            "image": found.get("Config", {}).get("Image"),
            "image_digest": digest,
            "restart_policy": engine.restart_policy(found),
            "restart_count": view.restart_count,
            "auto_remove": remove,
            "compose_labels": _compose_labels(found),
            "inspect": found,
            "warnings": [],
        }
        if own["kind"] in ("compose", "systemd", "swarm", "kubernetes"):
            described["refusal"] = f"container {self.container} belongs to {own['kind']} {own['name']}"
            described["refusal_why"] = own["evidence"]
            described["refusal_next_step"] = (
                f"set the profile's service kind to {own['kind']}"
                if own["kind"] in ("compose", "systemd")
                else f"stop it through {own['kind']}; the console does not handle that owner"
            )
        elif remove:
            described["refusal"] = (
                f"container {self.container} was started with --rm and has no owner: stopping deletes it"
            )
            described["refusal_next_step"] = (
                "start it again without --rm, or under compose or systemd, then retry"
            )
        elif digest is None:
            described["refusal"] = f"the image of container {self.container} is no longer on the node"
            described["refusal_next_step"] = (
                "load the image again, or start the container from an image that stays"
            )
        if own["kind"] == "keepalive":
            described["warnings"].append(f"a keepalive may start it during the window: {own['evidence']}")
        return described

    def command_lines(self, described: Doc) -> dict[str, list[list[str]]]:
        policy = described.get("restart_policy") or "no"
        seconds = str(int(self.spec["stop_seconds"]))
        lines = {
            "stop": [[*self.docker, "stop", "-t", seconds, self.container]],
            "start": [[*self.docker, "start", self.container]],
        }
        if policy != "no":
            lines["restart_off"] = [[*self.docker, "update", "--restart=no", self.container]]
            lines["restart_back"] = [[*self.docker, "update", f"--restart={policy}", self.container]]
        return lines

    def log(self, since: float, limit: int) -> str:
        return engine.logs(self.docker, self.container, since, limit)


def _compose_labels(found: Doc) -> dict[str, str]:
    labels = found.get("Config", {}).get("Labels") or {}
    return {
        str(key): str(value) for key, value in labels.items() if str(key).startswith("com.docker.compose.")
    }
