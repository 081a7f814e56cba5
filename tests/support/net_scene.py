"""A followed log on a node behind a cable that can be cut, with everything that was shown meanwhile.

The node is a real sshd in a network namespace of its own; a job there writes numbered lines all the time.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from console.core.errors import LabError
from console.nodes import jobs
from console.nodes.ssh import LinkState, Node, SshTarget
from support.followed import Followed, readers
from support.hosts import SSHD, SshdHost
from support.namespaces import Namespace, joined_namespace
from support.processes import end_processes_of
from support.proxy import Proxy
from support.waiting import until

SHOWN_SECONDS = 25
"""A link that was cut is shown as down no later than this after the cut."""
PATIENCE_SECONDS = 90
"""For whatever comes in the end, on a machine that is busy with other things."""

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

    @contextlib.contextmanager
    def burst(self) -> Iterator[None]:
        """The job writes 25 times as fast in the block."""
        (self.folder / "burst").touch()
        yield
        (self.folder / "burst").unlink()

    async def sees_the_job(self) -> None:
        before = len(self.looks)
        await until(lambda: len(self.looks) > before, "the job is looked at", PATIENCE_SECONDS)

    async def receives(self, count: int) -> None:
        """Return when so many more bytes came."""
        goal = self.tail.end + count
        await until(lambda: self.tail.end >= goal, f"{count} more bytes", PATIENCE_SECONDS)

    async def shows_the_cut(self, since: float) -> None:
        """The link is shown as down and the stream as not delivering; by their own ages, in time."""
        await until(lambda: self.node.link.state != "up", "the link is shown as down", PATIENCE_SECONDS)
        await until(lambda: self.tail.stream.state in ("lost", "stalled"), "the stream is not live")
        assert self.node.link.changed_at_monotonic - since <= SHOWN_SECONDS
        assert self.tail.stream.changed_at_monotonic - since <= SHOWN_SECONDS
        assert self.node.link.why

    async def stays_down(self, until_monotonic: float) -> None:
        """From now to that moment nothing but the loss of contact is shown, however often one looks."""
        shown = len(self.links)
        seconds = until_monotonic - time.monotonic()
        await until(
            lambda: time.monotonic() >= until_monotonic, "the outage ends", seconds + PATIENCE_SECONDS
        )
        assert all(link.state != "up" for link in [*self.links[shown:], self.node.link])
        assert self.tail.stream.state in ("lost", "stalled")
        assert self.refused, "no look at the job was refused"

    async def recovers(self) -> None:
        """Link, stream and look at the job are back, with one reader on the node."""
        await self.node.wait_up(PATIENCE_SECONDS)
        behind = self.log.stat().st_size
        await until(lambda: self.tail.end >= behind, "what was missed came", PATIENCE_SECONDS)
        await self.sees_the_job()
        await until(lambda: self.tail.stream.state == "live", "the stream is live", PATIENCE_SECONDS)
        await until(lambda: readers(self.host) == 1, "one reader is left", PATIENCE_SECONDS)

    async def proves_the_log(self) -> None:
        """The job ends by itself; then mirror, deliveries and the node's file are the same lines."""
        (self.folder / "enough").touch()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (ended := await jobs.look(self.node, "lab", "E0")).state != "ended":
                assert ended.state == "running"
        assert ended.exit_code == 0
        proof = await self.tail.finish(PATIENCE_SECONDS)
        content = self.log.read_bytes()
        assert proof.same
        assert self.tail.mirror.read_bytes() == content == self.followed.delivered()
        numbers = [int(line.split()[0]) for line in content.splitlines()]
        assert numbers == list(range(len(numbers)))
        assert self.followed.events == []


@asynccontextmanager
async def cabled_host(tmp_path: Path) -> AsyncIterator[tuple[Namespace, SshdHost]]:
    """sshd inside a namespace, reachable over its cable only; skips the test where there can be none."""
    if SSHD is None:
        pytest.skip("no sshd here: apt-get install openssh-server")
    async with AsyncExitStack() as stack:
        cable = stack.enter_context(joined_namespace())
        host = SshdHost("node-a", tmp_path / "host")
        host.front, host.address = tuple(cable.front), cable.theirs
        host.root.mkdir()
        stack.callback(end_processes_of, tmp_path)
        await host.start()
        stack.push_async_callback(host.stop)
        stack.callback(host.thaw)
        yield cable, host


@asynccontextmanager
async def scene(host: SshdHost, tmp_path: Path, *, target: SshTarget | None = None) -> AsyncIterator[Scene]:
    """A running job whose log is followed; afterwards its whole story is checked."""
    node = Node(target or host.target)
    await node.connect()
    started = await jobs.start(node, jobs.JobPlan("lab", "E0", (sys.executable, "-c", WRITER)))
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


@asynccontextmanager
async def scene_behind_proxy(host: SshdHost, tmp_path: Path) -> AsyncIterator[tuple[Proxy, Scene]]:
    async with (
        Proxy(host.port, host.address) as proxy,
        scene(host, tmp_path, target=host.through(proxy.port)) as one,
    ):
        yield proxy, one
