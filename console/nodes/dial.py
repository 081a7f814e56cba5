"""Open one SSH connection by the console's own host key policy; every failure becomes one of our errors."""

import asyncio
import socket
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import asyncssh
from asyncssh.public_key import get_default_certificate_algs, get_default_public_key_algs

from console.core.errors import (
    AuthRefused,
    HostKeyChanged,
    HostKeyRevoked,
    InputError,
    LabError,
    NodeError,
    Unreachable,
)
from console.nodes import hostkeys
from console.nodes.text import clean

CONTACT_SECONDS = 15.0
"""Limit for the TCP connection, and again for the server's SSH banner."""
LOGIN_SECONDS = 60.0
"""Limit for key exchange and authentication: a dozen round trips, also on a link with seconds of delay."""
KEEPALIVE_SECONDS = 5
KEEPALIVE_COUNT = 3
_MOST_JUMPS = 8


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


async def dial(target: SshTarget) -> asyncssh.SSHClientConnection:
    """Connect, through jump hosts if there are any.

    Raises Unreachable, AuthRefused, HostKeyUnknown, HostKeyChanged, HostKeyRevoked, InputError.
    """
    return await _dial(target, depth=0)


async def _dial(target: SshTarget, depth: int) -> asyncssh.SSHClientConnection:
    options = await _resolve(target)
    jump = target.jump if target.jump is not None else options.tunnel
    if depth > _MOST_JUMPS:
        raise InputError("more than 8 jump hosts in a row", node=target.name, next_step="look for a circle")
    tunnel: asyncssh.SSHClientConnection | None = None
    try:
        for hop in str(jump).split(",") if jump else ():
            hop_target = _hop(target, hop, first=tunnel is None)
            previous, tunnel = tunnel, None
            try:
                tunnel = await (
                    _dial(hop_target, depth + 1) if previous is None else _open(hop_target, previous)
                )
            except BaseException:
                if previous is not None:
                    previous.abort()
                raise
        return await _open(target, tunnel, options)
    except BaseException:
        if tunnel is not None:
            tunnel.abort()
        raise


def _hop(target: SshTarget, hop: str, *, first: bool) -> SshTarget:
    user, _, place = hop.strip().rpartition("@")
    host, colon, port = place.rpartition(":")
    if not colon or not port.isdigit():
        host, port = place, ""
    return replace(
        target,
        name=f"{target.name} (jump host {clean(place)})",
        host=host,
        port=int(port) if port else None,
        user=user or None,
        jump=None if first else "",
    )


async def _resolve(target: SshTarget) -> asyncssh.SSHClientConnectionOptions:
    """Apply the ssh_config files. Raises InputError for what can't be read in them."""
    try:
        options: asyncssh.SSHClientConnectionOptions = await asyncssh.SSHClientConnectionOptions.construct(
            host=target.host, **_settings(target)
        )
        return options
    except asyncssh.ConfigParseError as error:
        raise InputError(
            f"the ssh_config can't be used: {clean(str(error))}",
            node=target.name,
            next_step=f"correct {', '.join(map(str, target.config_files))}; `ssh -G {target.host}` helps",
        ) from error
    except (asyncssh.KeyImportError, OSError) as error:
        if isinstance(error, asyncssh.KeyEncryptionError) or "Passphrase" in str(error):
            raise _key_unusable(target, "is encrypted", "load it into the agent: ssh-add") from error
        raise _key_unusable(target, f"can't be read ({clean(str(error))})", "name another file") from error
    except ValueError as error:
        raise InputError(f"can't be reached as described: {clean(str(error))}", node=target.name) from error


def _key_unusable(target: SshTarget, what: str, remedy: str) -> InputError:
    return InputError(f"the key {target.identity_file or ''} {what}", node=target.name, next_step=remedy)


def _settings(target: SshTarget) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "config": [path for path in (p.expanduser() for p in target.config_files) if path.is_file()],
        "keepalive_interval": KEEPALIVE_SECONDS,
        "keepalive_count_max": KEEPALIVE_COUNT,
        "login_timeout": LOGIN_SECONDS,
        "connect_timeout": None,
        "utf8_decode_errors": "replace",
        "request_pty": False,
        "x509_trusted_certs": None,
        "x509_trusted_cert_paths": [],
    }
    if target.port is not None:
        settings["port"] = target.port
    if target.user is not None:
        settings["username"] = target.user
    if target.identity_file is not None:
        settings["client_keys"] = [str(target.identity_file.expanduser())]
        settings["ignore_encrypted"] = target.use_agent
    if not target.use_agent:
        settings["agent_path"] = None
    return settings


class _Client(asyncssh.SSHClient):
    """Judges the host key and notes how far the connection came."""

    def __init__(self, target: SshTarget, names: tuple[str, ...], known: hostkeys.KnownHosts) -> None:
        self._target = target
        self._names = names
        self._known = known
        self.refusal: NodeError | None = None
        self.connection: asyncssh.SSHClientConnection | None = None
        self.made = asyncio.Event()
        self.lost_because: Exception | None = None

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.connection = conn
        self.made.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost_because = exc

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        state, lines = self._known.judge(self._names, key)
        if state != "trusted":
            self.refusal = hostkeys.refusal(self._target.name, self._names[0], state, key, lines, self._known)
        return state == "trusted"


async def _open(
    target: SshTarget,
    tunnel: asyncssh.SSHClientConnection | None,
    options: asyncssh.SSHClientConnectionOptions | None = None,
) -> asyncssh.SSHClientConnection:
    options = options or await _resolve(target)
    host, port = options.host, options.port
    known = hostkeys.read_known_hosts(_known_hosts_files(target, options))
    names = hostkeys.host_names(options.host_key_alias or host, 22 if options.host_key_alias else port)
    about = known.about(names)
    trusted = [entry.key for entry in about if entry.marker == ""]
    authorities = [entry.key for entry in about if entry.marker == "cert-authority"]
    revoked = [entry.key for entry in about if entry.marker == "revoked"]
    clients: list[_Client] = []

    def client_factory() -> asyncssh.SSHClient:
        clients.append(_Client(target, names, known))
        return clients[-1]

    settings = _settings(target) | {
        "known_hosts": lambda _host, _addr, _port: (trusted, authorities, revoked, [], [], [], []),
        "client_factory": client_factory,
        "tunnel": tunnel,
    }
    if not options.config.get("HostKeyAlgorithms"):
        settings["server_host_key_algs"] = _host_key_algorithms(trusted, bool(authorities))
    connecting = asyncio.ensure_future(asyncssh.connect(target.host, **settings))
    try:
        connection = await _within_limits(connecting, clients, target, f"{host} port {port}")
    except LabError:
        raise
    except Exception as error:
        if clients and clients[-1].refusal is not None:
            raise clients[-1].refusal from error
        raise explain(error, target, f"{host} port {port}") from error
    if tunnel is not None:
        connection.set_tunnel(tunnel)
    return connection


def _known_hosts_files(target: SshTarget, options: asyncssh.SSHClientConnectionOptions) -> tuple[Path, ...]:
    if target.known_hosts:
        return target.known_hosts
    if options.known_hosts is None:
        hostkeys.refuse_none(Path("none"))
    configured = options.known_hosts if isinstance(options.known_hosts, list) else []
    return tuple(Path(str(path)) for path in configured) or (Path("~/.ssh/known_hosts"),)


def _host_key_algorithms(trusted: list[asyncssh.SSHKey], has_authority: bool) -> list[str]:
    """Known kinds first, but all of them: a key of another kind must be seen to be called changed."""
    algorithms = list(get_default_certificate_algs()) if has_authority else []
    for key in trusted:
        algorithms += key.sig_algorithms
    algorithms += get_default_public_key_algs()
    return [name.decode("ascii") for name in dict.fromkeys(algorithms)]


async def _within_limits(
    connecting: "asyncio.Future[asyncssh.SSHClientConnection]",
    clients: list[_Client],
    target: SshTarget,
    place: str,
) -> asyncssh.SSHClientConnection:
    """Wait for contact, banner and login, each with its own limit."""
    try:
        await asyncio.wait({connecting}, timeout=0.05)
        deadline = asyncio.get_running_loop().time() + CONTACT_SECONDS
        met = False
        while not connecting.done():
            if not met and clients and clients[-1].made.is_set():
                met = True
                deadline = asyncio.get_running_loop().time() + CONTACT_SECONDS
            connection = clients[-1].connection if met else None
            if connection is not None and connection.get_extra_info("server_version"):
                break
            if asyncio.get_running_loop().time() > deadline:
                raise _silent(target, place, met)
            await asyncio.wait({connecting}, timeout=0.05)
        async with asyncio.timeout(LOGIN_SECONDS):
            return await connecting
    except BaseException:
        connecting.cancel()
        await asyncio.wait({connecting})
        if not connecting.cancelled():
            connecting.exception()
        raise


def _silent(target: SshTarget, place: str, met: bool) -> Unreachable:
    if met:
        return Unreachable(
            target.name,
            f"{place} accepts connections but sends no SSH banner",
            why=f"nothing came within {CONTACT_SECONDS:.0f} s: another service, or an overloaded sshd",
            next_step="check the port, and sshd on the node",
        )
    return Unreachable(
        target.name,
        f"no answer from {place}",
        why=f"nothing came within {CONTACT_SECONDS:.0f} s: node off, wrong address, or a firewall",
        next_step="check that the node is on and that `ssh` reaches it",
    )


def explain(error: BaseException, target: SshTarget, place: str) -> NodeError:
    """The error of our tree for a failure of asyncssh or the operating system."""
    name = target.name
    said = str(clean(str(error))) or type(error).__name__
    if isinstance(error, asyncssh.PermissionDenied):
        return AuthRefused(
            name,
            f"{place} refused every key",
            why=said,
            next_step="check user and identity_file; install your key with ssh-copy-id, or load it: ssh-add",
        )
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return _host_certificate_refused(name, said)
    if isinstance(error, socket.gaierror):
        return Unreachable(
            name,
            f"the name of {place} can't be resolved",
            why=said,
            next_step="check `host:` in the profile, the Host alias in ~/.ssh/config, /etc/hosts, the VPN",
        )
    if isinstance(error, ConnectionRefusedError):
        return Unreachable(
            name,
            f"{place} refused the connection",
            why="the node is on, but nothing listens on this port",
            next_step="check the port, and that sshd runs on the node",
        )
    if isinstance(error, TimeoutError):
        return Unreachable(
            name, f"login at {place} took too long", why=said, next_step="check the node's load and the link"
        )
    if isinstance(error, asyncssh.ChannelOpenError):
        return Unreachable(name, f"no way on to {place}", why=said, next_step="check it from the jump host")
    if isinstance(error, asyncssh.KeyExchangeFailed | asyncssh.ProtocolError | asyncssh.ProtocolNotSupported):
        return Unreachable(
            name, f"{place} can't agree on SSH", why=said, next_step="compare with `ssh -v` to the same place"
        )
    if isinstance(error, asyncssh.DisconnectError | ConnectionError):
        return Unreachable(
            name,
            f"the connection to {place} was closed",
            why=said,
            next_step="check sshd's log on the node",
        )
    return Unreachable(name, f"no connection to {place}", why=said, next_step="try `ssh` to the same place")


def _host_certificate_refused(name: str, said: str) -> NodeError:
    if "revoked" in said:
        return HostKeyRevoked(
            name,
            "the host key is revoked",
            why=said,
            next_step="ask whoever runs the node for its present key",
        )
    return HostKeyChanged(
        name,
        "the host certificate is not trusted",
        why=said,
        next_step="compare its authority with the @cert-authority lines of known_hosts",
    )
