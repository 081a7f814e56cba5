"""Steps that the service tests share."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from support.docker_engine import Standin
from support.waiting import until

from console.core.plan.custody import GuardSpec, GuardStatus
from console.core.plan.service import BorrowedService
from console.nodes.agent import Runner, guard_account, guard_status, start_guard

EXPERIMENT = "window"
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "support" / "console_process.py"


def healthy(standin: Standin) -> bool:
    try:
        with urllib.request.urlopen(f"{standin.url}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


async def ready(standin: Standin) -> None:
    await until(lambda: healthy(standin), f"{standin.name} is ready", seconds=30)


async def guard_for(
    node: Runner, spec: BorrowedService, *, lease_seconds: float = 120, holder: str = "tests"
) -> GuardStatus:
    guard = GuardSpec(
        experiment=EXPERIMENT, holder=holder, lease_seconds=lease_seconds, job_grace_seconds=1.0
    )
    return await start_guard(node, guard, spec)


class Console:
    """A console in a process of its own, to be killed at any moment."""

    def __init__(self, told: dict[str, object], folder: Path, front: list[str]) -> None:
        file = folder / "console.json"
        file.write_text(json.dumps({**told, "experiment": EXPERIMENT}))
        self.process = subprocess.Popen(
            [*front, sys.executable, str(PROGRAM), str(file)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    async def says(self, word: str, seconds: float = 60) -> None:
        """Return when its next line is this word; fail for another word, its end, or silence."""
        assert self.process.stdout is not None
        reading = asyncio.create_task(asyncio.to_thread(self.process.stdout.readline))
        await asyncio.wait([reading], timeout=seconds)
        if not reading.done():
            self.process.kill()
        line = (await reading).strip()
        assert line == word, f"the console said {line!r}, not {word!r}"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def console(told: dict[str, object], folder: Path, *, front: list[str] | None = None) -> Console:
    """Start one; `folder` holds what it is told, `front` is put before its command line."""
    return Console(told, folder, front or [])


async def brought_back(node: Runner, seconds: float = 60) -> GuardStatus:
    """The status once the guard has ended by itself."""
    deadline = time.monotonic() + seconds
    while True:
        status = await guard_status(node, EXPERIMENT)
        if not status.alive:
            return status
        assert time.monotonic() < deadline, f"the guard still stands: {status}"
        await asyncio.sleep(0.2)


async def words(node: Runner) -> list[str]:
    return [line.what for line in await guard_account(node, EXPERIMENT)]
