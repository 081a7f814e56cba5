"""A shell behind a channel of an embedded node's server, with the manners of sshd.

When the channel closes, the shell's pipes close and its processes are left to notice, as with OpenSSH: what
survives here survives there.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import asyncssh

_BLOCK_BYTES = 65536


async def relay_shell(
    process: "asyncssh.SSHServerProcess[bytes]", shell: str, cwd: Path, environment: Mapping[str, str]
) -> None:
    """Run the channel's command in `shell` and carry bytes both ways until its outputs end."""
    inner_in, outer_in = os.pipe()
    outer_out, inner_out = os.pipe()
    outer_err, inner_err = os.pipe()
    command = process.command
    arguments = ("-c", os.fsdecode(command)) if command else ("-l",)
    try:
        child = await asyncio.create_subprocess_exec(
            shell,
            *arguments,
            stdin=inner_in,
            stdout=inner_out,
            stderr=inner_err,
            cwd=cwd,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        for descriptor in (outer_in, outer_out, outer_err):
            os.close(descriptor)
        process.stderr.write(f"{shell}: {error.strerror}\n".encode())
        process.exit(127)
        return
    finally:
        for descriptor in (inner_in, inner_out, inner_err):
            os.close(descriptor)
    inward = asyncio.create_task(_carry_in(process.stdin, outer_in))
    outward = asyncio.create_task(
        _carry_both((outer_out, process.stdout), (outer_err, process.stderr)), name="outputs"
    )
    closed = asyncio.create_task(process.wait_closed())
    try:
        await asyncio.wait({outward, closed}, return_when=asyncio.FIRST_COMPLETED)
        if not closed.done():
            status = await child.wait()
            process.exit(status if status >= 0 else 128 - status)
    finally:
        for task in (inward, outward, closed):
            task.cancel()
        await asyncio.gather(inward, outward, closed, return_exceptions=True)


async def _carry_in(source: "asyncssh.SSHReader[bytes]", descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(descriptor, "wb", buffering=0)
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    try:
        while data := await source.read(_BLOCK_BYTES):
            writer.write(data)
            await writer.drain()
    except (ConnectionError, asyncssh.Error):
        pass  # the shell closed its stdin, or the channel went: both end here
    finally:
        transport.close()


async def _carry_both(*pairs: "tuple[int, asyncssh.SSHWriter[bytes]]") -> None:
    carriers = (_carry_out(descriptor, sink) for descriptor, sink in pairs)
    await asyncio.gather(*carriers, return_exceptions=True)


async def _carry_out(descriptor: int, sink: "asyncssh.SSHWriter[bytes]") -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(_BLOCK_BYTES)
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    try:
        while data := await reader.read(_BLOCK_BYTES):
            sink.write(data)
            await sink.drain()
    finally:
        transport.close()
