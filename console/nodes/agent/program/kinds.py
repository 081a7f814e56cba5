"""What every kind of service can do: be looked at, stopped, started, and have its auto-restart switched."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import commands
from .answers import Doc


@dataclass
class View:
    """A service at one moment. `marks` changes whenever it was started anew."""

    exists: bool
    running: bool = False
    status: str = ""
    """The owner's own word: running, exited, failed, …"""
    exit_code: int | None = None
    restart_count: int | None = None
    marks: tuple[str, ...] = ()
    looping: bool = False
    """Its owner is starting it again and again."""
    detail: Doc = field(default_factory=dict)


class Kind:
    """One service on this node. Subclasses raise `commands.Failed` when their tool fails."""

    peek_seconds = 2.0
    """How often the guard peeks; longer where a peek costs a process. The console is told within 5 s."""

    def __init__(self, spec: Doc) -> None:
        self.spec = spec

    def look(self) -> View:
        raise NotImplementedError

    def peek(self) -> bool:
        """Whether it runs, as cheaply as the kind allows; the guard asks for hours."""
        return self.look().running

    def pids(self, view: View) -> list[int]:
        raise NotImplementedError

    def describe(self, view: View) -> Doc:
        """Fields of the service record: owner, image, restart policy, full inspect (unmasked), refusal."""
        raise NotImplementedError

    def command_lines(self, described: Doc) -> dict[str, list[list[str]]]:
        """Exact commands by purpose (stop, start, restart_off, restart_back); the record keeps them."""
        raise NotImplementedError

    def restart_off(self, record: Doc) -> None:
        """Keep the owner from starting it again."""
        self._run(record, "restart_off", 30)

    def restart_back(self, record: Doc) -> None:
        """Put the recorded restart policy back."""
        self._run(record, "restart_back", 30)

    def stop(self, record: Doc) -> None:
        self._run(record, "stop", self.spec["stop_seconds"] + 60)

    def start(self, record: Doc) -> None:
        self._run(record, "start", 300)

    def _run(self, record: Doc, purpose: str, timeout: float) -> None:
        for line in (record.get("commands") or {}).get(purpose, []):
            commands.output(line, timeout=timeout)

    def log(self, since: float, limit: int) -> str:
        """The end of its own log since that time."""
        raise NotImplementedError


def kind_of(spec: Doc) -> Kind:
    name = spec["kind"]
    if name == "docker":
        from .kind_docker import DockerKind

        return DockerKind(spec)
    if name == "compose":
        from .kind_compose import ComposeKind

        return ComposeKind(spec)
    if name == "systemd":
        from .kind_systemd import SystemdKind

        return SystemdKind(spec)
    from .kind_command import CommandKind

    return CommandKind(spec)
