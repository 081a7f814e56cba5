"""What the reader on a node sends of a file: frames over one channel (see `remote/tail_reader.py`)."""

import asyncio
import contextlib
import json
import struct
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from console.core.errors import LabError, NodeError
from console.nodes import remote
from console.nodes.channel import Stream
from console.nodes.remote_file import RemoteFile

_BLOCK_BYTES = 4 * 65536
_SAY_SECONDS = 5.0
_HEAD = struct.Struct(">cQI")
_FOLLOW = """
export LAB_READER=$2
exec "$1" -I /dev/fd/9 "$4" "LAB_READER=$2" "$5" 9<<<"$3"
"""


class TailFrame(NamedTuple):
    kind: bytes
    offset: int
    payload: bytes
    """Bytes of the file in a data frame, JSON in any other."""


class TailFrames:
    """The frames of one reader, as they come."""

    def __init__(self, file: RemoteFile, stream: Stream) -> None:
        self._file = file
        self._stream = stream
        self._buffer = bytearray()

    async def next(self) -> list[TailFrame] | None:
        """What came since the last call, perhaps no whole frame; None: the reader has ended.

        Raises Unreachable, AnswerUnreadable.
        """
        data = await self._stream.read(_BLOCK_BYTES)
        if not data:
            return None
        self._buffer += data
        return whole_frames(self._buffer)

    def ended(self) -> NodeError:
        """What is to be said of a reader that has ended."""
        interpreter = self._file.node.target.interpreter
        return NodeError(
            self._file.node.name,
            f"the reader of {self._file.path} ended (status {self._stream.exit_status})",
            why=self._stream.error_text[-400:],
            next_step=f"the node needs {interpreter}; the console tries again",
        )


@contextlib.asynccontextmanager
async def tail_frames(
    file: RemoteFile, reader_id: str, resume: Mapping[str, int | str]
) -> AsyncIterator[TailFrames]:
    """Start a reader that goes on where `resume` says; it ends the one of the same id, and with the block.

    Raises Unreachable.
    """
    program = remote.source("tail_reader.py")
    args = (file.node.target.interpreter, reader_id, program, file.path, json.dumps(resume))
    async with file.node.stream(_FOLLOW, args=args) as stream:
        saying = asyncio.create_task(_say_here(stream))
        try:
            yield TailFrames(file, stream)
        finally:
            saying.cancel()
            await asyncio.gather(saying, return_exceptions=True)


def whole_frames(buffer: bytearray) -> list[TailFrame]:
    """Take the whole frames out of the buffer; data that goes on is one frame."""
    frames: list[TailFrame] = []
    used = 0
    while len(buffer) - used >= _HEAD.size:
        kind, offset, length = _HEAD.unpack_from(buffer, used)
        stop = used + _HEAD.size + length
        if len(buffer) < stop:
            break
        payload = bytes(buffer[used + _HEAD.size : stop])
        used = stop
        if kind == b"D" and frames and frames[-1].kind == b"D":
            _, start, held = frames[-1]
            if start + len(held) == offset:
                frames[-1] = TailFrame(kind, start, held + payload)
                continue
        frames.append(TailFrame(kind, offset, payload))
    del buffer[:used]
    return frames


async def _say_here(stream: Stream) -> None:
    """Tell the reader that the console is still there."""
    with contextlib.suppress(LabError):
        while True:
            stream.write(b".")
            await asyncio.sleep(_SAY_SECONDS)
