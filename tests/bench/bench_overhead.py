"""What the console costs a run: steady s/it of runs it launches against the same command launched by hand.

Run it from the repository: `python tests/bench/bench_overhead.py [PROFILE] [CONFIGURATION] [--repeats N]`, by
default E0 of the embedded lab, three times. The profile is used with the short checklist and without its
service. The two of a repeat run one after the other on one machine, in turns of order; by hand it is the
command and environment of the journal's plan, and both logs are read the same way. It exits 1 when the
console's median is more than 1 % above the other.

Where the host sets the pace (micro batch 1 on a fast GPU) equal runs can differ by more than that:
`--settings micro_batch=8` fills the GPU, `max_steps=60` makes the runs longer. Each line tells the quartiles
of a run's own steps, and the end how far equal runs lay apart, so that the ratio can be weighed.
"""

import argparse
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
from console.core.reading.steady import Steady, steady_step_seconds
from console.journal import read_journal

MOST_OVERHEAD = 1.01


def shortened(profile: str, settings: list[str], folder: Path) -> Path:
    """The profile with the short checklist, nothing to stop and `name=value` settings, as a file."""
    document = yaml.safe_load(read_lab(profile).profile_text)
    document |= {"checklist": "walked", "service": {"kind": "none"}}
    document["settings"] |= {
        name: yaml.safe_load(value) for name, value in (one.split("=") for one in settings)
    }
    path = folder / "profile.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    return path


def by_console(profile: Path, config: str, folder: Path) -> tuple[Steady, dict[str, object]]:
    """Steps of a run launched by the console, and the launch as it was planned."""
    command = [sys.executable, "-m", "console.cli.main", "run", str(profile), "--only", config]
    ran = subprocess.run([*command, "--out", str(folder)], capture_output=True, text=True, check=False)
    kept = read_journal(folder) if (folder / "experiment.sqlite3").exists() else []
    planned = [event for event in kept if event.kind == "run planned"]
    if not planned:
        raise SystemExit(f"no run was planned: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    launch = json.loads(planned[-1].model_dump_json())["launches"][0]
    return steady(folder / "logs" / launch["node"] / f"{planned[-1].run}.log"), launch


def by_hand(launch: dict[str, object], folder: Path) -> Steady:
    """Steps of the same command, its output kept in a file and nothing else at work."""
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


def steady(log: Path) -> Steady:
    read, _ = read_log(log)
    found = steady_step_seconds(read.steps, evals=read.evals, checkpoints=read.checkpoints)
    if found.seconds is None:
        raise SystemExit(f"no steady step time in {log}: {found.reason}")
    return found


def told(who: str, run: Steady) -> str:
    low, middle, high = statistics.quantiles([one.seconds for one in run.used], n=4)
    return f"{who} {middle:.4f} s/it (half of {len(run.used)} steps {low:.4f} to {high:.4f})"


def spread(runs: list[Steady]) -> float:
    """How far the runs lie apart, as a part of their median."""
    seconds = [run.seconds for run in runs]
    return (max(seconds) - min(seconds)) / statistics.median(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description="What the console costs a run.")
    parser.add_argument("profile", nargs="?", default="embedded")
    parser.add_argument("config", nargs="?", default="E0")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--settings", nargs="*", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    runs: dict[str, list[Steady]] = {"console": [], "hand": []}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        profile = shortened(asked.profile, asked.settings, folder)
        launch: dict[str, object] = {}
        for repeat in range(asked.repeats):
            for who in ["console", "hand"] if repeat % 2 == 0 else ["hand", "console"]:
                if who == "console":
                    run, launch = by_console(profile, asked.config, folder / f"console-{repeat}")
                else:
                    run = by_hand(launch, folder / f"hand-{repeat}")
                runs[who].append(run)
                print(f"repeat {repeat + 1}: {told(who, run)}", flush=True)
    console, hand = (statistics.median(run.seconds for run in runs[who]) for who in ("console", "hand"))
    ratio = console / hand
    print(f"medians {console:.4f} / {hand:.4f} = {ratio:.4f}")
    print(f"equal runs apart by: console {spread(runs['console']):.1%}, hand {spread(runs['hand']):.1%}")
    print(f"limit {MOST_OVERHEAD}: {'kept' if ratio <= MOST_OVERHEAD else 'broken'}")
    return 0 if ratio <= MOST_OVERHEAD else 1


if __name__ == "__main__":
    sys.exit(main())
