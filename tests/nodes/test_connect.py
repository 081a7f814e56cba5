"""Reaching a node: keys, names, ports, ssh_config, and what is said when it fails."""

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest
from support.hosts import Host
from support.proxy import Proxy
from support.waiting import until

from console.core.errors import (
    AuthRefused,
    HostKeyChanged,
    HostKeyRevoked,
    HostKeyUnknown,
    InputError,
    LabError,
    Unreachable,
)
from console.nodes import dial
from console.nodes.dial import SshTarget
from console.nodes.hostkeys import accept, known_hosts_line
from console.nodes.ssh import Node


def key(kind: str = "ssh-ed25519") -> asyncssh.SSHKey:
    return asyncssh.generate_private_key(kind)


def with_known_hosts(host: Host, path: Path, *lines: str) -> SshTarget:
    path.write_text("".join(f"{line}\n" for line in lines))
    return replace(host.target, known_hosts=(path,))


def name_of(host: Host) -> str:
    return f"[127.0.0.1]:{host.port}"


async def failure(target: SshTarget) -> LabError:
    node = Node(target)
    try:
        with pytest.raises(LabError) as caught:
            await node.connect()
    finally:
        await node.close()
    assert caught.value.next_step
    return caught.value


async def test_an_unknown_key_is_shown_and_once_accepted_trusted(host: Host, tmp_path: Path) -> None:
    known_hosts = tmp_path / "new" / "known_hosts"
    target = replace(host.target, known_hosts=(known_hosts,))
    error = await failure(target)
    assert isinstance(error, HostKeyUnknown)
    assert error.fingerprint.startswith("SHA256:")
    assert "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub" in error.next_step
    assert not known_hosts.exists()
    accept(error.known_hosts_line, known_hosts)
    node = Node(target)
    await node.connect()
    await node.close()


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ecdsa-sha2-nistp256"])
async def test_a_changed_key_is_a_hard_stop(host: Host, tmp_path: Path, kind: str) -> None:
    stale = known_hosts_line(name_of(host), key(kind).convert_to_public())
    error = await failure(with_known_hosts(host, tmp_path / "known_hosts", stale))
    assert isinstance(error, HostKeyChanged)
    assert error.why.count("SHA256:") == 2
    assert f"ssh-keygen -R '{name_of(host)}'" in error.next_step


async def test_a_revoked_key_is_refused(host: Host, tmp_path: Path) -> None:
    line = host.target.known_hosts[0].read_text().strip()
    target = with_known_hosts(host, tmp_path / "known_hosts", line, f"@revoked * {line.split(' ', 1)[1]}")
    assert isinstance(await failure(target), HostKeyRevoked)


async def test_a_malformed_line_does_not_lock_out(host: Host, tmp_path: Path) -> None:
    line = host.target.known_hosts[0].read_text().strip()
    node = Node(with_known_hosts(host, tmp_path / "known_hosts", "what is this", line))
    await node.connect()
    await node.close()


async def test_a_refused_key_says_what_to_do(host: Host, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    stranger.write_bytes(key().export_private_key("openssh"))
    error = await failure(replace(host.target, identity_file=stranger))
    assert isinstance(error, AuthRefused)
    assert "ssh-copy-id" in error.next_step


async def test_an_identity_file_that_is_missing_or_locked_is_named(host: Host, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    locked = tmp_path / "locked"
    keygen = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(locked))
    assert await (await asyncio.create_subprocess_exec(*keygen)).wait() == 0
    for path, word in ((missing, "can't be read"), (locked, "is encrypted")):
        error = await failure(replace(host.target, identity_file=path))
        assert isinstance(error, InputError)
        assert word in error.what
        assert str(path) in error.what


async def test_a_port_where_nothing_listens(host: Host) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = await failure(replace(host.target, port=taken.getsockname()[1]))
    assert isinstance(error, Unreachable)
    assert "refused the connection" in error.what


async def test_a_name_that_does_not_resolve(host: Host) -> None:
    error = await failure(replace(host.target, host="no-such-host.invalid"))
    assert isinstance(error, Unreachable)
    assert "resolved" in error.what


async def test_a_port_that_accepts_and_says_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dial, "CONTACT_SECONDS", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        error = await failure(replace(host.target, port=silent.getsockname()[1]))
    assert isinstance(error, Unreachable)
    assert "no SSH banner" in error.what


async def test_a_port_that_speaks_something_else(host: Host) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\x1b[31m\xff\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        error = await failure(replace(host.target, port=server.sockets[0].getsockname()[1]))
    assert isinstance(error, Unreachable)
    assert "\x1b" not in error.render()


def config_for(host: Host, alias: str, *more: str) -> str:
    target = host.target
    lines = (
        f"HostName {target.host}",
        f"Port {target.port}",
        f"User {target.user}",
        f"IdentityFile {target.identity_file}",
        "IdentitiesOnly yes",
        *more,
    )
    return f"Host {alias}\n" + "".join(f"  {line}\n" for line in lines)


def from_config(path: Path, alias: str, known_hosts: tuple[Path, ...] = ()) -> SshTarget:
    return SshTarget(name=alias, host=alias, config_files=(path,), known_hosts=known_hosts, use_agent=False)


async def test_the_ssh_config_is_honoured_with_include_and_match(
    host: Host,
    tmp_path: Path,
    make_node,  # type: ignore[no-untyped-def]
) -> None:
    (tmp_path / "included").write_text(
        config_for(host, "spark-*", f"UserKnownHostsFile {tmp_path / 'elsewhere'}")
    )
    config = tmp_path / "config"
    config.write_text(
        f"Include {tmp_path / 'included'}\nMatch originalhost spark-a\n  HostKeyAlias the-spark\n"
    )
    (tmp_path / "elsewhere").write_text(
        host.target.known_hosts[0].read_text().replace(name_of(host), "the-spark")
    )
    node = await make_node(from_config(config, "spark-a"))
    assert (await node.run("echo $HOSTNAME", timeout=20)).stdout == b"node-a\n"


async def test_a_config_that_switches_the_check_off_is_refused(host: Host, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(config_for(host, "spark-a", "UserKnownHostsFile none"))
    error = await failure(from_config(config, "spark-a"))
    assert isinstance(error, InputError)
    assert "would not be checked" in error.what


async def test_a_broken_config_names_the_file(host: Host, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host spark-a\n  Port many\n")
    error = await failure(from_config(config, "spark-a"))
    assert isinstance(error, InputError)
    assert str(config) in error.next_step


async def test_a_jump_host_is_verified_too(
    host_pair: tuple[Host, Host],
    tmp_path: Path,
    make_node,  # type: ignore[no-untyped-def]
) -> None:
    inner, gate = host_pair
    config = tmp_path / "config"
    config.write_text(config_for(gate, "gate") + config_for(inner, "spark-a", "ProxyJump gate"))
    both = tmp_path / "both"
    lines = [host.target.known_hosts[0].read_text() for host in host_pair]
    both.write_text("".join(lines))
    if gate.kind == "sshd":
        node = await make_node(from_config(config, "spark-a", (both,)))
        assert (await node.run("echo $HOSTNAME", timeout=20)).stdout == b"node-a\n"
    else:
        # Embedded nodes forward no ports: getting as far as that shows that the gate's key was accepted.
        assert "no way on to" in (await failure(from_config(config, "spark-a", (both,)))).what
    both.write_text(lines[0])
    error = await failure(from_config(config, "spark-a", (both,)))
    assert isinstance(error, HostKeyUnknown)
    assert error.node == "spark-a (jump host gate)"


async def test_the_link_comes_back_by_itself_after_the_server_restarts(host: Host, node: Node) -> None:
    seen: list[str] = []
    stop = node.add_link_listener(lambda link: seen.append(link.state))
    await host.stop()
    await until(lambda: node.link.state != "up", "the loss is noticed")
    with pytest.raises(Unreachable, match="no contact for"):
        await node.run("true", timeout=5)
    await host.start()
    await node.wait_up(30)
    assert (await node.run("echo back", timeout=20)).stdout == b"back\n"
    await until(lambda: node.link.rtt_seconds is not None, "the round trip is measured")
    assert seen[0] == "down"
    assert seen[-1] == "up"
    stop()


async def test_a_frozen_link_is_noticed_and_replaced(
    host: Host,
    make_node,
    monkeypatch: pytest.MonkeyPatch,  # type: ignore[no-untyped-def]
) -> None:
    monkeypatch.setattr(dial, "KEEPALIVE_SECONDS", 1)
    monkeypatch.setattr(dial, "KEEPALIVE_COUNT", 1)
    async with Proxy(host.port) as proxy:
        node = await make_node(host.through(proxy.port))
        proxy.freeze()
        running = asyncio.create_task(node.run("true", timeout=60))
        with pytest.raises(Unreachable, match=r"link was lost|no channel"):
            await running
        await until(lambda: node.link.state != "up", "the silence is noticed")
        proxy.cut()
        proxy.thaw()
        await node.wait_up(30)
        assert (await node.run("echo back", timeout=20)).stdout == b"back\n"
        await node.close()


async def test_trying_goes_on_in_the_background_but_not_past_a_changed_key(
    host: Host, tmp_path: Path
) -> None:
    stale = known_hosts_line(name_of(host), key().convert_to_public())
    node = Node(with_known_hosts(host, tmp_path / "known_hosts", stale))
    await host.stop()
    try:
        await node.connect(keep_trying=True)
        await until(lambda: "refused the connection" in node.link.why, "the first attempt failed")
        since = node.link.changed_at_monotonic
        await host.start()
        await until(lambda: "has changed" in node.link.why, "it tried again")
        with pytest.raises(HostKeyChanged):
            await node.run("true", timeout=5)
        assert node.link.changed_at_monotonic == since
    finally:
        await node.close()


async def test_a_slow_link_works(host: Host, make_node) -> None:  # type: ignore[no-untyped-def]
    async with Proxy(host.port) as proxy:
        proxy.delay_seconds = 0.3
        node = await make_node(host.through(proxy.port))
        assert (await node.run("echo slow", timeout=30)).stdout == b"slow\n"
        await until(lambda: (node.link.rtt_seconds or 0) >= 0.6, "the round trip is measured")
        await node.close()
