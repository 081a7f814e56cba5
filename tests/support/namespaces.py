"""Network namespaces of the tests' own: a place behind a cable that can be cut, narrowed and made lossy."""

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class Namespace:
    """A network namespace joined to ours by a pair of interfaces."""

    def __init__(self) -> None:
        mark = uuid.uuid4().hex[:6]
        self.name, self._link, self._peer = f"lab{mark}", f"lv{mark}", f"lw{mark}"
        third = int(mark[:2], 16)
        fourth = int(mark[2:4], 16) & 0xFC
        self.ours, self.theirs = f"10.211.{third}.{fourth | 1}", f"10.211.{third}.{fourth | 2}"
        """Our address on the cable, and that of the namespace."""

    @property
    def front(self) -> list[str]:
        """What to put before a command so that it runs inside."""
        return ["ip", "netns", "exec", self.name]

    def open(self) -> None:
        """Make it. Raises CalledProcessError with what `ip` said."""
        _ip("netns", "add", self.name)
        _ip("link", "add", self._link, "type", "veth", "peer", "name", self._peer, "netns", self.name)
        _ip("addr", "add", f"{self.ours}/30", "dev", self._link)
        _ip("link", "set", self._link, "up")
        _ip("-n", self.name, "addr", "add", f"{self.theirs}/30", "dev", self._peer)
        self.plug_in()

    def close(self) -> None:
        for command in (["link", "del", self._link], ["netns", "del", self.name]):
            subprocess.run(["ip", *command], check=False, capture_output=True)

    def pull_out(self) -> None:
        """Take the cable out: nothing goes through, and neither side is told."""
        _ip("-n", self.name, "link", "set", self._peer, "down")

    def plug_in(self) -> None:
        _ip("-n", self.name, "link", "set", self._peer, "up")

    def drop_packets(self) -> None:
        for chain in ("INPUT", "OUTPUT"):
            subprocess.run([*self.front, "iptables", "-A", chain, "-j", "DROP"], check=True)

    def lose(self, share: float) -> None:
        """Drop this share of the packets in each direction; skips the test without the statistic match."""
        rule = ["-m", "statistic", "--mode", "random", "--probability", f"{share}", "-j", "DROP"]
        for chain in ("INPUT", "OUTPUT"):
            self._or_skip(["iptables", "-A", chain, *rule], "iptables -m statistic")

    def dropped_packets(self) -> int:
        """How many packets the rules of `lose` have dropped."""
        shown = subprocess.run(
            [*self.front, "iptables", "-nvxL"], check=True, capture_output=True, text=True
        ).stdout
        return sum(int(line.split()[0]) for line in shown.splitlines() if " statistic " in line)

    def narrow(self, rate: str) -> None:
        """Let out no more than `rate`, as tc writes it; skips the test without tbf."""
        limits = ["rate", rate, "burst", "4kb", "latency", "2s"]
        self._or_skip(["tc", "qdisc", "add", "dev", self._peer, "root", "tbf", *limits], "tc tbf")

    def _or_skip(self, command: list[str], feature: str) -> None:
        try:
            done = subprocess.run([*self.front, *command], capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            pytest.skip(f"{feature} is missing here: {error}")
        if done.returncode != 0:
            pytest.skip(f"{feature} does not work here: {done.stderr.strip()}")


@contextmanager
def joined_namespace() -> Iterator[Namespace]:
    """A namespace for one test; skips it, with the reason, where none can be made."""
    if os.getuid() != 0 or not shutil.which("ip") or not shutil.which("iptables"):
        pytest.skip("network namespaces need root, iproute2 and iptables")
    namespace = Namespace()
    try:
        try:
            namespace.open()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespace can be made here: {error.stderr.strip()}")
        yield namespace
    finally:
        namespace.close()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
