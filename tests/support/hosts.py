"""Real SSH hosts for tests: the console's embedded nodes, and OpenSSH's own sshd."""

import asyncio
import contextlib
import getpass
import os
import shlex
import shutil
import socket
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

import asyncssh
import psutil

from console.nodes.dial import SshTarget
from console.nodes.embedded import EmbeddedNode, embedded_nodes

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")


@dataclass
class Host:
    """One host that a test can start, stop and reach. `root` holds its keys and its home folder."""

    name: str
    root: Path
    shell: str = "/bin/bash"
    environment: dict[str, str] = field(default_factory=dict)
    kind = ""
    target: SshTarget = field(init=False)

    @property
    def home(self) -> Path:
        raise NotImplementedError

    @property
    def port(self) -> int:
        assert self.target.port is not None
        return self.target.port

    async def start(self) -> None:
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop the server and drop its connections; processes started on the host stay."""
        raise NotImplementedError

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def through(self, port: int) -> SshTarget:
        """The target as seen through a proxy on this loopback port; the host key is known there too."""
        known_hosts = self.root / f"known_hosts_{port}"
        here, there = f"[{self.target.host}]:{self.port} ", f"[127.0.0.1]:{port} "
        known_hosts.write_text(self.target.known_hosts[0].read_text().replace(here, there))
        return replace(self.target, host="127.0.0.1", port=port, known_hosts=(known_hosts,))


class EmbeddedHost(Host):
    kind = "embedded"
    _serving: AbstractAsyncContextManager[tuple[EmbeddedNode, ...]] | None = None

    @property
    def home(self) -> Path:
        return self.root / self.name / "home"

    async def start(self) -> None:
        self._serving = embedded_nodes(
            self.root, (self.name,), shell=self.shell, environment=self.environment
        )
        (node,) = await self._serving.__aenter__()
        self.target = node.target

    async def stop(self) -> None:
        if self._serving is not None:
            serving, self._serving = self._serving, None
            await serving.__aexit__(None, None, None)


class SshdHost(Host):
    """OpenSSH on a free port with its own keys and home folder; logs in as whoever runs the tests."""

    kind = "sshd"
    address = "127.0.0.1"
    front: tuple[str, ...] = ()
    """What is put before sshd's command: how it gets into a network namespace."""
    _process: asyncio.subprocess.Process | None = None
    _port = 0
    _frozen: Sequence[psutil.Process] = ()

    @property
    def home(self) -> Path:
        return self.root / "home"

    async def start(self) -> None:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        host_key, login_key = _key(self.root / "host_key"), _key(self.root / "login_key")
        (self.root / "authorized_keys").write_bytes(login_key.export_public_key("openssh"))
        if os.getuid() == 0:
            await asyncio.to_thread(Path("/run/sshd").mkdir, mode=0o755, exist_ok=True)
        self._port = self._port or _free_port()
        config = self.root / "sshd_config"
        config.write_text(self._config())
        self._process = await asyncio.create_subprocess_exec(
            *(*self.front, str(SSHD), "-D", "-e", "-f", str(config)),
            stderr=(self.root / "sshd.log").open("ab"),
        )
        await self._answers()
        known_hosts = self.root / "known_hosts"
        public = host_key.export_public_key("openssh").decode().split()
        known_hosts.write_text(f"[{self.address}]:{self._port} {public[0]} {public[1]}\n")
        self.target = SshTarget(
            name=self.name,
            host=self.address,
            port=self._port,
            user=getpass.getuser(),
            identity_file=self.root / "login_key",
            config_files=(),
            known_hosts=(known_hosts,),
            use_agent=False,
        )

    async def stop(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        servers = self._sessions(process.pid)
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        for server in servers:
            with contextlib.suppress(psutil.NoSuchProcess):
                server.kill()

    def freeze(self) -> None:
        """Stop sshd and its sessions in their tracks; sockets stay open. `thaw` lets them go on."""
        assert self._process is not None
        self._frozen = [psutil.Process(self._process.pid), *self._sessions(self._process.pid)]
        for process in self._frozen:
            process.suspend()

    def thaw(self) -> None:
        for process in self._frozen:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()
        self._frozen = []

    @staticmethod
    def _sessions(listener: int) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(listener).children(recursive=True)
            return [child for child in children if child.name().startswith("sshd")]
        return []

    def _config(self) -> str:
        environment = {
            "HOME": str(self.home),
            "HOSTNAME": self.name,
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        } | self.environment
        lines = [
            f"Port {self._port}",
            f"ListenAddress {self.address}",
            f"HostKey {self.root / 'host_key'}",
            f"AuthorizedKeysFile {self.root / 'authorized_keys'}",
            f"PidFile {self.root / 'sshd.pid'}",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin yes",
            "PrintMotd no",
            "MaxStartups 100",
            "SetEnv " + " ".join(f"{name}={value}" for name, value in environment.items()),
        ]
        if self.shell != "/bin/bash":
            lines.append(f'ForceCommand {shlex.quote(self.shell)} -c "$SSH_ORIGINAL_COMMAND"')
        return "\n".join(lines) + "\n"

    async def _answers(self) -> None:
        for _ in range(200):
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(self.address, self._port)
                banner = await reader.readline()
                writer.close()
                if banner.startswith(b"SSH-"):
                    return
            await asyncio.sleep(0.05)
        raise AssertionError((self.root / "sshd.log").read_text())


KINDS: dict[str, type[Host]] = {"embedded": EmbeddedHost, "sshd": SshdHost}


def _key(path: Path) -> asyncssh.SSHKey:
    if not path.exists():
        key = asyncssh.generate_private_key("ssh-ed25519")
        path.touch(mode=0o600)
        path.write_bytes(key.export_private_key("openssh"))
    return asyncssh.read_private_key(path)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
