"""Copy bandwidth and dense matrix multiplication on the training device.

Arguments: `dtype` (bfloat16, float16, float32; none: bfloat16 on CUDA, float32 on a CPU), `seconds` (time
for each of the two measurements, default 3), `gpu` (index, default 0).

The copy counts bytes read plus bytes written. Both figures are the best of several repetitions, each ended
by a synchronisation; the multiplication counts 2 n^3 operations. SM clock and power are medians of readings
taken while the multiplication runs. `launch_seconds` is the time the host takes to send one tiny kernel off,
the best mean of several batches: many small kernels at a low power are then the host's doing. The last three
are null where there is no GPU.
"""

import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from console.nodes.probes.kit import Failed, answer, read_text
from console.nodes.probes.machine import number, parse_gpu_rows, parse_meminfo, smi

_LOAD_FIELDS = ("clocks.sm", "power.draw", "utilization.gpu", "temperature.gpu")
_COPY_BYTES = {"cuda": 2 << 30, "cpu": 256 << 20}
_MATMUL_SIZE = {"cuda": 8192, "cpu": 1024}
_LAUNCHES, _LAUNCH_BATCHES = 500, 8


def microbench(args: dict[str, Any]) -> dict[str, Any]:
    try:
        import torch
    except ImportError as error:
        raise Failed("import", f"torch does not import: {error}") from error
    device = "cuda" if torch.cuda.is_available() else "cpu"
    gpu = int(args.get("gpu") or 0)
    dtype_name = str(args.get("dtype") or ("bfloat16" if device == "cuda" else "float32"))
    dtype = getattr(torch, dtype_name, None)
    if dtype_name not in ("bfloat16", "float16", "float32"):
        raise Failed("bad arguments", f"dtype {dtype_name!r} is none of bfloat16, float16, float32")
    seconds = float(args.get("seconds") or 3)
    place = torch.device(device, gpu) if device == "cuda" else torch.device("cpu")

    def synchronise() -> None:
        if device == "cuda":
            torch.cuda.synchronize(place)

    copied = _copy(torch, place, _fitting(_COPY_BYTES[device]), synchronise, seconds)
    watch = _LoadWatch(gpu) if device == "cuda" else None
    if watch:
        watch.start()
    multiplied = _multiply(torch, place, _MATMUL_SIZE[device], dtype, synchronise, seconds)
    load = watch.stop() if watch else {}
    launch = _launch_seconds(torch, place, synchronise) if device == "cuda" else None
    return {
        "device": device,
        "device_name": torch.cuda.get_device_name(place) if device == "cuda" else "cpu",
        "threads": torch.get_num_threads() if device == "cpu" else None,
        "torch": torch.__version__,
        **copied,
        "matmul_dtype": dtype_name,
        **multiplied,
        "launch_seconds": launch,
        "sm_clock_mhz": load.get("clocks.sm"),
        "power_watts": load.get("power.draw"),
        "utilization_percent": load.get("utilization.gpu"),
        "temperature_celsius": load.get("temperature.gpu"),
    }


def _copy(
    torch: Any, place: Any, size: int, synchronise: Callable[[], None], seconds: float
) -> dict[str, Any]:
    """Copy a buffer of `size` bytes to another."""
    source = torch.ones(size // 4, dtype=torch.float32, device=place)
    target = torch.empty_like(source)
    best, repetitions = _best(lambda: target.copy_(source), synchronise, seconds)
    return {
        "copy_gbps": 2 * size / best / 1e9,
        "copy_counts": "bytes read plus bytes written, best repetition, 1 GB = 10^9 bytes",
        "copy_bytes": size,
        "copy_repetitions": repetitions,
    }


def _multiply(
    torch: Any, place: Any, size: int, dtype: Any, synchronise: Callable[[], None], seconds: float
) -> dict[str, Any]:
    """Multiply two square matrices."""
    left = torch.randn(size, size, device=place).to(dtype)
    right = torch.randn(size, size, device=place).to(dtype)
    product = torch.empty_like(left)
    best, repetitions = _best(lambda: torch.matmul(left, right, out=product), synchronise, seconds)
    return {
        "matmul_tflops": 2 * size**3 / best / 1e12,
        "matmul_size": size,
        "matmul_repetitions": repetitions,
        "matmul_finite": bool(torch.isfinite(product.float()).all()),
    }


def _launch_seconds(torch: Any, place: Any, synchronise: Callable[[], None]) -> float:
    """Host seconds for one kernel of one element, not waited for; a batch fits into the device's queue."""
    element = torch.zeros(1, device=place)
    means = []
    for _ in range(_LAUNCH_BATCHES):
        synchronise()
        start = time.perf_counter()
        for _ in range(_LAUNCHES):
            element.add_(1)
        means.append((time.perf_counter() - start) / _LAUNCHES)
    synchronise()
    return min(means)


def _best(work: Callable[[], Any], synchronise: Callable[[], None], seconds: float) -> tuple[float, int]:
    """Shortest of at least three repetitions after one for warming up, and how many there were."""
    work()
    synchronise()
    best, done, began = float("inf"), 0, time.perf_counter()
    while done < 3 or (time.perf_counter() - began < seconds and done < 10_000):
        start = time.perf_counter()
        work()
        synchronise()
        best = min(best, time.perf_counter() - start)
        done += 1
    return best, done


def _fitting(wanted: int) -> int:
    """The size of one buffer, small enough that both take at most an eighth of available memory."""
    available = parse_meminfo(read_text("/proc/meminfo") or "").get("MemAvailable", wanted)
    return max(8 << 20, min(wanted, available // 16)) // 4 * 4


class _LoadWatch:
    """Reads clock and power in a thread while the device works."""

    def __init__(self, gpu: int) -> None:
        self._gpu = gpu
        self._seen: dict[str, list[float]] = {field: [] for field in _LOAD_FIELDS}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> dict[str, float | None]:
        self._over.set()
        self._thread.join(timeout=16)
        return {field: statistics.median(seen) if seen else None for field, seen in self._seen.items()}

    def _watch(self) -> None:
        # The first moments show the clock of an idle device.
        self._over.wait(0.5)
        while not self._over.is_set():
            ran = smi(f"--id={self._gpu}", f"--query-gpu={','.join(_LOAD_FIELDS)}", "--format=csv,noheader")
            if self._over.is_set():
                return
            for row in parse_gpu_rows(ran.out, _LOAD_FIELDS):
                for field, text in row.items():
                    value = number(text)
                    if value is not None:
                        self._seen[field].append(value)
            self._over.wait(0.2)


if __name__ == "__main__":
    answer(microbench)
