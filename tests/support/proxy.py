"""A TCP proxy that breaks links on request."""

import asyncio
import contextlib


class Proxy:
    """Forwards a loopback port to a port of a host; can cut, freeze and delay what goes through."""

    def __init__(self, target_port: int, target_host: str = "127.0.0.1") -> None:
        self.target_host = target_host
        self.target_port = target_port
        self.port = 0
        self.delay_seconds = 0.0
        self._open = asyncio.Event()
        self._open.set()
        self._refusing = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "Proxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._refusing = True
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Reset all connections; new ones are forwarded as before."""
        for writer in list(self._writers):
            writer.transport.abort()

    def go_down(self) -> None:
        """Reset all connections and every new one until `come_up`."""
        self._refusing = True
        self.cut()

    def come_up(self) -> None:
        self._refusing = False

    def freeze(self) -> None:
        """Carry nothing, close nothing, until `thaw`."""
        self._open.clear()

    def thaw(self) -> None:
        self._open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(self.target_host, self.target_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._carry(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                if self.delay_seconds:
                    await asyncio.sleep(self.delay_seconds)
                await self._open.wait()
                sink.write(data)
                await sink.drain()
        self._writers.discard(sink)
        sink.close()
