"""What the console costs a run: steady s/it of runs it launches against the same command launched by hand.

Run it from the repository: `python tests/bench/bench_overhead.py [PROFILE] [CONFIGURATION] [REPEATS]`, by
default E0 of the embedded lab, three times. The profile is used with the short checklist and without its
service. The two of a repeat run one after the other on one machine, in turns of order; by hand it is the
command and environment of the journal's plan, and both logs are read the same way. It exits 1 when the
console's median is more than 1 % above the other.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from console.cli.files import read_lab
from console.cli.parse_log import read_log
from console.core.reading.steady import steady_step_seconds
from console.journal import read_journal

MOST_OVERHEAD = 1.01


def shortened(profile: str, folder: Path) -> Path:
    """The profile with the short checklist and nothing to stop, as a file."""
    document = yaml.safe_load(read_lab(profile).profile_text)
    document |= {"checklist": "walked", "service": {"kind": "none"}}
    path = folder / "profile.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    return path


def by_console(profile: Path, config: str, folder: Path) -> tuple[float, dict[str, object]]:
    """Steady s/it of a run launched by the console, and the launch as it was planned."""
    command = [sys.executable, "-m", "console.cli.main", "run", str(profile), "--only", config]
    told = subprocess.run([*command, "--out", str(folder)], capture_output=True, text=True, check=False)
    planned = [event for event in read_journal(folder) if event.kind == "run planned"]
    if not planned:
        raise SystemExit(f"no run was planned: {told.stdout[-2000:]}{told.stderr[-2000:]}")
    launch = json.loads(planned[-1].model_dump_json())["launches"][0]
    return steady(folder / "logs" / launch["node"] / f"{planned[-1].run}.log"), launch


def by_hand(launch: dict[str, object], folder: Path) -> float:
    """Steady s/it of the same command, its output kept in a file and nothing else at work."""
    folder.mkdir()
    argv = [str(part) for part in launch["argv"]]
    argv[argv.index("--output_dir") + 1] = str(folder / "out")
    log = folder / "log"
    with log.open("wb") as output:
        ran = subprocess.run(
            argv,
            cwd=folder,
            env=os.environ | {str(name): str(value) for name, value in launch["env"].items()},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if ran.returncode:
        raise SystemExit(f"by hand the command ended with {ran.returncode}: {log.read_text()[-2000:]}")
    return steady(log)


def steady(log: Path) -> float:
    read, _ = read_log(log)
    seconds = steady_step_seconds(read.steps, evals=read.evals, checkpoints=read.checkpoints).seconds
    if seconds is None:
        raise SystemExit(f"no steady step time in {log}")
    return seconds


def main() -> int:
    name, config, repeats = [*sys.argv[1:], *("embedded", "E0", "3")[len(sys.argv) - 1 :]]
    console_seconds: list[float] = []
    hand_seconds: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        profile = shortened(name, folder)
        launch: dict[str, object] = {}
        for repeat in range(int(repeats)):
            turns = ["console", "hand"] if repeat % 2 == 0 else ["hand", "console"]
            for turn in turns:
                if turn == "console":
                    seconds, launch = by_console(profile, config, folder / f"console-{repeat}")
                    console_seconds.append(seconds)
                else:
                    hand_seconds.append(by_hand(launch, folder / f"hand-{repeat}"))
            print(
                f"repeat {repeat + 1}: console {console_seconds[-1]:.4f}, hand {hand_seconds[-1]:.4f} s/it",
                flush=True,
            )
    console, hand = statistics.median(console_seconds), statistics.median(hand_seconds)
    ratio = console / hand
    print(f"medians {console:.4f} / {hand:.4f} = {ratio:.4f}")
    print(f"limit {MOST_OVERHEAD}: {'kept' if ratio <= MOST_OVERHEAD else 'broken'}")
    return 0 if ratio <= MOST_OVERHEAD else 1


if __name__ == "__main__":
    sys.exit(main())
