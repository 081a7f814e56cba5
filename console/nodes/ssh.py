"""One SSH connection per node: opened, watched, opened again; scripts run over it with framed answers."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import asyncssh

from console.core.errors import (
    AuthRefused,
    HostKeyChanged,
    HostKeyRevoked,
    HostKeyUnknown,
    InputError,
    LabError,
    NodeError,
    ScriptFailed,
    Unreachable,
)
from console.nodes import answers, remote
from console.nodes.answers import last_words
from console.nodes.channel import Stream, StreamSession, WholeSession
from console.nodes.dial import SshTarget, dial
from console.nodes.shell import Answer, exports, frame
from console.nodes.text import clean

__all__ = ["Answer", "LinkState", "Node", "SshTarget", "Stream"]

CHANNELS = 8
"""sshd allows 10 sessions on a connection; two stay free for ending scripts."""
STREAMS = 6
"""Streams last for hours: some channels stay for scripts."""
_PYTHON = 'interpreter=$1; shift; cd /; export PYTHONUTF8=1; exec "$interpreter" - "$@"'
_CHANNEL_WAIT_SECONDS = 60.0
_RTT_SECONDS = 5.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 15.0
_REFUSED_PAUSE_SECONDS = 60.0
_NEEDS_A_PERSON = (HostKeyUnknown, HostKeyChanged, HostKeyRevoked, InputError)


@dataclass(frozen=True)
class LinkState:
    """Whether SSH to the node is up; says nothing about jobs or streams."""

    state: Literal["connecting", "up", "down"]
    changed_at_monotonic: float
    rtt_seconds: float | None = None
    why: str = ""


class Node:
    """A node behind one supervised SSH connection."""

    def __init__(self, target: SshTarget) -> None:
        self.target = target
        self.name = target.name
        self._link = LinkState("down", time.monotonic(), why="not connected yet")
        self._listeners: list[Callable[[LinkState], None]] = []
        self._connection: asyncssh.SSHClientConnection | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._needs_a_person: LabError | None = None
        self._up = asyncio.Event()
        self._hurry = asyncio.Event()
        self._channels = asyncio.Semaphore(CHANNELS)
        self._streams = asyncio.Semaphore(STREAMS)
        self._endings: set[asyncio.Task[None]] = set()

    @property
    def link(self) -> LinkState:
        return self._link

    def add_link_listener(self, listener: Callable[[LinkState], None]) -> Callable[[], None]:
        """Call `listener` at every change of state (not of round-trip time); returns how to stop that."""
        self._listeners.append(listener)

        def remove() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return remove

    async def connect(self, *, keep_trying: bool = False) -> None:
        """Connect and start the supervisor.

        A first attempt that fails is raised, unless `keep_trying`: then the supervisor goes on trying.
        Raises Unreachable, AuthRefused, HostKeyUnknown, HostKeyChanged, HostKeyRevoked, InputError.
        """
        if self._supervisor is not None and not self._supervisor.done():
            self._hurry.set()
            return
        self._needs_a_person = None
        first: asyncssh.SSHClientConnection | None = None
        if not keep_trying:
            first = await self._dial()
            self._take(first)
        self._supervisor = asyncio.create_task(self._supervise(first), name=f"link of {self.name}")

    async def wait_up(self, timeout: float) -> None:
        """Return when the link is up; raises Unreachable after `timeout` seconds."""
        self._hurry.set()
        try:
            async with asyncio.timeout(timeout):
                await self._up.wait()
        except TimeoutError:
            self._require()

    async def until_up(self) -> None:
        """Return when the link is up, however long that takes."""
        await self._up.wait()

    async def close(self) -> None:
        """Close the connection; jobs go on."""
        for ending in list(self._endings):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(8):
                    await asyncio.shield(ending)
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait({self._supervisor})
            self._supervisor = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2):
                    await connection.wait_closed()
            connection.abort()
        self._change("down", "closed")

    async def run(
        self, script: str, *, args: Sequence[str] = (), timeout: float, stdin: bytes = b"", check: bool = True
    ) -> Answer:
        """Run a bash script in the home folder and return its whole answer.

        Raises Unreachable, ScriptTimedOut (its processes are ended), ScriptFailed (only with `check`),
        AnswerUnreadable.
        """
        self._require()
        async with self._channel():
            answer = await self._run(script, args, timeout, stdin)
        if check and answer.exit_status != 0:
            raise answers.failed(self.name, answer)
        return answer

    async def run_python(
        self,
        interpreter: str,
        source: str,
        *,
        args: Sequence[str] = (),
        timeout: float,
        env: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Run a Python program that prints one JSON object on its last line; strings in it are cleaned.

        Variables of `env` are set for it; they stand in no argument list.
        Raises what `run` raises; the message names interpreter and remedy.
        """
        script = exports(env or {}) + _PYTHON
        answer = await self.run(
            script, args=(interpreter, *args), timeout=timeout, stdin=source.encode(), check=False
        )
        if answer.exit_status in (126, 127) and not answer.stdout.strip():
            raise ScriptFailed(
                self.name,
                f"no Python at {interpreter}",
                exit_status=answer.exit_status,
                why=last_words(answer.error_text),
                next_step=f"correct the interpreter of {self.name} in the profile, or install it there",
            )
        if answer.exit_status != 0:
            raise ScriptFailed(
                self.name,
                f"a program run by {interpreter} failed with status {answer.exit_status}",
                exit_status=answer.exit_status,
                why=last_words(answer.error_text) or last_words(answer.text),
                next_step=f"the text above says what is missing for {interpreter} on {self.name}",
            )
        return answers.document(self.name, answer, interpreter)

    @asynccontextmanager
    async def stream(self, script: str, *, args: Sequence[str] = ()) -> AsyncIterator[Stream]:
        """Run a bash script whose output is read as it comes; it ends with the block.

        The script sees its stdin end when the block or the link ends, and must end then.
        Raises Unreachable, also from the stream's `read`, when the link is lost.
        """
        self._require()
        framed = frame(script, args, limit_seconds=None, ends=False)
        async with self._channel(self._streams), self._channel():
            connection = self._require()
            session = StreamSession(framed)
            channel = await self._open(connection, session, framed.command)
            try:
                channel.write(framed.payload)
                yield Stream(self.name, channel, session)
            finally:
                channel.abort()

    async def _run(self, script: str, args: Sequence[str], timeout: float, stdin: bytes) -> Answer:
        connection = self._require()
        framed = frame(script, args, limit_seconds=timeout + 5, stdin=stdin)
        session = WholeSession(framed)
        started = time.monotonic()
        try:
            async with asyncio.timeout(timeout):
                channel = await self._open(connection, session, framed.command)
                try:
                    channel.write(framed.payload)
                    channel.write_eof()
                    await session.done
                finally:
                    channel.abort()
        except TimeoutError:
            await self._end_script(connection, framed.variable, session.out.pid)
            raise answers.timed_out(self.name, session, timeout) from None
        except asyncio.CancelledError:
            ending = asyncio.create_task(self._end_script(connection, framed.variable, session.out.pid))
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)
            raise
        if session.out.exit_status is None or session.err.exit_status is None:
            raise answers.unreadable(self.name, session)
        return Answer(
            session.out.exit_status, session.out.content, session.err.content, time.monotonic() - started
        )

    async def _open(
        self,
        connection: asyncssh.SSHClientConnection,
        session: WholeSession | StreamSession,
        command: str,
    ) -> asyncssh.SSHClientChannel[bytes]:
        try:
            channel, _ = await connection.create_session(
                lambda: session,
                command,
                encoding=None,
                request_pty=False,
                window=session.window,
            )
        except (asyncssh.Error, OSError) as error:
            said = clean(str(error))
            raise Unreachable(
                self.name,
                "no channel for a script",
                why=f"{said} (sshd's MaxSessions, or the link is being lost)",
                next_step="the console tries again by itself; MaxSessions of sshd must be at least 10",
            ) from error
        return channel

    @asynccontextmanager
    async def _channel(self, semaphore: asyncio.Semaphore | None = None) -> AsyncIterator[None]:
        semaphore = semaphore or self._channels
        try:
            # not wait_for: before Python 3.12 it can swallow a cancel that meets the end of the wait
            async with asyncio.timeout(_CHANNEL_WAIT_SECONDS):
                await semaphore.acquire()
        except TimeoutError:
            raise NodeError(
                self.name,
                f"all {CHANNELS} channels have been busy for {_CHANNEL_WAIT_SECONDS:.0f} s",
                why="every script and every followed log holds one",
                next_step="wait for a running check to end, or follow fewer logs of this node",
            ) from None
        try:
            yield
        finally:
            semaphore.release()

    async def _end_script(
        self, connection: asyncssh.SSHClientConnection, variable: str, pid: int | None
    ) -> None:
        """End all processes of a script, on a channel of its own; the node's own limit is the fallback."""
        if pid is None:
            return
        framed = frame(
            remote.source("procs.sh") + remote.source("end_script.sh"),
            (variable, str(pid)),
            limit_seconds=30,
        )
        session = WholeSession(framed)
        with contextlib.suppress(LabError, asyncssh.Error, OSError, TimeoutError):
            async with asyncio.timeout(20):
                channel = await self._open(connection, session, framed.command)
                channel.write(framed.payload)
                channel.write_eof()
                await session.done
                channel.abort()

    def _require(self) -> asyncssh.SSHClientConnection:
        if self._connection is not None:
            return self._connection
        if self._needs_a_person is not None:
            raise self._needs_a_person
        silent = time.monotonic() - self._link.changed_at_monotonic
        raise Unreachable(
            self.name,
            f"no contact for {silent:.0f} s",
            why=self._link.why,
            next_step="jobs on the node are not affected; the console goes on trying",
        )

    async def _dial(self) -> asyncssh.SSHClientConnection:
        self._change("connecting", self._link.why)
        try:
            return await dial(self.target)
        except LabError as error:
            if isinstance(error, _NEEDS_A_PERSON):
                self._needs_a_person = error
            self._change("down", error.render())
            raise
        except asyncio.CancelledError:
            self._change("down", "gave up connecting")
            raise

    async def _supervise(self, connection: asyncssh.SSHClientConnection | None) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            if connection is None:
                try:
                    connection = await self._dial()
                except _NEEDS_A_PERSON:
                    return
                except LabError as error:
                    refused = isinstance(error, AuthRefused)
                    await self._rest(_REFUSED_PAUSE_SECONDS if refused else pause)
                    pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
                    continue
            pause = _FIRST_PAUSE_SECONDS
            self._take(connection)
            try:
                await self._measure_until_closed(connection)
            finally:
                self._connection = None
                self._up.clear()
            self._change("down", "the link was lost")
            connection = None
            await self._rest(pause)

    def _take(self, connection: asyncssh.SSHClientConnection) -> None:
        self._connection = connection
        self._up.set()
        self._change("up", "")

    async def _rest(self, seconds: float) -> None:
        self._hurry.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()

    async def _measure_until_closed(self, connection: asyncssh.SSHClientConnection) -> None:
        """Measure the round-trip time now and then until the connection is gone."""
        closed = asyncio.create_task(connection.wait_closed())
        try:
            while not closed.done():
                asked = time.monotonic()
                # What OpenSSH's keep-alive does; asyncssh has it, but does not tell how long it took.
                request = asyncio.create_task(connection._make_global_request(b"keepalive@openssh.com"))
                await asyncio.wait({request, closed}, return_when=asyncio.FIRST_COMPLETED)
                if request.done() and not request.cancelled() and request.exception() is None:
                    self._link = replace(self._link, rtt_seconds=time.monotonic() - asked)
                request.cancel()
                await asyncio.wait({closed}, timeout=_RTT_SECONDS)
        finally:
            closed.cancel()

    def _change(self, state: Literal["connecting", "up", "down"], why: str) -> None:
        if (self._link.state, self._link.why) == (state, why):
            return
        # "connecting" between two failures is no news: the age of the outage goes on counting.
        since = time.monotonic()
        if self._link.state in ("down", "connecting") and state != "up":
            since = self._link.changed_at_monotonic
        self._link = LinkState(state, since, None, why)
        for listener in list(self._listeners):
            listener(self._link)
