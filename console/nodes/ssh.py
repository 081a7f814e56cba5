"""One SSH connection per node: opened, watched, opened again; scripts run over it with framed answers."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from console.nodes.shell import Answer, Stream


@dataclass(frozen=True)
class SshTarget:
    """Where a node is and how it is reached. Values left None come from the ssh_config files."""

    name: str
    host: str
    """Host name, address, or alias of the ssh_config."""
    port: int | None = None
    user: str | None = None
    jump: str | None = None
    """`[user@]host[:port]`, several separated by commas, as ProxyJump takes them."""
    identity_file: Path | None = None
    config_files: tuple[Path, ...] = field(default_factory=lambda: (Path("~/.ssh/config"),))
    known_hosts: tuple[Path, ...] = ()
    """Empty: UserKnownHostsFile of the ssh_config, else ~/.ssh/known_hosts; new keys go to the first."""
    use_agent: bool = True
    interpreter: str = "python3"
    """Python on the node for the console's own helpers (not for training)."""


@dataclass(frozen=True)
class LinkState:
    """Whether SSH to the node is up; says nothing about jobs or streams."""

    state: Literal["connecting", "up", "down"]
    changed_at_monotonic: float
    rtt_seconds: float | None = None
    why: str = ""


class Node:
    """A node behind one supervised SSH connection."""

    def __init__(self, target: SshTarget) -> None:
        self.target = target
        self.name = target.name

    @property
    def link(self) -> LinkState:
        raise NotImplementedError

    def add_link_listener(self, listener: Callable[[LinkState], None]) -> Callable[[], None]:
        """Call `listener` at every change of state (not of round-trip time); returns how to stop that."""
        raise NotImplementedError

    async def connect(self, *, keep_trying: bool = False) -> None:
        """Connect and start the supervisor.

        A first attempt that fails is raised, unless `keep_trying`: then the supervisor goes on trying.
        Raises Unreachable, AuthRefused, HostKeyUnknown, HostKeyChanged, HostKeyRevoked, InputError.
        """
        raise NotImplementedError

    async def wait_up(self, timeout: float) -> None:
        """Return when the link is up; raises Unreachable after `timeout` seconds."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the connection; jobs go on."""
        raise NotImplementedError

    async def run(
        self, script: str, *, args: Sequence[str] = (), timeout: float, stdin: bytes = b"", check: bool = True
    ) -> Answer:
        """Run a bash script and return its whole answer.

        Raises Unreachable, ScriptTimedOut (its processes are ended), ScriptFailed (only with `check`),
        AnswerUnreadable.
        """
        raise NotImplementedError

    async def run_python(
        self, interpreter: str, source: str, *, args: Sequence[str] = (), timeout: float
    ) -> dict[str, Any]:
        """Run a Python program that prints one JSON object on its last line; strings in it are cleaned."""
        raise NotImplementedError

    @asynccontextmanager
    async def stream(self, script: str, *, args: Sequence[str] = ()) -> AsyncIterator[Stream]:
        """Run a bash script whose output is read as it comes; it ends with the block."""
        raise NotImplementedError
        yield
