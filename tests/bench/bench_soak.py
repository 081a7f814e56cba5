"""An hour of watching, as fast as it goes: does the console's memory stay where it is, and its files closed?

Run it from the repository: `python tests/bench/bench_soak.py [simulated minutes]`. Nodes are real sshds; a
Megatron job's log grows on each, is tailed, read, journalled, diagnosed and drawn by the app on its Runs
screen with all charts, while readings of every node arrive at 1 Hz and the guards' leases are renewed. Every
ten minutes a node's link is cut and comes back. Only the clock is simulated.

First come twenty minutes, drawn every second, in which what is bounded fills up: the charts' readings, the
samples that the diagnosis looks back on, the caches of what was drawn. Over the hour that follows, resident
memory and open files are noted. It exits 1 when resident memory reaches 150 MB; when its mean over the last
quarter is more than 1.03 of that over the first; when a straight line through the last three quarters rises
by more than they scatter around it (twice their standard deviation) and by more than 1 % of what is
resident, which leaves room for the run's steps and the index of its log's lines; or when more files are open
in the last quarter than in the first.
"""

import asyncio
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import numpy as np  # noqa: E402
import psutil  # noqa: E402
from support.hosts import SSHD  # noqa: E402
from support.net_lab import NetLab, net_lab  # noqa: E402
from support.waiting import until  # noqa: E402

from console.cli.files import read_rules  # noqa: E402
from console.core.plan.custody import MemoryReading, Sample  # noqa: E402
from console.core.record import events as ev  # noqa: E402
from console.engine.conductor import Conductor  # noqa: E402
from console.engine.live import LiveSession  # noqa: E402
from console.engine.watching import LogWatch  # noqa: E402
from console.nodes.jobs import log_path  # noqa: E402
from console.tui.app import LabApp  # noqa: E402
from console.tui.collector import settle  # noqa: E402
from console.tui.screens import runs  # noqa: E402

NODES = 4
STEP_SECONDS, EVAL_STEPS, LEASE_SECONDS, CUT_SECONDS = 5, 100, 60, 600
WARM_SECONDS, BATCH_SECONDS, NOTE_SECONDS = 1200, 5, 30
MEMORY_LIMIT_BYTES, RATIO_LIMIT, RISE_LIMIT = 150e6, 1.03, 0.01
RUN = "E1-1"
GIB = 1 << 30


class Clock:
    """The lab's time."""

    def __init__(self) -> None:
        self.seconds = 0

    def now(self) -> datetime:
        return datetime(2026, 11, 29, 14, tzinfo=UTC) + timedelta(seconds=self.seconds)


@dataclass
class Noted:
    """Resident bytes and open files, over the simulated time."""

    resident: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    def note(self) -> None:
        process = psutil.Process()
        self.resident.append(process.memory_info().rss)
        self.files.append(process.num_fds())


def chatter(node: int, second: int) -> str:
    """What fills a log between the steps."""
    return (
        f"node-{node:02d}:81:97 [0] NCCL INFO Channel {second % 24:02d}/24 : 0 1 2 3 #{second}\n"
        f"/opt/py/lib/functional.py:{second}: UserWarning: the buffer is not writable, so it is copied\n"
        f"[INFO:swift] sample {second}: a text of ordinary length that was shown for a look at the data\n"
    )


def step_line(step: int, total: int) -> str:
    """A Megatron step, with the bar that is drawn over itself before it."""
    elapsed, loss = step * STEP_SECONDS, 1.2 + 3.0 / (1 + step / 60) + random.uniform(-0.02, 0.02)
    bars = "".join(f"\rTrain:  {n:2d}%|#         | {step}/{total} [00:{n:02d}<01:00]" for n in range(3))
    return (
        f"{bars}{{'loss': {loss:.8f}, 'grad_norm': {random.uniform(0.8, 1.6):.8f}, 'learning_rate': 9.8e-05, "
        f"'iteration': '{step}/{total}', 'elapsed_time': '{elapsed}s', 'remaining_time': '7s', "
        f"'memory(GiB)': 18.85, 'train_speed(s/it)': {STEP_SECONDS:.6f}}}\n"
    )


def validation_line(step: int, total: int) -> str:
    return f"{{'eval_loss': {1.3 + 3.0 / (1 + step / 60):.8f}, 'iteration': '{step}/{total}'}}\n"


def sample(second: int, at: float) -> Sample:
    used = (60 + 2 * random.random()) * GIB
    return Sample(
        n=second, at=at, memory=reading(int(119.6 * GIB - used)), gpu_utilisation_percent=95.0,
        gpu_power_watts=random.uniform(60, 70), gpu_sm_clock_mhz=random.uniform(2300, 2411),
        gpu_temperature_celsius=66.0, gpu_processes={4711: 48 * GIB}, jobs={4711: 6 * GIB}, compact_stall=41,
    )  # fmt: skip


def reading(available: int) -> MemoryReading:
    return MemoryReading(
        total_bytes=int(119.6 * GIB),
        available_bytes=available,
        free_bytes=available // 2,
        cached_bytes=4 * GIB,
        driver_held_bytes=48 * GIB,
        pressure_some_avg10=random.random(),
    )


class Soak:
    """The lab, its readers and the app, driven by simulated seconds."""

    def __init__(self, lab: NetLab, clock: Clock, total_seconds: int) -> None:
        self.lab, self.clock = lab, clock
        self.recorder = lab.recorder
        self.conductor = Conductor(lab.recorder, lab.crew, read_rules(), headless=False)
        self.total_steps = total_seconds // STEP_SECONDS
        self.logs = [self._log_of(host.home) for host in lab.hosts]
        self.watches: list[LogWatch] = []

    async def begin(self) -> None:
        self.lab.plan_run(RUN, "E1")
        diagnosing, run = self.conductor.diagnosing, self.recorder.experiment.runs[RUN]
        diagnosing.begin(run, "megatron")
        for name, member in self.lab.crew.items():
            watch = LogWatch(
                self.recorder, member.node, RUN, counts=name == run.log_node, framework="megatron",
                told=diagnosing.told, reader=diagnosing.reader("megatron"),
            )  # fmt: skip
            await watch.start()
            self.watches.append(watch)

    async def advance(self) -> None:
        """A few seconds, written and read."""
        for _ in range(BATCH_SECONDS if self.clock.seconds >= WARM_SECONDS else 1):
            self.clock.seconds += 1
            self._second(self.clock.seconds)
        await until(self._all_read, "what was written is read", 60)
        for watch in self.watches:
            watch.look()

    async def end(self) -> int:
        """Bytes that mirrors and nodes hold, the same."""
        for member in self.lab.crew.values():
            await member.node.wait_up(60)
        proofs = [await watch.finish() for watch in self.watches]
        assert all(proof.same for proof in proofs)
        return sum(proof.size_bytes for proof in proofs)

    def _second(self, second: int) -> None:
        now = self.clock.now()
        for number, (name, log) in enumerate(zip(self.lab.crew, self.logs, strict=True)):
            with log.open("a", encoding="utf-8") as file:
                file.write(chatter(number, second))
                if log is self.logs[-1] and second % STEP_SECONDS == 0:
                    step = second // STEP_SECONDS
                    file.write(step_line(step, self.total_steps))
                    if step % EVAL_STEPS == 0:
                        file.write(validation_line(step, self.total_steps))
            one = sample(second, now.timestamp())
            self.recorder.journal.add_samples(name, self.recorder.experiment.name, [one], now)
            self.conductor.diagnosing.sampled(name, one)
            if second % LEASE_SECONDS == 0:
                until_when = now + timedelta(seconds=900)
                self.recorder.record(ev.GuardSeen(at=now, node=name, state="held", lease_until=until_when))

    def _all_read(self) -> bool:
        ends = [watch.mirror.stat().st_size if watch.mirror.exists() else 0 for watch in self.watches]
        return ends == [log.stat().st_size for log in self.logs]

    def _log_of(self, home: Path) -> Path:
        log = Path(log_path(self.recorder.experiment.name, RUN).replace("~", str(home), 1))
        log.parent.mkdir(parents=True)
        log.touch()
        return log


async def soak(folder: Path, seconds: int) -> Noted:
    noted, clock = Noted(), Clock()
    runs.CHART_SECONDS = 0.0  # every batch is drawn, charts and all
    async with net_lab(folder, NODES, now=clock.now) as lab:
        one = Soak(lab, clock, WARM_SECONDS + seconds)
        app = LabApp(LiveSession(one.conductor))
        async with app.run_test(size=(160, 45)) as pilot:
            app.action_show("runs")
            await one.begin()
            while clock.seconds < WARM_SECONDS + seconds:
                await one.advance()
                app.lab_screen.redraw()
                await pilot.pause()
                if clock.seconds % CUT_SECONDS == 0:
                    await lab.hosts[clock.seconds // CUT_SECONDS % NODES].restart()
                if clock.seconds > WARM_SECONDS and clock.seconds % NOTE_SECONDS == 0:
                    noted.note()
            shown = one.recorder.experiment.runs[RUN]
            size = await one.end()
            print(f"{size / 1e6:.1f} MB of logs mirrored, {len(shown.steps)} steps, ", end="")
            print(f"{len(shown.evaluations)} validations, {NODES * clock.seconds} readings drawn")
            found = [active.finding.id for active in one.recorder.experiment.findings]
            print(f"findings on the way: {', '.join(found) or 'none'}")
    return noted


def judged(noted: Noted) -> bool:
    resident = np.array(noted.resident) / 1e6
    quarter = len(resident) // 4
    later, times = resident[quarter:], np.arange(quarter, len(resident))
    slope, start = np.polyfit(times, later, 1)
    rise, scatter = slope * (len(later) - 1), 2 * float(np.std(later - (slope * times + start)))
    band = max(scatter, RISE_LIMIT * later.mean())
    ratio = resident[-quarter:].mean() / resident[:quarter].mean()
    print("resident (MB): " + tenths(resident.round(1).tolist()))
    print("open files: " + tenths(noted.files))
    print(f"most {resident.max():.1f} MB, wanted under {MEMORY_LIMIT_BYTES / 1e6:.0f}")
    print(f"last quarter to first: {ratio:.4f}, wanted at most {RATIO_LIMIT}")
    print(f"line through the last three quarters: {rise:+.2f} MB, wanted at most {band:.2f}")
    closed = max(noted.files[-quarter:]) <= max(noted.files[:quarter])
    small = bool(resident.max() < MEMORY_LIMIT_BYTES / 1e6)
    return small and closed and rise <= band and ratio <= RATIO_LIMIT


def tenths(values: Sequence[object]) -> str:
    return " ".join(str(value) for value in values[:: max(1, len(values) // 10)])


def main() -> int:
    settle()
    if SSHD is None:
        print("left out: needs OpenSSH's sshd")
        return 0
    seconds = int(60 * float(sys.argv[1])) if len(sys.argv) > 1 else 3600
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        return 0 if judged(asyncio.run(soak(Path(folder), seconds))) else 1


if __name__ == "__main__":
    sys.exit(main())
