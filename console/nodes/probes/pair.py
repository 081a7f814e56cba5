"""Pieces of the check between two nodes. `console/nodes/pair.py` decides who listens and who reaches.

Argument `action`, and with it:
  port          `port` (0: any free one): can it be listened on, and who holds it if not
  listen        `port`, `token`, `seconds`: answer whoever comes with the token, then end
  reach         `address`, `port`, `token`, `seconds`: resolve, connect, round trip, clock difference
  shared_write  `shared`, `name`, `token`, `create`: leave a token file in the shared folder
  shared_read   `shared`, `tokens` (name -> token), `seconds`: see those of the others
  shared_clean  `shared`, `name`: take one's own away
  cache         `shared`, `cache`: is the cache folder set, in the shared folder, and writable
  clock         the node's clock now
"""

import contextlib
import json
import os
import platform
import re
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from console.nodes.probes.kit import Failed, answer, os_kind, read_text

_ROUNDS = 8
_LINE_LIMIT = 4096


def pair(args: dict[str, Any]) -> dict[str, Any]:
    action = str(args.get("action"))
    if action not in _ACTIONS:
        raise Failed("bad arguments", f"no action {action!r}")
    return _ACTIONS[action](args)


def port(args: dict[str, Any]) -> dict[str, Any]:
    with _listener(int(args.get("port") or 0)) as server:
        return {"port": server.getsockname()[1]}


def listen(args: dict[str, Any]) -> dict[str, Any]:
    token = str(args["token"])
    deadline = time.monotonic() + float(args["seconds"])
    strangers = 0
    with _listener(int(args["port"])) as server:
        while (left := deadline - time.monotonic()) > 0:
            server.settimeout(left)
            try:
                link, peer = server.accept()
            except TimeoutError:
                break
            with link, contextlib.suppress(OSError):
                link.settimeout(min(10.0, max(left, 0.1)))
                if _serve(link, token):
                    return {"came_from": str(peer[0]), "strangers": strangers}
            strangers += 1
    raise Failed("nobody came", f"no connection with the token on port {args['port']}", strangers=strangers)


def reach(args: dict[str, Any]) -> dict[str, Any]:
    address, number, token = str(args["address"]), int(args["port"]), str(args["token"])
    deadline = time.monotonic() + float(args["seconds"])
    try:
        found = socket.getaddrinfo(address, number, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Failed("unknown name", f"{address}: {error}", address=address) from error
    resolved = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    error_text, kind = f"{address} has no address", "unknown name"
    while True:
        for family, sort, protocol, _, place in found:
            try:
                with socket.socket(family, sort, protocol) as link:
                    link.settimeout(max(0.2, min(3.0, deadline - time.monotonic())))
                    link.connect(place)
                    return {
                        "address": address,
                        "resolved": resolved,
                        "via": str(place[0]),
                        **_ask(link, token),
                    }
            except OSError as error:
                error_text, kind = f"{place[0]} port {number}: {error}", _reach_kind(error)
        # The other side may not listen yet; a refusal or a stranger before the deadline proves nothing.
        if time.monotonic() >= deadline:
            raise Failed(kind, error_text, address=address, resolved=resolved)
        time.sleep(0.2)


class _Stranger(OSError):
    """Something answers on the port, but not what was asked to listen there."""


def _ask(link: socket.socket, token: str) -> dict[str, Any]:
    """Exchange the token a few times; the quickest exchange gives the round trip and the clock difference.

    The difference is the other clock minus this one, as if the answer was given half-way through the round
    trip; it can't be off by more than half of that.
    """
    best: tuple[float, float] | None = None
    with link.makefile("rwb") as stream:
        for _ in range(_ROUNDS):
            sent = time.time_ns()
            began = time.perf_counter_ns()
            stream.write(token.encode() + b"\n")
            stream.flush()
            line = stream.readline(_LINE_LIMIT)
            took = (time.perf_counter_ns() - began) / 1e9
            try:
                said = json.loads(line)
                theirs, same = int(said["time_ns"]), said["token"] == token
            except (ValueError, KeyError, TypeError):
                same = False
            if not same:
                raise _Stranger(f"something else answers there: {line[:80]!r}")
            skew = (theirs - sent) / 1e9 - took / 2
            if best is None or took < best[0]:
                best = (took, skew)
        stream.write(b"end\n")
        stream.flush()
    assert best is not None
    return {
        "rtt_seconds": best[0],
        "skew_seconds": best[1],
        "skew_uncertainty_seconds": best[0] / 2,
        "peer_hostname": str(said.get("hostname")),
    }


def _serve(link: socket.socket, token: str) -> bool:
    """Answer the token until the peer ends; False for a peer that doesn't know it."""
    with link.makefile("rwb") as stream:
        while True:
            line = stream.readline(_LINE_LIMIT).strip()
            if line == b"end":
                return True
            if line != token.encode():
                return False
            said = {"token": token, "time_ns": time.time_ns(), "hostname": platform.node()}
            stream.write(json.dumps(said).encode() + b"\n")
            stream.flush()


def _reach_kind(error: OSError) -> str:
    if isinstance(error, _Stranger):
        return "stranger"
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    if isinstance(error, TimeoutError):
        return "timed out"
    return "no route" if error.errno in (101, 113) else "network"


def _listener(number: int) -> socket.socket:
    """Listen as the rendezvous does, on every address. Raises Failed with whoever holds the port."""
    try:
        if socket.has_dualstack_ipv6():
            with contextlib.suppress(OSError):
                return socket.create_server(("::", number), family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server(("", number))
    except OSError as error:
        if error.errno != 98:
            raise Failed("port refused", f"port {number}: {error}", port=number) from error
        holder = _holder(number)
        raise Failed(
            "port taken",
            f"port {number}: {error}; held by {holder or 'another user'}",
            port=number,
            holder=holder,
        ) from error


def _holder(number: int) -> str | None:
    """The process that listens on the port, as far as this user may see: `name (pid)`."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in (read_text(table) or "").splitlines()[1:]:
            parts = line.split()
            if len(parts) > 9 and parts[3] == "0A" and int(parts[1].rsplit(":", 1)[1], 16) == number:
                inodes.add(f"socket:[{parts[9]}]")
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(str(Path(entry.path).readlink()) in inodes for entry in os.scandir(process / "fd")):
                return f"{(read_text(process / 'comm') or '?').strip()} (pid {process.name})"
    return None


def shared_write(args: dict[str, Any]) -> dict[str, Any]:
    folder = Path(str(args["shared"])).expanduser()
    if args.get("create"):
        folder.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        raise Failed("missing", f"no folder {folder}", shared=str(folder))
    place = _token_place(folder, str(args["name"]))
    facts = {"shared": str(folder), **_mount(folder), "free_bytes": shutil.disk_usage(folder).free}
    try:
        with place.open("w", encoding="utf-8") as stream:
            stream.write(str(args["token"]))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise Failed(os_kind(error), str(error), **facts) from error
    status = place.stat()
    return {**facts, "device": status.st_dev, "inode": status.st_ino}


def shared_read(args: dict[str, Any]) -> dict[str, Any]:
    folder = Path(str(args["shared"])).expanduser()
    wanted = {str(name): str(token) for name, token in dict(args["tokens"]).items()}
    deadline = time.monotonic() + float(args.get("seconds") or 5)
    while True:
        # Listing the folder makes a network file system ask its server again.
        with contextlib.suppress(OSError):
            list(folder.iterdir())
        seen = {name: read_text(_token_place(folder, name)) == token for name, token in wanted.items()}
        if all(seen.values()) or time.monotonic() >= deadline:
            break
        time.sleep(0.2)
    unseen = sorted(name for name, there in seen.items() if not there)
    facts = {"shared": str(folder), "seen": seen}
    if unseen:
        raise Failed("not shared", f"files written by {', '.join(unseen)} are not seen in {folder}", **facts)
    return facts


def shared_clean(args: dict[str, Any]) -> dict[str, Any]:
    folder = Path(str(args["shared"])).expanduser()
    _token_place(folder, str(args["name"])).unlink(missing_ok=True)
    return {}


def cache(args: dict[str, Any]) -> dict[str, Any]:
    """The cache of the runs; a folder that does not exist yet is made, as the first run would do."""
    if not args.get("cache"):
        raise Failed("not set", "MODELSCOPE_CACHE is not set for the runs", on_shared=None, writable=None)
    place = Path(str(args["cache"])).expanduser()
    shared = Path(str(args["shared"])).expanduser().resolve()
    inside = place.resolve().is_relative_to(shared)
    facts: dict[str, Any] = {"cache": str(place), "on_shared": inside, "writable": False}
    mark = place / f".lab-cache-{platform.node()}-{os.getpid()}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        mark.write_text("x", encoding="utf-8")
        mark.unlink()
    except OSError as error:
        raise Failed(os_kind(error), str(error), **facts) from error
    facts |= {"writable": True, "free_bytes": shutil.disk_usage(place).free}
    if not inside:
        raise Failed("not on the shared folder", f"{place} is not below {shared}", **facts)
    return facts


def clock(args: dict[str, Any]) -> dict[str, Any]:
    return {"time_ns": time.time_ns()}


def _token_place(folder: Path, name: str) -> Path:
    return folder / f".lab-pair-{re.sub(r'[^A-Za-z0-9._-]', '_', name)}"


def _mount(folder: Path) -> dict[str, Any]:
    """File system type and source of the mount that holds the folder."""
    real = folder.resolve()
    best: tuple[int, str | None, str | None] = (-1, None, None)
    for line in (read_text("/proc/self/mounts") or "").splitlines():
        parts = line.split()
        if len(parts) < 3:
            continue
        point = parts[1].replace("\\040", " ")
        # Of two mounts at one point the later one counts.
        if real.is_relative_to(point) and len(point) >= best[0]:
            best = (len(point), parts[2], parts[0])
    return {"filesystem": best[1], "source": best[2]}


_ACTIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "port": port,
    "listen": listen,
    "reach": reach,
    "shared_write": shared_write,
    "shared_read": shared_read,
    "shared_clean": shared_clean,
    "cache": cache,
    "clock": clock,
}

if __name__ == "__main__":
    answer(pair)
