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

from console.core.plan.custody import Floors, GuardSpec, GuardStatus, ServiceRecord
from console.core.plan.service import BorrowedService, Canary, CommandService
from console.nodes.agent import Runner, guard_account, guard_status, start_guard
from console.nodes.service import inspect
from support.docker_engine import Standin
from support.local_node import LocalNode
from support.waiting import until

EXPERIMENT = os.environ.setdefault("LAB_TEST_EXPERIMENT", f"window-{os.getpid()}")
"""One name per worker: guards know the lab's jobs by it, wherever they run."""
ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "console_process.py"
NO_FLOORS = Floors()
FAST = {
    "settle_seconds": 0.3,
    "ready_timeout_seconds": 20,
    "drain_seconds": 1,
    "stop_seconds": 2,
    "release_seconds": 2,
    # Other tests' stand-ins and the machine's own servers are no engine of this service.
    "engine_pattern": "no-such-engine-anywhere",
    "canary": Canary(timeout_seconds=3),
}


def healthy(standin: Standin) -> bool:
    try:
        with urllib.request.urlopen(f"{standin.url}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


async def ready(standin: Standin) -> None:
    await until(lambda: healthy(standin), f"{standin.name} is ready", seconds=30)


async def guard_for(
    node: Runner,
    spec: BorrowedService,
    *,
    lease_seconds: float = 120,
    holder: str = "tests",
    floors: Floors = NO_FLOORS,
) -> GuardStatus:
    guard = GuardSpec(
        experiment=EXPERIMENT,
        holder=holder,
        lease_seconds=lease_seconds,
        job_grace_seconds=1.0,
        floors=floors,
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


async def brought_back(node: Runner, seconds: float = 60, *, experiment: str = EXPERIMENT) -> GuardStatus:
    """The status once the guard has ended by itself."""
    deadline = time.monotonic() + seconds
    while True:
        status = await guard_status(node, experiment)
        if not status.alive:
            return status
        assert time.monotonic() < deadline, f"the guard still stands: {status}"
        await asyncio.sleep(0.2)


async def words(node: Runner) -> list[str]:
    return [line.what for line in await guard_account(node, EXPERIMENT)]


async def start_by_hand(node: LocalNode, spec: CommandService) -> ServiceRecord:
    """Start the stand-in as its pid file and log file say, and wait until it is ready."""
    pid, log = (path.replace("~", str(node.home)) for path in (spec.pid_file, spec.log_file))
    await node.run(
        'p=$1 l=$2; shift 2; setsid -f sh -c \'echo $$ >"$1"; shift; exec "$@"\' sh "$p" "$@" >>"$l" 2>&1',
        args=(pid, log, *spec.start),
    )
    standin = Standin(spec.name, int(spec.base_url.rpartition(":")[2]), node.home)
    await ready(standin)
    return await inspect(node, spec)
