"""A remote file as a gap-free stream of bytes, kept in a byte-exact mirror.

A small reader on the node sends the file as frames over one channel and ends with it. What the mirror holds
is checked against the node before anything is added to it, so a lost link, a restart of the console or a
rotation of the file leaves neither gap nor repeat.
"""

import asyncio
import contextlib
import hashlib
import json
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from console.core.errors import LabError, NodeError
from console.nodes import remote
from console.nodes.channel import Stream
from console.nodes.mirror import Mirror
from console.nodes.ssh import Node
from console.nodes.text import clean

_END_WINDOW_BYTES = 256 * 1024
_MOST_FETCH_BYTES = 4 * 2**20
_OVERLAP_BYTES = 64
_SAY_SECONDS = 5.0
_STALLED_SECONDS = 10.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 5.0
_SLOW_BYTES_PER_SECOND = 20e6
_HEAD = struct.Struct(">cQI")

_FOLLOW = """
export LAB_READER=$2
exec "$1" -I /dev/fd/9 "$4" "LAB_READER=$2" "$5" 9<<<"$3"
"""
_FETCH = """
path=$1; case $path in "~/"*) path=$HOME/${path#"~/"} ;; esac
exec 3<"$path" || exit 1
[ "$(stat -Lc %i /proc/self/fd/3)" = "$2" ] || { echo "the file was replaced" >&2; exit 1; }
tail -c "+$(($3 + 1))" <&3 | head -c "$4"
"""
_SIZE = """
path=$1; case $path in "~/"*) path=$HOME/${path#"~/"} ;; esac
stat -Lc "%i %s" "$path"
"""
_SHA256 = """
path=$1; case $path in "~/"*) path=$HOME/${path#"~/"} ;; esac
head -c "$2" "$path" | sha256sum
"""


@dataclass(frozen=True)
class StreamState:
    """Whether the tail delivers; says nothing about link or job."""

    state: Literal["waiting", "live", "stalled", "lost"]
    """waiting: no such file yet. live: the reader answers. stalled: it is silent. lost: no reader."""
    changed_at_monotonic: float
    heard_at_monotonic: float | None = None
    """Last sign of the reader, bytes or not."""
    bytes_at_monotonic: float | None = None
    """Last bytes of the file."""
    why: str = ""


@dataclass(frozen=True)
class TailEvent:
    """What makes the mirror not simply grow.

    `fetched again`: the mirror was removed or changed here, and is begun anew. Else the remote file is no
    longer the file it was, and bytes go on in a new segment with its own mirror.
    """

    kind: Literal["rotated", "truncated", "replaced", "fetched again"]
    segment: int
    mirror: Path
    lost_bytes: bool
    """Whether bytes of the old file may never have been seen."""
    why: str


@dataclass(frozen=True)
class MirrorProof:
    """sha256 of mirror and node's file, taken over the same length."""

    sha256: str
    node_sha256: str
    size_bytes: int

    @property
    def same(self) -> bool:
        return self.sha256 == self.node_sha256


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
        self._path = remote_path
        self._on_bytes = on_bytes
        self._on_event = on_event
        self._window = _END_WINDOW_BYTES if start == "end" else 0
        self._mirror = Mirror(mirror)
        self._delivered_to = self._mirror.end
        # The same for every reader of this log for this mirror: a new reader ends the one before it.
        place = f"{socket.gethostname()}\0{mirror.absolute()}\0{node.name}\0{remote_path}"
        self._reader_id = hashlib.sha256(place.encode()).hexdigest()[:24]
        self._state = StreamState("lost", time.monotonic(), why="not started")
        self._heard: float | None = None
        self._bytes_at: float | None = None
        self._news = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    @property
    def stream(self) -> StreamState:
        now = time.monotonic()
        state, since, why = self._state.state, self._state.changed_at_monotonic, self._state.why
        silent = now - self._heard if self._heard is not None else 0.0
        if state in ("live", "waiting") and silent > _STALLED_SECONDS:
            state, since, why = "stalled", now - silent + _STALLED_SECONDS, "the reader is silent"
        return StreamState(state, since, self._heard, self._bytes_at, why)

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
            self._task = asyncio.create_task(self._follow(), name=f"tail on {self._node.name}: {self._path}")

    async def close(self) -> None:
        """Stop following; the reader on the node ends. Raises what a callback raised."""
        try:
            await self._stop()
        finally:
            self._set("lost", "closed")
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
        answer = await self._node.run(
            _FETCH,
            args=(self._path, str(self._mirror.mark.inode), str(start), str(wanted)),
            timeout=120,
        )
        data = answer.stdout
        if base != self.base or len(data) != wanted or data[base - start :] != overlap:
            raise NodeError(
                self._node.name,
                f"{self._path} is no longer the file that was followed",
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
        answer = await self._node.run(_SIZE, args=(self._path,), timeout=30)
        size = int(answer.text.split()[1])
        await self._reach(size, timeout)
        proof = await self._prove()
        if not self._mirror.intact or (not proof.same and size >= self.end):
            await self._stop()
            try:
                self._begin_again("it was removed, or is not what the node has")
            except OSError as error:
                raise self._unwritable(error) from None
            await self.start()
            await self._reach(size, timeout + size / _SLOW_BYTES_PER_SECOND)
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
                f"{size - self.end} bytes of {self._path} did not come within {timeout:.0f} s",
                why=self.stream.why,
                next_step="check the link; finishing again goes on where this stopped",
            ) from None
        while self.base > 0:
            await self.fetch_before(_MOST_FETCH_BYTES)

    async def _prove(self) -> MirrorProof:
        length = self._mirror.size
        limit = 60 + length / _SLOW_BYTES_PER_SECOND
        answer = await self._node.run(_SHA256, args=(self._path, str(length)), timeout=limit)
        mine = await asyncio.to_thread(self._mirror.sha256, length)
        return MirrorProof(mine, str(answer.text.split()[0]), length)

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
                self._set("lost", self._node.link.why or "no link")
            await self._node.until_up()
            began = time.monotonic()
            try:
                if not self._mirror.intact:
                    self._begin_again("it was removed or cut short")
                await self._follow_once()
                self._set("lost", "the reader ended")
            except LabError as error:
                self._set("lost", error.render())
            except OSError as error:
                self._set("lost", self._unwritable(error).what)
            if time.monotonic() - began > _LONGEST_PAUSE_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    async def _follow_once(self) -> None:
        digest, length = self._mirror.last_hash()
        mark = self._mirror.mark
        resume = {
            "inode": mark.inode,
            "base": mark.base,
            "offset": self._mirror.end,
            "hash": digest,
            "hash_bytes": length,
            "window": self._window if mark.segment == 0 else 0,
        }
        args = (
            self._node.target.interpreter,
            self._reader_id,
            remote.source("tail_reader.py"),
            self._path,
            json.dumps(resume),
        )
        async with self._node.stream(_FOLLOW, args=args) as stream:
            saying = asyncio.create_task(_say_here(stream))
            try:
                await self._read_frames(stream)
            finally:
                saying.cancel()
                await asyncio.gather(saying, return_exceptions=True)
            if not self._mirror.intact:
                return
            raise NodeError(
                self._node.name,
                f"the reader of {self._path} ended (status {stream.exit_status})",
                why=stream.error_text[-400:],
                next_step=f"the node needs {self._node.target.interpreter}; the console tries again",
            )

    async def _read_frames(self, stream: Stream) -> None:
        """Take frames until the reader ends, or the mirror is no longer there to be added to."""
        buffer = bytearray()
        while data := await stream.read(4 * 65536):
            if not self._mirror.intact:
                return
            self._heard = time.monotonic()
            buffer += data
            frames = _whole_frames(buffer)
            for frame in frames:
                self._take(*frame)
            if frames:
                async with self._news:
                    self._news.notify_all()

    def _take(self, kind: bytes, offset: int, payload: bytes) -> None:
        if kind == b"D":
            self._take_data(offset, payload)
        elif kind == b"W":
            self._set("waiting", "no such file yet")
        elif kind == b"H":
            pass
        elif kind in (b"O", b"R", b"T"):
            self._take_opened(kind, offset, json.loads(payload))
        elif kind == b"E":
            raise NodeError(
                self._node.name,
                f"the log can't be read: {clean(str(json.loads(payload)['error']))}",
                next_step="check its owner and mode on the node",
            )
        else:
            raise NodeError(self._node.name, "the reader of a log sent what it should not")

    def _take_data(self, offset: int, data: bytes) -> None:
        if offset != self._mirror.end:
            raise NodeError(
                self._node.name,
                f"{self._path}: bytes at {offset} came where {self._mirror.end} was expected",
                next_step="the console reads again from what it has",
            )
        self._mirror.append(data)
        self._bytes_at = time.monotonic()
        self._set("live", "")
        fresh = data[max(0, self._delivered_to - offset) :]
        if fresh:
            self._delivered_to = self._mirror.end
            self._on_bytes(fresh, self._mirror.end - len(fresh))

    def _begin_again(self, why: str) -> None:
        """Have the current segment's mirror fetched from its first byte. Raises OSError."""
        self._mirror.begin_again()
        if self._on_event is not None:
            self._on_event(TailEvent("fetched again", self.segment, self.mirror, False, why))

    def _unwritable(self, error: OSError) -> NodeError:
        return NodeError(
            self._node.name,
            f"the mirror {self.mirror} can't be written: {error.strerror}",
            next_step="see that its folder can be written and has room",
        )

    def _take_opened(self, kind: bytes, offset: int, facts: dict[str, Any]) -> None:
        inode = int(facts["inode"])
        if kind == b"O":
            if self._mirror.end == self._mirror.mark.base:
                self._mirror.begin(inode, offset)
            elif self._mirror.mark.inode != inode:
                self._mirror.begin(inode, self._mirror.mark.base)
            self._set("live", "")
            return
        self._mirror.next_segment(inode)
        self._delivered_to = 0
        self._set("live", "")
        if self._on_event is not None:
            why = str(clean(str(facts["why"])))
            name: Literal["rotated", "truncated", "replaced"] = "rotated"
            if kind == b"T":
                name = "truncated" if "truncated" in why else "replaced"
            self._on_event(TailEvent(name, self.segment, self.mirror, bool(facts["lost"]), why))

    def _set(self, state: Literal["waiting", "live", "lost"], why: str) -> None:
        if (self._state.state, self._state.why) != (state, why):
            since = time.monotonic() if self._state.state != state else self._state.changed_at_monotonic
            self._state = StreamState(state, since, why=why)


def _whole_frames(buffer: bytearray) -> list[tuple[bytes, int, bytes]]:
    """Take kind, offset and payload of the whole frames out of the buffer; data that goes on is one frame."""
    frames: list[tuple[bytes, int, bytes]] = []
    used = 0
    while len(buffer) - used >= _HEAD.size:
        kind, offset, length = _HEAD.unpack_from(buffer, used)
        stop = used + _HEAD.size + length
        if len(buffer) < stop:
            break
        payload = bytes(buffer[used + _HEAD.size : stop])
        used = stop
        if kind == b"D" and frames and frames[-1][0] == b"D":
            _, start, held = frames[-1]
            if start + len(held) == offset:
                frames[-1] = (kind, start, held + payload)
                continue
        frames.append((kind, offset, payload))
    del buffer[:used]
    return frames


async def _say_here(stream: Stream) -> None:
    """Tell the reader that the console is still there."""
    with contextlib.suppress(LabError):
        while True:
            stream.write(b".")
            await asyncio.sleep(_SAY_SECONDS)
