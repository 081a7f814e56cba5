"""Sixteen nodes sampled at 1 Hz over real sshd: what that costs the console, and what it costs the nodes.

Run it from the repository: `python tests/bench/bench_nodes.py [seconds]`. Every node is an sshd with a home
folder and a guard of its own; all of them run on this machine. The console's own keeper renews the leases
and puts the readings into a real journal, first without a screen, then with the Runs screen and its charts.
It exits 1 when the console takes 25 % of one core or more in either, or a reading is missing in the journal.
"""

import asyncio
import gc
import os
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import psutil  # noqa: E402
import yaml  # noqa: E402
from support.hosts import SSHD, SshdHost  # noqa: E402
from support.processes import end_processes_of, processes_with  # noqa: E402
from support.waiting import until  # noqa: E402

from console.cli.files import read_checklist, read_rules, shipped  # noqa: E402
from console.core.plan.custody import Sample  # noqa: E402
from console.core.record import events as ev  # noqa: E402
from console.engine.conductor import Conductor  # noqa: E402
from console.engine.crew import assembled  # noqa: E402
from console.engine.live import LiveSession  # noqa: E402
from console.engine.opening import LabFiles, open_recorder  # noqa: E402
from console.engine.recorder import Recorder  # noqa: E402
from console.tui.app import LabApp  # noqa: E402

NODES = 16
CPU_LIMIT = 0.25
RUN = "E1-1"


@dataclass(frozen=True)
class Spent:
    """CPU seconds: of this process, and of everything that runs on the nodes."""

    console: float
    nodes: float
    at: float


def profile_of(hosts: list[SshdHost]) -> str:
    """The embedded lab's profile, on these hosts."""
    profile = yaml.safe_load((shipped("profiles") / "embedded.yaml").read_text(encoding="utf-8"))
    profile["embedded"] = False
    profile["shared"] = "{home}/shared"
    profile["nodes"] = [
        {
            "name": host.name,
            "address": host.address,
            "python": sys.executable,
            "ssh": {
                "host": host.address,
                "port": host.port,
                "user": host.target.user,
                "identity_file": str(host.target.identity_file),
                "config_files": [],
                "known_hosts": [str(file) for file in host.target.known_hosts],
            },
        }
        for host in hosts
    ]
    return yaml.safe_dump(profile, sort_keys=False)


def plan_run(recorder: Recorder, names: list[str]) -> None:
    """A run over all nodes, so that the Runs screen charts them all."""
    launches = tuple(ev.NodeLaunch(node=name, rank=rank, argv=(), env={}) for rank, name in enumerate(names))
    recorder.record(
        ev.RunPlanned(
            at=recorder.now(), run=RUN, config="E1", attempt=1, purpose="matrix", launches=launches,
            log_node=names[0], settings={},
        )
    )  # fmt: skip


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
    async with AsyncExitStack() as stack:
        stack.callback(end_processes_of, folder)
        hosts = [SshdHost(f"node-{number:02d}", folder / f"host-{number:02d}") for number in range(NODES)]
        for host in hosts:
            host.root.mkdir()
            await host.start()
            stack.push_async_callback(host.stop)
        files = LabFiles(profile_of(hosts), "nodes.yaml", read_checklist("smoke"))
        recorder = open_recorder(folder / "experiment", files)
        crew = await stack.enter_async_context(
            assembled(recorder.experiment.profile, folder / "experiment", recorder=recorder)
        )
        conductor = Conductor(recorder, crew, read_rules(), headless=False)
        await conductor.guarding.start()
        began = time.monotonic()
        keeper = asyncio.create_task(conductor.guarding.keep())
        journal, name = recorder.journal, recorder.experiment.name
        await until(lambda: all(journal.newest_sample(node, name) > 0 for node in crew), "first readings", 60)
        share = await measured("sampled into the journal", folder, seconds)
        plan_run(recorder, list(crew))
        app = LabApp(LiveSession(conductor))
        async with app.run_test(size=(160, 45)) as pilot:
            app.action_show("runs")
            await pilot.pause()
            with_screen = await measured("with the Runs screen", folder, seconds)
        passed = time.monotonic() - began
        keeper.cancel()
        await asyncio.wait({keeper})
        kept = {node: journal.samples(node) for node in crew}
        counts = sorted(len(samples) for samples in kept.values())
        whole = all(complete(samples, passed) for samples in kept.values())
        print(f"readings per node in {passed:.0f} s: {counts[0]} to {counts[-1]}; none missing: {whole}")
        print(f"wanted under {CPU_LIMIT:.0%} of one core: {max(share, with_screen):.1%}")
        return max(share, with_screen) < CPU_LIMIT and whole


def main() -> int:
    gc.collect()
    gc.freeze()  # as the app does at its start
    if SSHD is None:
        print("left out: needs OpenSSH's sshd")
        return 0
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        return 0 if asyncio.run(bench(Path(folder), seconds)) else 1


if __name__ == "__main__":
    sys.exit(main())
