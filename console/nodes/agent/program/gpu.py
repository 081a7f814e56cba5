"""GPU readings through nvidia-smi. A wedged driver blocks it for minutes, so every call has a limit."""

from __future__ import annotations

import os
import subprocess
import threading
import time

from .answers import Doc

FIELDS = "utilization.gpu,power.draw,clocks.sm,temperature.gpu"
NAMES = (
    "gpu_utilisation_percent", "gpu_power_watts", "gpu_sm_clock_mhz", "gpu_temperature_celsius",
)  # fmt: skip
_CSV = "--format=csv,noheader,nounits"
_STALE_SECONDS = 10.0
_QUERY_SECONDS = 10.0


def number(text: str) -> float | None:
    """The number in `10.58 W`, `0 %` or `[N/A]` (None)."""
    words = text.split()
    try:
        return float(words[0])
    except (IndexError, ValueError):
        return None


def parse_row(line: str) -> Doc:
    """One csv row of FIELDS. A row of another shape is no reading: every value None, with the reason."""
    cells = line.split(",")
    if len(cells) != len(NAMES):
        return _absent(line)
    values: Doc = {name: number(cell) for name, cell in zip(NAMES, cells)}
    absent = [name for name, value in values.items() if value is None]
    values["gpu_missing"] = "not reported: " + ", ".join(absent) if absent else None
    return values


def _absent(reason: str) -> Doc:
    values: Doc = dict.fromkeys(NAMES)
    values["gpu_missing"] = reason.strip()[:200]
    return values


def parse_compute_apps(text: str) -> dict[int, int | None]:
    """Bytes by pid from `pid, process_name, used_memory` rows; names hold commas, figures may be absent."""
    found: dict[int, int | None] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < 3 or not cells[0].isdigit():
            continue
        mebibytes = number(cells[-1])
        found[int(cells[0])] = None if mebibytes is None else int(mebibytes * (1 << 20))
    return found


def query(*arguments: str) -> tuple[str | None, str]:
    """Output of one bounded nvidia-smi call, or None and the reason."""
    try:
        done = subprocess.run(
            ["nvidia-smi", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=_QUERY_SECONDS, check=False, env=dict(os.environ, LC_ALL="C"),
        )  # fmt: skip
    except FileNotFoundError:
        return None, "no nvidia-smi on this node"
    except subprocess.TimeoutExpired:
        return None, f"nvidia-smi did not answer within {_QUERY_SECONDS:.0f} s"
    except OSError as trouble:
        return None, f"nvidia-smi can't be started: {trouble}"
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        return None, text.strip()[:200] or f"nvidia-smi ended with {done.returncode}"
    return text, ""


def compute_apps() -> tuple[dict[int, int | None], str]:
    text, why = query("--query-compute-apps=pid,process_name,used_memory", _CSV)
    return ({}, why) if text is None else (parse_compute_apps(text), "")


def driver() -> tuple[str | None, bool]:
    """Driver version, and whether memory is unified (the driver gives no memory total)."""
    text, _ = query("--query-gpu=driver_version,memory.total", _CSV)
    rows: list[str] = (text or "").splitlines()
    if not rows:
        return None, False
    version, _, total = rows[0].partition(",")
    return version.strip() or None, number(total) is None


class GpuStream:
    """The latest row of one long-lived `nvidia-smi -l`: starting it every second would cost too much."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._latest: Doc = _absent("no reading yet")
        self._latest_at = time.monotonic()
        self._child: subprocess.Popen[bytes] | None = None
        self._ended = False

    def start(self) -> None:
        threading.Thread(target=self._follow, name="gpu", daemon=True).start()

    def latest(self) -> Doc:
        """The latest values; after ten silent seconds they are absent, and the silent child is ended."""
        silent = time.monotonic() - self._latest_at
        if silent <= _STALE_SECONDS or self._latest.get("gpu_missing") == "no nvidia-smi on this node":
            return self._latest
        child = self._child
        if child is not None and child.poll() is None:
            child.kill()
        return _absent(f"nvidia-smi silent for {silent:.0f} s")

    def end(self) -> None:
        self._ended = True
        child = self._child
        if child is not None and child.poll() is None:
            child.kill()

    def _follow(self) -> None:
        wait = 5.0
        while not self._ended:
            try:
                self._child = child = subprocess.Popen(
                    ["nvidia-smi", f"--query-gpu={FIELDS}", _CSV, "-i", str(self._index), "-l", "1"],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    env=dict(os.environ, LC_ALL="C"),
                )  # fmt: skip
            except FileNotFoundError:
                self._latest = _absent("no nvidia-smi on this node")
                return
            except OSError as trouble:
                self._latest = _absent(f"nvidia-smi can't be started: {trouble}")
            else:
                assert child.stdout is not None
                for line in child.stdout:
                    self._latest, self._latest_at = (
                        parse_row(line.decode("utf-8", "replace")),
                        time.monotonic(),
                    )
                child.wait()
            time.sleep(wait)
            wait = min(60.0, wait * 2)
