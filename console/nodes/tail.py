"""A remote file as a gap-free stream of bytes, kept in a byte-exact mirror.

A small reader on the node sends the file as frames over one channel and ends with it. What the mirror holds
is checked against the node before anything is added to it, so a lost link, a restart of the console or a
rotation of the file leaves neither gap nor repeat.
"""

import asyncio
import contextlib
import hashlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from console.core.errors import LabError, NodeError
from console.nodes.mirror import Mirror, MirrorProof
from console.nodes.remote_file import SLOW_BYTES_PER_SECOND, RemoteFile
from console.nodes.ssh import Node
from console.nodes.tail_delivery import Delivery, TailEvent
from console.nodes.tail_frames import tail_frames
from console.nodes.tail_state import StreamState, StreamWatch

_END_WINDOW_BYTES = 256 * 1024
_MOST_FETCH_BYTES = 4 * 2**20
_OVERLAP_BYTES = 64
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 5.0


class Tail:
    """Mirrors one remote file. Offsets in mirror and remote file are the same numbers."""

    def __init__(
        self,
        node: Node,
        remote_path: str,
        mirror: Path,
        on_bytes: Callable[[bytes, int], None],
        *,
        on_event: Callable[[TailEvent], None] | None = None,
        start: Literal["begin", "end"] = "begin",
    ) -> None:
        """`on_bytes(data, start_offset)` is called in order, without gap or repeat, within a segment.

        A mirror that is there already is checked against the node and continued; what it holds is not
        delivered again. `start="end"` begins a new mirror 256 KiB before the end of a larger file.
        `remote_path` may begin with `~/`. Raises OSError when the mirror can't be opened.
        """
        self._node = node
        self._file = RemoteFile(node, remote_path)
        self._window = _END_WINDOW_BYTES if start == "end" else 0
        self._mirror = Mirror(mirror)
        self._watch = StreamWatch()
        self._delivery = Delivery(self._file, self._mirror, self._watch, on_bytes, on_event)
        # The same for every reader of this log for this mirror: a new reader ends the one before it.
        place = f"{socket.gethostname()}\0{mirror.absolute()}\0{node.name}\0{remote_path}"
        self._reader_id = hashlib.sha256(place.encode()).hexdigest()[:24]
        self._news = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    @property
    def stream(self) -> StreamState:
        """How it stands at this moment."""
        return self._watch.now()

    @property
    def base(self) -> int:
        """First offset the mirror holds (0: it is whole); before it the mirror has a hole."""
        return self._mirror.mark.base

    @property
    def end(self) -> int:
        """Offset after the last byte the mirror holds."""
        return self._mirror.end

    @property
    def segment(self) -> int:
        """0 until the remote file was rotated, truncated or replaced."""
        return self._mirror.mark.segment

    @property
    def mirror(self) -> Path:
        """Mirror of the current segment."""
        return self._mirror.path

    async def start(self) -> None:
        """Begin to follow; returns at once, works in the background through losses of the link."""
        if self._task is None:
            name = f"tail on {self._node.name}: {self._file.path}"
            self._task = asyncio.create_task(self._follow(), name=name)

    async def close(self) -> None:
        """Stop following; the reader on the node ends. Raises what a callback raised."""
        try:
            await self._stop()
        finally:
            self._watch.turn("lost", "closed")
            self._mirror.close()

    async def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            if not task.done():
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def fetch_before(self, count: int = _END_WINDOW_BYTES) -> tuple[bytes, int]:
        """Fetch up to `count` bytes before `base` into the mirror; returns them and their start offset.

        Raises NodeError, also when the node's file is no longer the mirrored one.
        """
        base = self.base
        start = max(0, base - min(count, _MOST_FETCH_BYTES))
        if start == base:
            return b"", base
        overlap = self._mirror.read(base, min(_OVERLAP_BYTES, self.end - base))
        wanted = base - start + len(overlap)
        data = await self._file.read(self._mirror.mark.inode, start, wanted)
        if base != self.base or len(data) != wanted or data[base - start :] != overlap:
            raise NodeError(
                self._node.name,
                f"{self._file.path} is no longer the file that was followed",
                next_step="its older part can't be fetched any more; what the mirror holds stays",
            )
        older = data[: base - start]
        self._mirror.prepend(older)
        return older, start

    async def finish(self, timeout: float = 60.0) -> MirrorProof:
        """After the job ended: fetch everything, compare sha256 with the node, stop following.

        A mirror that is gone or not what the node has is fetched once more from the first byte.
        Raises NodeError when the rest does not come within `timeout` seconds.
        """
        size = await self._file.size()
        await self._reach(size, timeout)
        proof = await self._prove()
        if not self._mirror.intact or (not proof.same and size >= self.end):
            await self._stop()
            try:
                self._delivery.begin_again("it was removed, or is not what the node has")
            except OSError as error:
                raise self._unwritable(error) from None
            await self.start()
            await self._reach(size, timeout + size / SLOW_BYTES_PER_SECOND)
            proof = await self._prove()
        await self.close()
        return proof

    async def _reach(self, size: int, timeout: float) -> None:
        """Return when the mirror holds the file from its first byte to `size`."""
        try:
            async with asyncio.timeout(timeout):
                await self.wait_for(size)
        except TimeoutError:
            raise NodeError(
                self._node.name,
                f"{size - self.end} bytes of {self._file.path} did not come within {timeout:.0f} s",
                why=self.stream.why,
                next_step="check the link; finishing again goes on where this stopped",
            ) from None
        while self.base > 0:
            await self.fetch_before(_MOST_FETCH_BYTES)

    async def _prove(self) -> MirrorProof:
        length = self._mirror.size
        theirs = await self._file.sha256(length)
        mine = await asyncio.to_thread(self._mirror.sha256, length)
        return MirrorProof(mine, theirs, length)

    async def wait_for(self, end: int) -> None:
        """Return when the mirror reaches to `end`. Raises what a callback raised."""
        async with self._news:
            while self.end < end:
                if self._task is not None and self._task.done():
                    await self._task
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await self._news.wait()

    async def _follow(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            if self._node.link.state != "up":
                self._watch.turn("lost", self._node.link.why or "no link")
            await self._node.until_up()
            began = time.monotonic()
            try:
                if not self._mirror.intact:
                    self._delivery.begin_again("it was removed or cut short")
                await self._follow_once()
                self._watch.turn("lost", "the reader ended")
            except LabError as error:
                self._watch.turn("lost", error.render())
            except OSError as error:
                self._watch.turn("lost", self._unwritable(error).what)
            if time.monotonic() - began > _LONGEST_PAUSE_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    async def _follow_once(self) -> None:
        """Take frames until the reader ends, or the mirror is no longer there to be added to."""
        digest, length = self._mirror.last_hash()
        mark = self._mirror.mark
        resume: dict[str, int | str] = {
            "inode": mark.inode,
            "base": mark.base,
            "offset": self._mirror.end,
            "hash": digest,
            "hash_bytes": length,
            "window": self._window if mark.segment == 0 else 0,
        }
        async with tail_frames(self._file, self._reader_id, resume) as reader:
            while (frames := await reader.next()) is not None:
                if not self._mirror.intact:
                    return
                self._watch.heard()
                for frame in frames:
                    self._delivery.take(frame)
                if frames:
                    async with self._news:
                        self._news.notify_all()
            if self._mirror.intact:
                raise reader.ended()

    def _unwritable(self, error: OSError) -> NodeError:
        return NodeError(
            self._node.name,
            f"the mirror {self.mirror} can't be written: {error.strerror}",
            next_step="see that its folder can be written and has room",
        )
