"""Links that are slow, lossy, narrow, cut or frozen: a followed log keeps every byte, a job its true state.

The node is a real sshd in a network namespace of its own; a job there writes numbered lines all the time.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.followed import Followed, readers
from support.hosts import SSHD, SshdHost
from support.namespaces import Namespace, joined_namespace
from support.processes import end_processes_of
from support.proxy import Proxy
from support.waiting import until

from console.core.errors import LabError
from console.nodes import jobs
from console.nodes.ssh import LinkState, Node, SshTarget

pytestmark = pytest.mark.sshd

SHOWN_SECONDS = 25
"""A cut link is shown as down within this."""
OUTAGE_SECONDS = 27
"""Longer than keep-alive needs to notice."""
DELAY_SECONDS = 3.0
LOST_SHARE = 0.2
NARROW_RATE = "64kbit"
RECOVERY_SECONDS = 60

WRITER = """
import itertools, pathlib, time
for number in itertools.count():
    print(f"{number:08d} {'x' * 40}", flush=True)
    if pathlib.Path("enough").exists():
        break
    time.sleep(0.002 if pathlib.Path("burst").exists() else 0.05)
"""


class Scene:
    """A job on a node, its log followed, and everything that was ever shown of link, stream and job."""

    def __init__(self, node: Node, host: SshdHost, mirror: Path) -> None:
        self.node, self.host = node, host
        self.followed = Followed(node, jobs.log_path("lab", "E0"), mirror)
        self.tail = self.followed.tail
        self.folder = host.home / ".lab" / "lab" / "E0"
        self.log = self.folder / "log"
        self.links: list[LinkState] = []
        self.looks: list[jobs.JobState] = []
        self.refused: list[str] = []
        node.add_link_listener(self.links.append)

    async def watch_job(self) -> None:
        """Look at the job all the time; not being able to look is no state of a job."""
        while True:
            try:
                self.looks.append(await jobs.look(self.node, "lab", "E0"))
            except LabError as error:
                self.refused.append(error.render())
            await asyncio.sleep(0.5)

    async def sees_the_job(self) -> None:
        before = len(self.looks)
        await until(lambda: len(self.looks) > before, "the job is looked at", RECOVERY_SECONDS)

    async def receives(self, count: int, seconds: float = RECOVERY_SECONDS) -> None:
        """Return when so many more bytes came."""
        goal = self.tail.end + count
        await until(lambda: self.tail.end >= goal, f"{count} more bytes", seconds)

    async def shows_the_cut(self) -> None:
        """The link is shown as down, and the stream as not delivering."""
        await until(lambda: self.node.link.state != "up", "the link is shown as down", SHOWN_SECONDS)
        await until(lambda: self.tail.stream.state in ("lost", "stalled"), "the stream is not live")
        assert self.node.link.why

    async def recovers(self) -> None:
        """Link, stream and look at the job are back, with one reader on the node."""
        await self.node.wait_up(RECOVERY_SECONDS)
        behind = self.log.stat().st_size
        await until(lambda: self.tail.end >= behind, "what was missed came", RECOVERY_SECONDS)
        await self.sees_the_job()
        await until(lambda: self.tail.stream.state == "live", "the stream is live")
        await until(lambda: readers(self.host) == 1, "one reader is left")

    async def proves_the_log(self) -> None:
        """The job ends by itself; then mirror, deliveries and the node's file are the same lines."""
        (self.folder / "enough").touch()
        async with asyncio.timeout(RECOVERY_SECONDS):
            while (ended := await jobs.look(self.node, "lab", "E0")).state != "ended":
                assert ended.state == "running"
        assert ended.exit_code == 0
        proof = await self.tail.finish(RECOVERY_SECONDS)
        content = self.log.read_bytes()
        assert proof.same
        assert self.tail.mirror.read_bytes() == content == self.followed.delivered()
        numbers = [int(line.split()[0]) for line in content.splitlines()]
        assert numbers == list(range(len(numbers)))
        assert self.followed.events == []


@pytest.fixture
def cable() -> Iterator[Namespace]:
    """The node's namespace and the cable to it."""
    if SSHD is None:
        pytest.skip("no sshd here: apt-get install openssh-server")
    with joined_namespace() as namespace:
        yield namespace


@pytest.fixture
async def host(cable: Namespace, tmp_path: Path) -> AsyncIterator[SshdHost]:
    """sshd inside the namespace, reachable over the cable only."""
    host = SshdHost("node-a", tmp_path / "host")
    host.front, host.address = tuple(cable.front), cable.theirs
    host.root.mkdir()
    try:
        await host.start()
        yield host
    finally:
        host.thaw()
        await host.stop()
        end_processes_of(tmp_path)


@asynccontextmanager
async def scene(host: SshdHost, tmp_path: Path, *, target: SshTarget | None = None) -> AsyncIterator[Scene]:
    """A running job whose log is followed; afterwards its whole story is checked."""
    node = Node(target or host.target)
    await node.connect()
    writer = (sys.executable, "-c", WRITER)
    started = await jobs.start(node, jobs.JobPlan("lab", "E0", writer))
    one = Scene(node, host, tmp_path / "mirrors" / "log")
    watching = asyncio.create_task(one.watch_job())
    try:
        await one.tail.start()
        await one.receives(1000)
        await one.sees_the_job()
        yield one
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        assert {(look.state, look.pid) for look in one.looks} == {("running", started.pid)}
        await one.proves_the_log()
    finally:
        watching.cancel()
        await one.tail.close()
        await node.close()


async def test_a_delay_of_seconds_is_no_outage(host: SshdHost, tmp_path: Path) -> None:
    async with (
        Proxy(host.port, host.address) as proxy,
        scene(host, tmp_path, target=host.through(proxy.port)) as one,
    ):
        proxy.delay_seconds = DELAY_SECONDS
        await one.receives(5000)
        await one.sees_the_job()
        rtt = one.node.link.rtt_seconds
        await until(
            lambda: (one.node.link.rtt_seconds or 0) > DELAY_SECONDS, f"the delay is shown, not {rtt}"
        )
        assert one.tail.stream.state == "live"
        assert (one.links, one.refused) == ([], [])
        proxy.delay_seconds = 0.0


async def test_a_lossy_link_loses_no_line(cable: Namespace, host: SshdHost, tmp_path: Path) -> None:
    async with scene(host, tmp_path) as one:
        cable.lose(LOST_SHARE)
        await one.receives(12_000)
        await one.sees_the_job()
        assert cable.dropped_packets() > 0


async def test_a_narrow_link_falls_behind_and_catches_up(
    cable: Namespace, host: SshdHost, tmp_path: Path
) -> None:
    async with scene(host, tmp_path) as one:
        cable.narrow(NARROW_RATE)
        burst = one.folder / "burst"
        burst.touch()
        await until(lambda: one.log.stat().st_size - one.tail.end > 50_000, "it falls behind")
        burst.unlink()
        behind = one.log.stat().st_size
        await one.sees_the_job()
        assert one.tail.stream.state == "live"
        await until(lambda: one.tail.end >= behind, "it catches up", RECOVERY_SECONDS)
        assert (one.links, one.refused) == ([], [])


async def test_a_link_that_is_down_for_a_while(cable: Namespace, host: SshdHost, tmp_path: Path) -> None:
    async with scene(host, tmp_path) as one:
        began = time.monotonic()
        cable.pull_out()
        await one.shows_the_cut()
        await until(lambda: one.refused, "a look at the job is refused")
        await until(lambda: time.monotonic() - began > OUTAGE_SECONDS, "the outage ends", OUTAGE_SECONDS)
        assert one.node.link.state != "up"
        missed = one.log.stat().st_size - one.tail.end
        assert missed > 0, "the job went on meanwhile"
        cable.plug_in()
        await one.recovers()


async def test_an_sshd_that_restarts(host: SshdHost, tmp_path: Path) -> None:
    async with scene(host, tmp_path) as one:
        await host.stop()
        await one.shows_the_cut()
        await host.start()
        await one.recovers()


async def test_a_frozen_node_is_shown_and_read_on_from(host: SshdHost, tmp_path: Path) -> None:
    async with scene(host, tmp_path) as one:
        host.freeze()
        await one.shows_the_cut()
        assert one.log.stat().st_size > one.tail.end, "the job went on meanwhile"
        host.thaw()
        await one.recovers()
