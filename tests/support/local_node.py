"""A node without SSH: scripts run in a shell of this computer, with a home folder of their own."""

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from console.core.errors import ScriptFailed, ScriptTimedOut
from console.nodes.shell import Answer


@dataclass
class LocalNode:
    """Answers `run` as `console.nodes.ssh.Node` does."""

    home: Path
    name: str = "node-a"
    environment: dict[str, str] = field(default_factory=dict)

    async def run(
        self,
        script: str,
        *,
        args: Sequence[str] = (),
        timeout: float = 60.0,
        stdin: bytes = b"",
        check: bool = True,
    ) -> Answer:
        began = time.monotonic()
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LAB_SCRIPT": "0123456789abcdef"}
        process = await asyncio.create_subprocess_exec(
            "/bin/bash", "--noprofile", "--norc", "-c", script, "bash", *args,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            start_new_session=True, env=environment | self.environment, cwd=self.home,
        )  # fmt: skip
        try:
            output, errors = await asyncio.wait_for(process.communicate(stdin), timeout)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            raise ScriptTimedOut(self.name, f"no answer within {timeout:g} s") from None
        status = process.returncode if process.returncode is not None else -1
        if check and status != 0:
            raise ScriptFailed(
                self.name, f"ended with {status}", exit_status=status, why=errors.decode()[-300:]
            )
        return Answer(status, output, errors, time.monotonic() - began)
