"""How fast a Megatron log is read, against writing the same lines to a RichLog.

Run it from the repository: `python tests/bench/bench_parse.py`. Both are timed in this one process, whose CPU
time is what counts, so that other work on the machine does not; the rate by the clock on the wall, which on a
busy machine is lower, stands beside it. It exits 1 when the reader takes fewer than 250 000 lines a second
that carry no metric, or is less than 30 times as fast as `RichLog.write`.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from textual.app import App, ComposeResult  # noqa: E402
from textual.widgets import RichLog  # noqa: E402

from console.core.reading.diagnosis import load_rules  # noqa: E402
from console.core.reading.facts import StepMetrics  # noqa: E402
from console.core.reading.signatures import Signature  # noqa: E402
from console.core.reading.trainlog import TrainLogReader  # noqa: E402

LEAST_LINES_PER_SECOND, LEAST_RATIO = 250_000, 30
LINES, RICH_LINES, ROUNDS, CHUNK_BYTES = 300_000, 4_000, 5, 1 << 16
METRIC_EVERY = 500


@dataclass
class Rate:
    """Lines a second, by this process's CPU time and by the wall clock."""

    cpu: float = 0.0
    wall: float = 0.0


@contextmanager
def timed(lines: int) -> Iterator[Rate]:
    rate, cpu, wall = Rate(), time.process_time(), time.perf_counter()
    yield rate
    rate.cpu = lines / (time.process_time() - cpu)
    rate.wall = lines / (time.perf_counter() - wall)


def plain_line(number: int) -> str:
    """What fills a log between the metrics: NCCL's chatter, warnings, the framework's remarks."""
    kinds = (
        f"node-a:81:{number % 97} [0] NCCL INFO Channel {number % 24:02d}/24 : 0 1 2 3 4 5 6 7",
        f"node-a:81:{number % 97} [0] NCCL INFO Trees [0] -1/-1/-1->1->0 [1] -1/-1/-1->1->0 #{number}",
        f"/opt/py/lib/functional.py:{number}: UserWarning: the buffer is not writable, so it is copied",
        f"[INFO:swift] sample {number}: a text of ordinary length that was shown for a look at the data",
    )
    return kinds[number % len(kinds)]


def metric_line(number: int) -> str:
    return (
        f"{{'loss': 1.75962102, 'grad_norm': 1.54342008, 'learning_rate': 9.831e-05, "
        f"'iteration': '{number + 1}/{LINES}', 'elapsed_time': '{number}s', 'remaining_time': '7s', "
        f"'memory(GiB)': 18.85, 'train_speed(s/it)': {number / (number + 1) + 0.001:.6f}}}"
    )


def rules() -> tuple[Signature, ...]:
    file = ROOT / "checklists" / "diagnosis.yaml"
    return load_rules(file.read_text(encoding="utf-8"), file.name).signatures


def read_rate(text: str, signatures: tuple[Signature, ...], steps: int) -> Rate:
    """The median round of a few. Raises SystemExit if a step was skipped to get there."""
    data, count = text.encode(), text.count("\n")
    rates = []
    for _ in range(ROUNDS):
        reader = TrainLogReader(signatures=signatures)
        found = 0
        with timed(count) as rate:
            for start in range(0, len(data), CHUNK_BYTES):
                facts = reader.feed(data[start : start + CHUNK_BYTES])
                found += sum(isinstance(fact, StepMetrics) for fact in facts)
            reader.finish()
        rates.append(rate)
        if found != steps:
            raise SystemExit(f"read {found} steps of {steps}")
    return sorted(rates, key=lambda one: one.cpu)[ROUNDS // 2]


class RichLogApp(App[None]):
    def compose(self) -> ComposeResult:
        yield RichLog()


async def rich_rate(lines: list[str]) -> Rate:
    app = RichLogApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        widget = app.query_one(RichLog)
        with timed(len(lines)) as rate:
            for line in lines:
                widget.write(line)
        return rate


def main() -> int:
    signatures = rules()
    plain = [plain_line(number) for number in range(LINES)]
    mixed = [metric_line(number) if number % METRIC_EVERY == 0 else line for number, line in enumerate(plain)]
    without = read_rate("\n".join(plain) + "\n", signatures, 0)
    with_metrics = read_rate("\n".join(mixed) + "\n", signatures, LINES // METRIC_EVERY)
    rich = asyncio.run(rich_rate(plain[:RICH_LINES]))
    ratio = without.cpu / rich.cpu
    print(f"{len(signatures)} signatures searched for; lines a second")
    print(f"{'':<28}{'CPU':>12}{'wall':>12}")
    for words, rate in (
        ("read, no metric lines", without),
        (f"read, every {METRIC_EVERY}th a metric", with_metrics),
        ("RichLog.write", rich),
    ):
        print(f"{words:<28}{rate.cpu:>12,.0f}{rate.wall:>12,.0f}")
    print(f"wanted: {LEAST_LINES_PER_SECOND:,} lines, {LEAST_RATIO} times RichLog; it is {ratio:.0f} times")
    return 0 if without.cpu >= LEAST_LINES_PER_SECOND and ratio >= LEAST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
