"""How fast a Megatron log goes through the console: read from its node, split, sanitised, parsed, stored.

Run it from the repository: `python tests/bench/bench_pipeline.py`. The log lies on a node behind a real sshd.
The console's own path is timed from the first byte to the last: frames of the tail, mirror, log reader with
all signatures, diagnosis, and the journal, which is on disk before the next line is read. This process's CPU
time is what counts, so that other work on the machine does not, nor sshd and the node's reader; the rate by
the clock stands beside it. It exits 1 under 250 000 lines a second, or when it is less than 30 times as fast
as `RichLog.write` of the same lines in the same run.
"""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench_parse import (  # noqa: E402
    LEAST_LINES_PER_SECOND,
    LEAST_RATIO,
    LINES,
    METRIC_EVERY,
    RICH_LINES,
    Rate,
    metric_line,
    plain_line,
    rich_rate,
    timed,
)
from support.hosts import SSHD  # noqa: E402
from support.net_lab import net_lab  # noqa: E402

from console.cli.files import read_rules  # noqa: E402
from console.core.reading.facts import LogFact  # noqa: E402
from console.engine.conductor import Conductor  # noqa: E402
from console.engine.watching import LogWatch  # noqa: E402
from console.nodes.jobs import log_path  # noqa: E402
from console.tui.collector import settle  # noqa: E402

RUN = "E1-1"


async def pipeline_rate(folder: Path, lines: list[str]) -> Rate:
    """Lines a second from the node into mirror, journal and view. Raises SystemExit if a step is missing."""
    async with net_lab(folder, 2) as lab:
        lab.plan_run(RUN, "E1")
        run = lab.recorder.experiment.runs[RUN]
        diagnosing = Conductor(lab.recorder, lab.crew, read_rules(), headless=True).diagnosing
        diagnosing.begin(run, "megatron")
        log = Path(log_path(lab.recorder.experiment.name, RUN).replace("~", str(lab.hosts[-1].home), 1))
        log.parent.mkdir(parents=True)
        log.write_text("".join(f"{line}\n" for line in lines))
        came, size = asyncio.Event(), log.stat().st_size

        def told(node: str, facts: Sequence[LogFact]) -> None:
            diagnosing.told(node, facts)
            if watch.mirror.stat().st_size == size:
                came.set()

        watch = LogWatch(
            lab.recorder,
            lab.crew[run.log_node].node,
            RUN,
            counts=True,
            framework="megatron",
            told=told,
            reader=diagnosing.reader("megatron"),
        )
        settle()
        with timed(len(lines)) as rate:
            await watch.start()
            await came.wait()
        proof = await watch.finish()
        steps = len(lab.recorder.experiment.runs[RUN].steps)
        wanted = sum("'iteration'" in line for line in lines)
        if not proof.same or steps != wanted:
            raise SystemExit(f"journalled {steps} steps of {wanted}; mirror and node alike: {proof.same}")
    return rate


def main() -> int:
    if SSHD is None:
        print("left out: needs OpenSSH's sshd")
        return 0
    lines = [
        metric_line(number) if number % METRIC_EVERY == 0 else plain_line(number) for number in range(LINES)
    ]
    with tempfile.TemporaryDirectory() as folder:
        whole = asyncio.run(pipeline_rate(Path(folder), lines))
    rich = asyncio.run(rich_rate(lines[:RICH_LINES]))
    ratio = whole.cpu / rich.cpu
    print(f"{LINES:,} lines, every {METRIC_EVERY}th a metric; lines a second")
    print(f"{'':<28}{'CPU':>12}{'wall':>12}")
    for words, rate in (("node to mirror and journal", whole), ("RichLog.write", rich)):
        print(f"{words:<28}{rate.cpu:>12,.0f}{rate.wall:>12,.0f}")
    print(f"wanted: {LEAST_LINES_PER_SECOND:,} lines, {LEAST_RATIO} times RichLog; it is {ratio:.0f} times")
    return 0 if whole.cpu >= LEAST_LINES_PER_SECOND and ratio >= LEAST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
