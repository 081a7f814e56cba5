"""Nodes on this computer: SSH servers on loopback inside the process, with real shells behind them.

To the rest of the console they are ordinary hosts: own host key, own known_hosts, own key to log in with.
Jobs started on them are detached like anywhere and outlive this process.
"""

import contextlib
import os
import pwd
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from console.core.errors import InputError
from console.nodes.dial import SshTarget
from console.nodes.relay import relay_shell

_ADDRESS = "127.0.0.1"


@dataclass(frozen=True)
class EmbeddedNode:
    """One embedded node: its name, home folder, and how to reach it."""

    name: str
    home: Path
    target: SshTarget


@asynccontextmanager
async def embedded_nodes(
    root: Path,
    names: Sequence[str] = ("node-a", "node-b"),
    *,
    shell: str = "/bin/bash",
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[tuple[EmbeddedNode, ...]]:
    """Serve the nodes while the block runs. Keys, homes and (if free) ports under `root` are used again.

    `shell` is the login shell; `environment` is added to what the shells get.
    """
    user_key = _key(root / "login_key")
    servers: list[_Server] = []
    try:
        for name in names:
            server = _Server(root / name, name, user_key, shell, environment or {})
            await server.start()
            servers.append(server)
        _write_private(root / "known_hosts", "".join(server.known_hosts_line for server in servers))
        yield tuple(server.node(root) for server in servers)
    finally:
        for server in servers:
            await server.stop()


class _Login(asyncssh.SSHServer):
    def __init__(self, key: asyncssh.SSHKey, connections: set[asyncssh.SSHServerConnection]) -> None:
        self._key = key.convert_to_public()
        self._connections = connections

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connections.add(conn)

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return key == self._key


class _Server:
    """One node's SSH server."""

    def __init__(
        self, folder: Path, name: str, user_key: asyncssh.SSHKey, shell: str, environment: Mapping[str, str]
    ) -> None:
        self._folder = folder
        self._name = name
        self._user_key = user_key
        self._shell = shell
        self._host_key = _key(folder / "host_key")
        self._home = (folder / "home").absolute()
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._environment = {**_login_environment(self._home, name, shell), **environment}
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._port = 0

    @property
    def known_hosts_line(self) -> str:
        public = self._host_key.export_public_key("openssh").decode("ascii").split()
        return f"[{_ADDRESS}]:{self._port} {public[0]} {public[1]}\n"

    def node(self, root: Path) -> EmbeddedNode:
        target = SshTarget(
            name=self._name,
            host=_ADDRESS,
            port=self._port,
            user=self._environment["USER"],
            identity_file=root / "login_key",
            config_files=(),
            known_hosts=(root / "known_hosts",),
            use_agent=False,
        )
        return EmbeddedNode(self._name, self._home, target)

    async def start(self) -> None:
        port_file = self._folder / "port"
        with contextlib.suppress(OSError, ValueError):
            self._port = int(port_file.read_text("ascii"))
        try:
            await self._listen()
        except OSError:
            # Taken meanwhile by another program: any other port does, known_hosts is written after this.
            self._port = 0
            await self._listen()
        _write_private(port_file, f"{self._port}\n")

    async def _listen(self) -> None:
        self._acceptor = await asyncssh.listen(
            _ADDRESS,
            self._port,
            server_factory=lambda: _Login(self._user_key, self._connections),
            server_host_keys=[self._host_key],
            process_factory=self._serve,
            encoding=None,
            allow_scp=False,
            allow_pty=False,
            agent_forwarding=False,
            x11_forwarding=False,
            keepalive_interval=15,
            config=[],
        )
        self._port = self._acceptor.get_port()

    async def stop(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
        for connection in list(self._connections):
            connection.abort()
            await connection.wait_closed()
        self._connections.clear()
        # From Python 3.12 on this waits for the connections too, so they have to be gone first.
        if self._acceptor is not None:
            await self._acceptor.wait_closed()

    async def _serve(self, process: "asyncssh.SSHServerProcess[bytes]") -> None:
        await relay_shell(
            process,
            self._shell,
            self._home,
            self._environment | {"SSH_CLIENT": f"{_ADDRESS} 0 {self._port}"},
        )


def _login_environment(home: Path, name: str, shell: str) -> dict[str, str]:
    """What a login on the node sees: its own home and name, nothing of this process but the search path."""
    python = str(Path(sys.executable).parent)
    system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    user = pwd.getpwuid(os.getuid()).pw_name
    return {
        "HOME": str(home),
        "USER": user,
        "LOGNAME": user,
        "SHELL": shell,
        "PATH": f"{python}:{system}",
        "HOSTNAME": name,
        "LANG": "C.UTF-8",
    }


def _key(path: Path) -> asyncssh.SSHKey:
    """The private key at `path`, made at the first call. Raises InputError when it can't be read or made."""
    try:
        if path.exists():
            return asyncssh.read_private_key(path)
        key = asyncssh.generate_private_key("ssh-ed25519")
        _write_private(path, key.export_private_key("openssh").decode("ascii"))
        return key
    except (OSError, asyncssh.KeyImportError) as error:
        raise InputError(
            f"the embedded node's key {path} can't be used",
            why=str(error),
            next_step="check that the folder is writable; remove the file to have a new key made",
        ) from error


def _write_private(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    unfinished.replace(path)
