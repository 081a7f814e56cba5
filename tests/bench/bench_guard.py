"""What a guard costs, and twenty consoles killed at a random moment between stop and restore.

Run it from the repository: `python tests/bench/bench_guard.py [seconds] [repetitions]`. The first part
measures CPU time and resident memory of a guard that watches a stopped service, against limits of 0.5 % of
one core and 20 MB. The second kills a console with SIGKILL and asks the service itself whether it is back; it
needs root and dockerd, and says so when it is left out. It exits 1 when a limit is broken or a service is not
healthy again.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import psutil  # noqa: E402
from support.docker_engine import Engine, Standin, docker_engine, free_port, why_not  # noqa: E402
from support.local_node import LocalNode  # noqa: E402
from support.processes import end_processes_of  # noqa: E402
from support.window import (  # noqa: E402
    EXPERIMENT,
    FAST,
    brought_back,
    console,
    guard_for,
    ready,
    start_by_hand,
)

from console.core.plan.custody import Floors  # noqa: E402
from console.core.plan.service import CommandService, DockerService  # noqa: E402
from console.nodes.service import prove_health, stop  # noqa: E402

CPU_LIMIT = 0.005
MEMORY_LIMIT_BYTES = 20_000_000
LONGEST_LIFE_SECONDS = 3.0


def command(standin: Standin) -> CommandService:
    told = {"kind": "command", "name": standin.name, "base_url": standin.url, "start": standin.process_argv()}
    files = {"pid_file": "~/service.pid", "log_file": "~/service.log"}
    return CommandService.model_validate(told | files | FAST)


def container(engine: Engine, standin: Standin) -> DockerService:
    told = {"kind": "docker", "name": standin.name, "container": standin.name, "base_url": standin.url}
    return DockerService.model_validate(told | {"docker": engine.docker} | FAST)


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads, to the nanosecond; the usual counters tick in hundredths."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


async def cost(folder: Path, seconds: float) -> bool:
    """CPU share of one core and resident memory of a guard at work; whether both keep their limits."""
    node, standin = LocalNode(folder), Standin("bench", free_port(), folder / "control")
    standin.set()
    spec = command(standin)
    record = await start_by_hand(node, spec)
    status = await guard_for(node, spec, lease_seconds=3600, floors=Floors(training_bytes=4 << 30))
    await stop(node, spec, record, experiment=EXPERIMENT)
    assert status.pid is not None
    guard = psutil.Process(status.pid)
    await asyncio.sleep(2)
    before, began = cpu_seconds(status.pid), time.monotonic()
    await asyncio.sleep(seconds)
    spent, passed = cpu_seconds(status.pid) - before, time.monotonic() - began
    resident = guard.memory_info().rss
    print(f"guard, {passed:.0f} s: {spent / passed:.2%} of one core, {resident / 1e6:.1f} MB resident")
    end_processes_of(folder)
    return spent / passed < CPU_LIMIT and resident < MEMORY_LIMIT_BYTES


async def killed_once(folder: Path, spec: DockerService | CommandService, wait: float) -> bool:
    node = LocalNode(folder)
    told: dict[str, object] = {"home": str(folder), "spec": spec.model_dump(mode="json")}
    process = console(told | {"lease_seconds": 1.5, "restore_after": 1.5}, folder)
    await process.says("guarded")
    await asyncio.sleep(wait)
    process.kill()
    status = await brought_back(node)
    health = await prove_health(node, spec, None)
    by = f"{status.restore.state} by the {status.restore.by}" if status.restore else "never touched"
    print(f"  killed {wait:.2f} s after the guard stood: {by}; healthy: {health.healthy}")
    return health.healthy and not status.service_touched


async def kills(folder: Path, repetitions: int, start: Callable[[Standin, Path], object]) -> int:
    """How many of the repetitions end with a healthy service."""
    chance, good = random.Random(), 0
    for number in range(repetitions):
        home = folder / f"home-{number}"
        home.mkdir()
        standin = Standin(f"bench-{number}-{os.getpid()}", free_port(), home / "control")
        standin.set()
        spec = start(standin, home)
        await ready(standin)
        assert isinstance(spec, DockerService | CommandService)
        good += await killed_once(home, spec, chance.uniform(0, LONGEST_LIFE_SECONDS))
        end_processes_of(home)
    print(f"{good} of {repetitions} services are healthy again")
    return good


async def main(seconds: float, repetitions: int) -> int:
    with tempfile.TemporaryDirectory(prefix="bench-guard-") as folder:
        return await both(Path(folder), seconds, repetitions)


async def both(folder: Path, seconds: float, repetitions: int) -> int:
    (folder / "cost").mkdir()
    fits = await cost(folder / "cost", seconds)
    reason = why_not()
    if reason:
        print(f"no consoles were killed: {reason}")
        return 0 if fits else 1
    (folder / "docker").mkdir()
    if not repetitions:
        return 0 if fits else 1
    with docker_engine(folder / "docker") as engine:

        def start(standin: Standin, home: Path) -> DockerService:
            engine.run_standin(standin, "--restart", "always")
            return container(engine, standin)

        good = await kills(folder, repetitions, start)
    return 0 if fits and good == repetitions else 1


if __name__ == "__main__":
    given = [float(word) for word in sys.argv[1:]]
    sys.exit(asyncio.run(main(given[0] if given else 60.0, int(given[1]) if len(given) > 1 else 20)))
