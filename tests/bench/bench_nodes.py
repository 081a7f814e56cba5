"""Sixteen nodes sampled at 1 Hz over real sshd: what that costs the console, and what it costs the nodes.

Run it from the repository: `python tests/bench/bench_nodes.py [seconds]`. Every node is an sshd with a home
folder and a guard of its own; all of them run on this machine. The console's own keeper renews the leases
and puts the readings into a real journal, first without a screen, then with the Runs screen and its charts.
It exits 1 when the console takes 25 % of one core or more in either, or a reading is missing in the journal.
"""

import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import psutil  # noqa: E402
from support.hosts import SSHD  # noqa: E402
from support.net_lab import net_lab  # noqa: E402
from support.processes import processes_with  # noqa: E402
from support.waiting import until  # noqa: E402

from console.cli.files import read_rules  # noqa: E402
from console.core.plan.custody import Sample  # noqa: E402
from console.engine.conductor import Conductor  # noqa: E402
from console.engine.live import LiveSession  # noqa: E402
from console.tui.app import LabApp  # noqa: E402
from console.tui.collector import settle  # noqa: E402

NODES = 16
CPU_LIMIT = 0.25


@dataclass(frozen=True)
class Spent:
    """CPU seconds: of this process, and of everything that runs on the nodes."""

    console: float
    nodes: float
    at: float


def spent(folder: Path) -> Spent:
    """CPU time so far, ended children included; sshd's own processes count as the nodes'."""
    mine = psutil.Process()
    theirs = set(mine.children(recursive=True)) | processes_with(f"HOME={folder}")
    times = []
    for process in theirs:
        try:
            times.append(sum(process.cpu_times()[:4]))
        except psutil.NoSuchProcess:
            continue
    return Spent(time.process_time(), sum(times), time.monotonic())


async def measured(words: str, folder: Path, seconds: float) -> float:
    """CPU share of one core that this process took."""
    before = spent(folder)
    await asyncio.sleep(seconds)
    after = spent(folder)
    passed = after.at - before.at
    share = (after.console - before.console) / passed
    nodes = (after.nodes - before.nodes) / passed
    print(f"{words:<28} console {share:6.1%} of one core; all {NODES} nodes together {nodes:6.1%}")
    return share


def complete(samples: list[tuple[object, Sample]], seconds: float) -> bool:
    """Numbers without a gap, and about one a second."""
    numbers = [sample.n for _, sample in samples]
    return numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 0.9 * seconds


async def bench(folder: Path, seconds: float) -> bool:
    async with net_lab(folder, NODES) as lab:
        conductor = Conductor(lab.recorder, lab.crew, read_rules(), headless=False)
        await conductor.guarding.start()
        began = time.monotonic()
        keeper = asyncio.create_task(conductor.guarding.keep())
        journal, name = lab.recorder.journal, lab.recorder.experiment.name
        await until(lambda: all(journal.newest_sample(node, name) > 0 for node in lab.crew), "readings", 60)
        share = await measured("sampled into the journal", folder, seconds)
        lab.plan_run("E1-1", "E1")
        app = LabApp(LiveSession(conductor))
        async with app.run_test(size=(160, 45)) as pilot:
            app.action_show("runs")
            await pilot.pause()
            with_screen = await measured("with the Runs screen", folder, seconds)
        passed = time.monotonic() - began
        keeper.cancel()
        await asyncio.wait({keeper})
        kept = {node: list(journal.samples(node)) for node in lab.crew}
        counts = sorted(len(samples) for samples in kept.values())
        whole = all(complete(samples, passed) for samples in kept.values())
    print(f"readings per node in {passed:.0f} s: {counts[0]} to {counts[-1]}; none missing: {whole}")
    print(f"wanted under {CPU_LIMIT:.0%} of one core: {max(share, with_screen):.1%}")
    return max(share, with_screen) < CPU_LIMIT and whole


def main() -> int:
    settle()
    if SSHD is None:
        print("left out: needs OpenSSH's sshd")
        return 0
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        return 0 if asyncio.run(bench(Path(folder), seconds)) else 1


if __name__ == "__main__":
    sys.exit(main())
