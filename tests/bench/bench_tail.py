"""From a line appended on a node to the console: delivered by `Tail`, drawn by the log view.

Run it from the repository: `python tests/bench/bench_tail.py [seconds]`. A real sshd on loopback; a writer in
its own process appends at 10 and at 10 000 lines a second; `ssh node tail -F` follows the same file in the
same run. The absolute limits (p99 drawn within 150 and 250 ms) are printed beside the figures: on a machine
that does other work they say little. It exits 1 when a byte is lost, or when drawing is later than `tail -F`
by more than 100 ms at the 99th percentile.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streaming
from streaming import Arrival, ViewApp, arrivals_in, latencies, percentile, written
from support.hosts import SSHD, SshdHost
from support.waiting import until

from console.nodes.ssh import Node
from console.nodes.tail import Tail
from console.tui.collector import settle

RATES = ((10, 0.150), (10_000, 0.250))
"""Lines a second, and how late the 99th percentile may be drawn."""
MOST_BEHIND_TAIL_SECONDS = 0.100


@contextmanager
def tail_f(host: SshdHost, log: Path, notes: Path) -> Iterator[None]:
    """`ssh node tail -F` with the times its output comes at noted by a process of its own."""
    target = host.target
    options = {
        "Port": target.port,
        "IdentityFile": target.identity_file,
        "UserKnownHostsFile": target.known_hosts[0],
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
    }
    settings = [f"-o{name}={value}" for name, value in options.items()]
    command = ["ssh", "-Fnone", *settings, f"{target.user}@127.0.0.1", f"exec tail -n +1 -F {log}"]
    ssh = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    noting = subprocess.Popen([sys.executable, streaming.__file__, "arrivals", str(notes)], stdin=ssh.stdout)
    try:
        yield
    finally:
        ssh.terminate()
        ssh.wait()
        noting.wait()


async def follow(app: ViewApp, host: SshdHost, node: Node, folder: Path, rate: int, seconds: float) -> bool:
    """Both followers over one log; prints what they took. Whether no byte is lost and the limit is kept."""
    log, notes = host.home / f"log-{rate}", folder / f"notes-{rate}"
    log.write_bytes(b"the followers are there\n")
    first = log.stat().st_size
    delivered: list[Arrival] = []

    def take(data: bytes, start: int) -> None:
        delivered.append((time.monotonic(), start + len(data)))
        app.view.grew()

    tail = Tail(node, str(log), folder / f"mirror-{rate}", take)
    await tail.start()
    with tail_f(host, log, notes):
        await until(lambda: tail.end == first and bool(arrivals_in(notes)), "both followers")
        app.painted.clear()
        app.view.open(tail.mirror)
        await written(log, lines_per_second=rate, seconds=seconds)
        end = log.stat().st_size
        await until(
            lambda: (app.painted or [(0, 0)])[-1][1] == (arrivals_in(notes) or [(0, 0)])[-1][1] == end,
            "the last line",
        )
    proof = await tail.finish()
    written_bytes = log.read_bytes()
    took = {
        "Tail delivers": latencies(written_bytes, first, delivered),
        "drawn on screen": latencies(written_bytes, first, app.painted),
        "ssh node tail -F": latencies(written_bytes, first, arrivals_in(notes)),
    }
    lines = written_bytes[first:].count(b"\n")
    kept = proof.same and proof.size_bytes == end and all(len(times) == lines for times in took.values())
    wrote = [float(line.split(b" ", 1)[0]) for line in written_bytes[first:].splitlines()]
    real_rate = (lines - 1) / (wrote[-1] - wrote[0])
    print(f"\n{lines:,} lines at {real_rate:,.0f}/s, {end:,} bytes: {'none lost' if kept else 'LOST BYTES'}")
    print(f"{'milliseconds':<20}{'p50':>8}{'p99':>8}{'most':>8}")
    for words, times in took.items():
        figures = (percentile(times, 0.5), percentile(times, 0.99), max(times))
        print(f"{words:<20}" + "".join(f"{1000 * figure:>8.1f}" for figure in figures))
    drawn, other = (percentile(took[key], 0.99) for key in ("drawn on screen", "ssh node tail -F"))
    print(f"drawn later than tail -F at p99: {1000 * (drawn - other):.1f} ms", end="")
    print(f", wanted at most {1000 * MOST_BEHIND_TAIL_SECONDS:.0f}")
    limit = dict(RATES)[rate]
    print(f"p99 drawn wanted within {1000 * limit:.0f} ms: {'yes' if drawn <= limit else 'no'} (not judged)")
    return kept and drawn - other <= MOST_BEHIND_TAIL_SECONDS


async def bench(folder: Path, seconds: float) -> bool:
    host = SshdHost("spark-a", folder / "host")
    host.root.mkdir()
    await host.start()
    node = Node(host.target)
    try:
        await node.connect()
        app = ViewApp()
        async with app.run_test(size=(120, 40)):
            return all([await follow(app, host, node, folder, rate, seconds) for rate, _ in RATES])
    finally:
        await node.close()
        await host.stop()


def main() -> int:
    settle()
    if SSHD is None or shutil.which("ssh") is None:
        print("left out: needs OpenSSH's sshd and ssh")
        return 0
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 8.0
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        return 0 if asyncio.run(bench(Path(folder), seconds)) else 1


if __name__ == "__main__":
    sys.exit(main())
