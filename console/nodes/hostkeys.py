"""Which host keys are trusted: known_hosts read leniently, judged strictly.

asyncssh reports an unknown and a changed key alike and refuses a whole file for one bad line, so the files
are read here. States: trusted, new, changed, revoked.
"""

import base64
import binascii
import fnmatch
import hashlib
import hmac
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import asyncssh

from console.core.errors import HostKeyChanged, HostKeyRevoked, HostKeyUnknown, InputError, NodeError

KeyState = Literal["trusted", "new", "changed", "revoked"]


@dataclass(frozen=True)
class KnownKey:
    """One readable line of a known_hosts file."""

    patterns: tuple[str, ...]
    key: asyncssh.SSHKey
    marker: Literal["", "cert-authority", "revoked"]
    path: Path
    line_number: int

    def names(self, name: str) -> bool:
        """Whether the line speaks of `name` (a host, an address, or `[host]:port`)."""
        wanted = name.lower()
        found = False
        for pattern in self.patterns:
            if pattern.startswith("|"):
                found = found or _hash_matches(pattern, wanted)
            elif pattern.startswith("!"):
                if _wildcard_matches(pattern[1:], wanted):
                    return False
            else:
                found = found or _wildcard_matches(pattern, wanted)
        return found


@dataclass(frozen=True)
class KnownHosts:
    """All readable lines of the files, and a warning for each line that was skipped."""

    keys: tuple[KnownKey, ...]
    warnings: tuple[str, ...]
    accept_into: Path
    """File that a newly accepted key is appended to."""

    def about(self, names: Iterable[str]) -> list[KnownKey]:
        wanted = [name for name in names if name]
        return [known for known in self.keys if any(known.names(name) for name in wanted)]

    def judge(self, names: Iterable[str], key: asyncssh.SSHKey) -> tuple[KeyState, list[KnownKey]]:
        """State of a key offered under these names, and the lines that led to it."""
        about = self.about(names)
        revoked = [known for known in about if known.marker == "revoked" and known.key == key]
        if revoked:
            return "revoked", revoked
        plain = [known for known in about if known.marker == ""]
        same = [known for known in plain if known.key == key]
        if same:
            return "trusted", same
        return ("changed", plain) if plain else ("new", [])


def read_known_hosts(paths: Sequence[Path]) -> KnownHosts:
    """Read the files in order; missing ones are empty, malformed lines are skipped with a warning.

    Raises InputError for the file name `none`, which in OpenSSH switches the check off.
    """
    keys: list[KnownKey] = []
    warnings: list[str] = []
    for path in paths:
        refuse_none(path)
        try:
            lines = path.expanduser().read_text("utf-8", "replace").splitlines()
        except FileNotFoundError:
            continue
        except OSError as error:
            warnings.append(f"{path}: not readable ({error.strerror})")
            continue
        for number, line in enumerate(lines, 1):
            stripped = line.strip()
            if not stripped or stripped.startswith("#"):
                continue
            known = _parse(stripped, path, number)
            if isinstance(known, str):
                warnings.append(f"{path}:{number}: line skipped: {known}")
            else:
                keys.append(known)
    return KnownHosts(tuple(keys), tuple(warnings), paths[0].expanduser())


def refuse_none(path: Path) -> None:
    """`UserKnownHostsFile none` means no check at all, which the console never does."""
    if str(path).lower() == "none":
        raise InputError(
            "host keys would not be checked: known_hosts file is `none`",
            why="`UserKnownHostsFile none` in the ssh_config, or in the profile, switches the check off",
            next_step="name a file, or remove the line; a new key is then shown for you to compare",
        )


def host_names(host: str, port: int) -> tuple[str, ...]:
    """How known_hosts names a host: `[host]:port` unless the port is 22."""
    return (host,) if port == 22 else (f"[{host}]:{port}",)


def known_hosts_line(name: str, key: asyncssh.SSHKey) -> str:
    """The line that makes `key` known under `name`."""
    kind, data = key.export_public_key("openssh").decode("ascii").split()[:2]
    return f"{name} {kind} {data}"


def fingerprint(key: asyncssh.SSHKey) -> str:
    """`SHA256:…` as `ssh-keygen -l` prints it."""
    return key.get_fingerprint("sha256")


def accept(line: str, path: Path) -> None:
    """Append one known_hosts line to `path` (made if need be, mode 600), in one write."""
    path = path.expanduser()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        broken_end = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, (("\n" if broken_end else "") + line.strip() + "\n").encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refusal(
    node: str, name: str, state: KeyState, key: asyncssh.SSHKey, known: Sequence[KnownKey], hosts: KnownHosts
) -> NodeError:
    """The error that says what is wrong with the key and what a person can do about it."""
    offered = fingerprint(key)
    kind = key.get_algorithm()
    where = "; ".join(f"{entry.path}:{entry.line_number}" for entry in known)
    if state == "revoked":
        return HostKeyRevoked(
            node,
            f"host key {offered} is revoked",
            why=f"{where} marks this key as @revoked",
            next_step="do not connect; ask whoever runs the node for its present key",
        )
    if state == "changed":
        old = ", ".join(fingerprint(entry.key) for entry in known)
        return HostKeyChanged(
            node,
            "the host key has changed",
            why=f"known: {old} ({where}); offered now: {kind} {offered}. The node was installed anew, or "
            "somebody stands in between",
            next_step=f"compare with the node's own console; if it is right: ssh-keygen -R '{name}' -f "
            f"{known[0].path}",
        )
    return HostKeyUnknown(
        node,
        fingerprint=offered,
        known_hosts_line=known_hosts_line(name, key),
        accept_into=str(hosts.accept_into),
        why=f"{name} is in no known_hosts file ({kind} key)",
        next_step="compare it with the node's own console: ssh-keygen -lf "
        f"/etc/ssh/ssh_host_{_file_kind(kind)}_key.pub; if it is the same, "
        f"`lab doctor PROFILE --accept-new` writes it into {hosts.accept_into}",
    )


def _file_kind(algorithm: str) -> str:
    for kind in ("ed25519", "ecdsa", "rsa"):
        if kind in algorithm:
            return kind
    return "ed25519"


def _parse(line: str, path: Path, number: int) -> KnownKey | str:
    """The line, or why it can't be read."""
    marker = ""
    if line.startswith("@"):
        marker, _, line = line[1:].partition(" ")
        if marker not in ("cert-authority", "revoked"):
            return f"unknown marker @{marker[:30]}"
    patterns, _, data = line.strip().partition(" ")
    if not data.strip():
        return "no key"
    for pattern in patterns.split(","):
        if pattern.startswith("|") and _hash_parts(pattern) is None:
            return "malformed hashed name"
    try:
        key = asyncssh.import_public_key(data.strip())
    except (asyncssh.KeyImportError, ValueError) as error:
        return str(error)
    return KnownKey(tuple(patterns.split(",")), key, marker, path, number)  # type: ignore[arg-type]


def _wildcard_matches(pattern: str, name: str) -> bool:
    # Only * and ? are wildcards in known_hosts; brackets are part of [host]:port.
    return fnmatch.fnmatchcase(name, pattern.lower().replace("[", "[[]"))


def _hash_parts(pattern: str) -> tuple[bytes, bytes] | None:
    parts = pattern.split("|")
    if len(parts) != 4 or parts[1] != "1":
        return None
    try:
        return base64.b64decode(parts[2], validate=True), base64.b64decode(parts[3], validate=True)
    except binascii.Error:
        return None


def _hash_matches(pattern: str, name: str) -> bool:
    parts = _hash_parts(pattern)
    if parts is None:
        return False
    salt, digest = parts
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)
