"""What comes over one SSH channel: a whole answer, or a stream of bytes."""

import asyncio
from typing import Any

import asyncssh

from console.core.errors import AnswerUnreadable, Unreachable
from console.nodes.shell import Frame, Unframer
from console.nodes.text import clean

MOST_ANSWER_BYTES = 64 * 2**20


class WholeSession(asyncssh.SSHClientSession[bytes]):
    """Collects both outputs of a framed script; `done` when both last markers came or the channel closed."""

    window = 2 * 2**20

    def __init__(self, framed: Frame) -> None:
        self.out = Unframer(framed)
        self.err = Unframer(framed)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.exit_status: int | None = None
        self.lost = ""

    def connection_made(self, chan: Any) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        (self.err if datatype else self.out).feed(data)
        complete = self.out.exit_status is not None and self.err.exit_status is not None
        if complete or self.out.size + self.err.size > MOST_ANSWER_BYTES:
            self._finish()

    def eof_received(self) -> bool:
        return True

    def exit_status_received(self, status: int) -> None:
        self.exit_status = status

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self.lost = str(clean(str(exc))) or type(exc).__name__
        self._finish()

    def _finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


class StreamSession(asyncssh.SSHClientSession[bytes]):
    """Passes on the output of a script that is followed while it runs."""

    # A small window keeps answers of other channels from queueing behind megabytes on a slow link.
    window = 512 * 1024
    _PAUSE_AT, _RESUME_AT = 512 * 1024, 128 * 1024

    def __init__(self, framed: Frame) -> None:
        self.head = Unframer(framed)
        self.error = bytearray()
        self.exit_status: int | None = None
        self.lost = ""
        self._buffer = bytearray()
        self._closed = False
        self._paused = False
        self._news = asyncio.Event()

    def connection_made(self, chan: Any) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if datatype:
            self.error = (self.error + data)[-8192:]
            return
        if self.head.pid is None:
            self.head.feed(data)
            if self.head.pid is None:
                return
            data = self.head.content
        self._buffer += data
        if len(self._buffer) > self._PAUSE_AT and not self._paused:
            self._paused = True
            self._channel.pause_reading()
        self._news.set()

    def eof_received(self) -> bool:
        self._closed = True
        self._news.set()
        return True

    def exit_status_received(self, status: int) -> None:
        self.exit_status = status

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self.lost = str(clean(str(exc))) or type(exc).__name__
        self._closed = True
        self._news.set()

    async def take(self, limit: int) -> bytes:
        """Next bytes, b"" at the end."""
        while not self._buffer and not self._closed:
            self._news.clear()
            await self._news.wait()
        data = bytes(self._buffer[:limit])
        del self._buffer[:limit]
        if self._paused and len(self._buffer) < self._RESUME_AT:
            self._paused = False
            self._channel.resume_reading()
        return data


class Stream:
    """A running script: bytes as they come, and bytes to its stdin."""

    def __init__(self, node: str, channel: asyncssh.SSHClientChannel[bytes], session: StreamSession) -> None:
        self._node = node
        self._channel = channel
        self._session = session

    async def read(self, limit: int = 65536) -> bytes:
        """Next bytes of its output; b"" when the script ended.

        Raises Unreachable when the link is lost, AnswerUnreadable when no bash answered.
        """
        data = await self._session.take(limit)
        if data:
            return data
        if self._session.lost or (self._channel.is_closing() and self._session.exit_status is None):
            raise Unreachable(
                self._node,
                "the link was lost while a stream was read",
                why=self._session.lost,
                next_step="the console connects again by itself",
            )
        if self._session.head.pid is None:
            raise AnswerUnreadable(
                self._node,
                "no bash answered",
                why=self.error_text,
                next_step="the node needs bash and coreutils, and a login shell that runs commands",
            )
        return b""

    def write(self, data: bytes) -> None:
        """Send bytes to its stdin. Raises Unreachable when the channel is gone."""
        try:
            self._channel.write(data)
        except (BrokenPipeError, OSError) as error:
            raise Unreachable(self._node, "the link was lost while a stream was read") from error

    @property
    def exit_status(self) -> int | None:
        """Of the script, when it ended by itself."""
        return self._session.exit_status

    @property
    def error_text(self) -> str:
        """The end of its error output."""
        return clean(bytes(self._session.error)).strip()
