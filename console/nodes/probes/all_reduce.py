"""One rank of an all-reduce between nodes. `console/nodes/all_reduce.py` starts one on each and reads them.

Rendezvous and interfaces come from the environment, as they do for a training run: MASTER_ADDR, MASTER_PORT,
NNODES, NODE_RANK, CUDA_VISIBLE_DEVICES, NCCL_* and GLOO_*.

Arguments: `names` (the nodes in rank order), `seconds` (limit for everything), `sizes_mib` (default 1, 4, 16,
64, 256), `measure_seconds` (no further size is begun when it would end after this, default 8).

NCCL is used when every rank sees a CUDA device, else gloo on the CPU. Per size one reduction is checked for
the right sum, one warms up, then up to 20 are timed; `seconds` is the mean of one, on the slowest rank.
"""

import datetime
import json
import os
import re
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from console.nodes.probes.kit import Failed, answer, read_text

_SIZES_MIB = (1, 4, 16, 64, 256)
_ITERATIONS = 20
_SIZE_SECONDS = 0.5
"""Time for the timed reductions of one size."""
_MARGIN_SECONDS = 2.0
_PERIOD = 251
"""The summands repeat with a prime period, so that a shifted or torn buffer gives a wrong sum."""
_GOODBYE = datetime.timedelta(seconds=3)
_NCCL_LINES, _NCCL_WIDTH = 150, 240


class _Rank:
    """What this rank knows; `stage` is what it was doing when it was last heard of."""

    def __init__(self, args: dict[str, Any]) -> None:
        self.names = [str(name) for name in args["names"]]
        self.rank = int(os.environ["NODE_RANK"])
        self.master = os.environ["MASTER_ADDR"]
        self.port = int(os.environ["MASTER_PORT"])
        self.sizes = [int(mib) << 20 for mib in args.get("sizes_mib") or _SIZES_MIB]
        self.measure_seconds = float(args.get("measure_seconds") or 8)
        self.ends = time.monotonic() + float(args["seconds"])
        self.stage = "importing torch"
        self.found: dict[str, Any] = {}
        self.failure: Exception | None = None

    @property
    def world(self) -> int:
        return len(self.names)

    @property
    def left(self) -> datetime.timedelta:
        """Time left for waiting, less than the limit: whoever waits in vain shall say for whom."""
        return datetime.timedelta(seconds=max(0.5, self.ends - time.monotonic() - _MARGIN_SECONDS))


def all_reduce(args: dict[str, Any]) -> dict[str, Any]:
    rank = _Rank(args)
    with tempfile.TemporaryDirectory(prefix="lab-nccl-") as folder:
        log = Path(folder) / "log"
        os.environ |= {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": str(log)}
        # A collective that hangs can't be interrupted: a thread hangs, and the probe ends without it.
        worker = threading.Thread(target=_carry_out, args=(rank,), daemon=True)
        worker.start()
        worker.join(max(0.0, rank.ends - time.monotonic()))
        said = {"stage": rank.stage, **rank.found, "nccl": nccl_lines(read_text(log) or "")}
    if worker.is_alive():
        raise Failed("timed out", f"no end within {float(args['seconds']):g} s while {rank.stage}", **said)
    if isinstance(rank.failure, Failed):
        raise Failed(rank.failure.kind, rank.failure.error, **{**said, **rank.failure.facts})
    if rank.failure is not None:
        error = f"{type(rank.failure).__name__}: {_words(rank.failure)}"
        raise Failed(_kind(error), error, **said)
    return said


def _carry_out(rank: _Rank) -> None:
    try:
        _reduce(rank)
    except Exception as error:  # noqa: BLE001 - handed over to the probe's own thread
        rank.failure = error


def _reduce(rank: _Rank) -> None:
    try:
        import torch
        import torch.distributed as distributed
    except ImportError as error:
        raise Failed("import", f"torch does not import: {error}") from error
    cuda = torch.cuda.is_available()
    rank.found |= {
        "torch": torch.__version__,
        "cuda": cuda,
        "device_name": torch.cuda.get_device_name(0) if cuda else "cpu",
        "nccl_version": _nccl_version(torch) if cuda else None,
    }
    rank.stage = f"meeting at {rank.master} port {rank.port}"
    dist: Any = distributed
    store = _store(rank, dist)
    try:
        backend = _agree(rank, store)
        rank.stage = f"setting {backend} up"
        rank.found["backend"] = backend
        dist.init_process_group(
            backend,
            store=dist.PrefixStore("group", store),
            rank=rank.rank,
            world_size=rank.world,
            timeout=rank.left,
        )
        place = torch.device("cuda", 0) if backend == "nccl" else torch.device("cpu")
        _measure(rank, torch, dist, place)
        rank.stage = "leaving"
    finally:
        _leave(rank, store)


def _nccl_version(torch: Any) -> str:
    return ".".join(map(str, torch.cuda.nccl.version()))


def _store(rank: _Rank, dist: Any) -> Any:
    """The store that the first rank holds. Raises Failed with the reason why it can't be met."""
    _seek(rank)
    try:
        return dist.TCPStore(
            rank.master, rank.port, rank.world, rank.rank == 0, timeout=rank.left, wait_for_workers=False
        )
    except Exception as error:
        text = _words(error)
        raise Failed("port taken" if "EADDRINUSE" in text else "rendezvous", text) from error


def _seek(rank: _Rank) -> None:
    """Resolve the first node, and unless this is it, wait until its port answers.

    torch's own store waits too, but longer than it is told, and keeps to itself what the system said.
    """
    while True:
        try:
            if rank.rank == 0:
                socket.getaddrinfo(rank.master, rank.port, type=socket.SOCK_STREAM)
            else:
                socket.create_connection(
                    (rank.master, rank.port), min(3.0, rank.left.total_seconds())
                ).close()
            return
        except socket.gaierror as error:
            raise Failed("unknown name", f"{rank.master}: {error}") from error
        except OSError as error:
            if rank.ends - time.monotonic() <= _MARGIN_SECONDS:
                text = f"{rank.names[0]} did not answer: {error}"
                raise Failed("peer missing", text, missing=[rank.names[0]]) from error
        time.sleep(0.2)


def _agree(rank: _Rank, store: Any) -> str:
    """Wait for every rank, compare versions, and choose the backend that all of them can use."""
    mine = {key: rank.found[key] for key in ("torch", "nccl_version", "cuda")}
    store.set(f"facts/{rank.rank}", json.dumps(mine))
    keys = [f"facts/{number}" for number in range(rank.world)]
    try:
        store.wait(keys, rank.left)
    except Exception as error:
        missing = [name for name, key in zip(rank.names, keys, strict=True) if not store.check([key])]
        raise Failed(
            "peer missing", f"{', '.join(missing)} did not come: {_words(error)}", missing=missing
        ) from error
    facts = {name: json.loads(store.get(key)) for name, key in zip(rank.names, keys, strict=True)}
    blind = [name for name, fact in facts.items() if not fact["cuda"]]
    for key, words in (("torch", "torch"), ("nccl_version", "NCCL")):
        versions = {name: fact[key] for name, fact in facts.items()}
        if len(set(versions.values())) > 1 and not (key == "nccl_version" and blind):
            listed = ", ".join(f"{name} has {version}" for name, version in versions.items())
            raise Failed("versions differ", f"{words}: {listed}", versions=versions)
    rank.found["without_cuda"] = blind
    return "gloo" if blind else "nccl"


def _measure(rank: _Rank, torch: Any, dist: Any, place: Any) -> None:
    began = time.perf_counter()

    def slowest(seconds: float) -> float:
        """The largest of what the ranks hand in; they stay in step by it."""
        value = torch.tensor([seconds], dtype=torch.float64, device=place)
        dist.all_reduce(value, op=dist.ReduceOp.MAX)
        return float(value.item())

    def timed(tensor: Any, count: int) -> float:
        slowest(0.0)
        start = time.perf_counter()
        for _ in range(count):
            dist.all_reduce(tensor)
        if place.type == "cuda":
            torch.cuda.synchronize(place)
        return slowest((time.perf_counter() - start) / count)

    rows: list[dict[str, Any]] = []
    rank.found |= {"rows": rows, "left_out": []}
    for size in rank.sizes:
        rank.stage = f"reducing {size >> 20} MiB over {rank.found['backend']}"
        if rows and slowest(time.perf_counter() - began) + 8 * rows[-1]["seconds"] > rank.measure_seconds:
            rank.found["left_out"] = [left for left in rank.sizes if left >= size]
            return
        steps = (torch.arange(size // 4, dtype=torch.int32, device=place) % _PERIOD).float()
        tensor = steps + rank.rank
        dist.all_reduce(tensor)
        right = bool(torch.equal(tensor, steps * rank.world + rank.world * (rank.world - 1) / 2))
        del steps
        # Zeros stay zeros, however often they are summed.
        tensor.zero_()
        once = timed(tensor, 1)
        count = max(2, min(_ITERATIONS, int(_SIZE_SECONDS / once)))
        seconds = timed(tensor, count)
        rows.append({"bytes": size, "seconds": seconds, "iterations": count, "sum_right": right})


def _leave(rank: _Rank, store: Any) -> None:
    """The first rank holds the store, so it goes last."""
    try:
        store.set(f"left/{rank.rank}", "")
        if rank.rank == 0:
            store.wait([f"left/{number}" for number in range(rank.world)], min(rank.left, _GOODBYE))
    except Exception:  # noqa: BLE001 - who did not say goodbye has failed, and says so itself
        return


def _words(error: Exception) -> str:
    """What torch said, without the frames of its C++ code."""
    return str(error).partition("Exception raised from")[0].strip()


def _kind(error: str) -> str:
    """A word for what a backend said."""
    if re.search(
        r"(?i)unable to (find|resolve) .*(address|interface)|no socket interface|no such device", error
    ):
        return "interface"
    return "timed out" if re.search(r"(?i)time(d )?out", error) else "backend"


def nccl_lines(text: str) -> list[str]:
    """NCCL's lines with one of each sort: channels by the way they go, the rest by their words."""
    kept: dict[str, str] = {}
    for line in text.splitlines():
        before, via, way = line.partition(" via ")
        kept.setdefault(re.sub(r"0x[0-9a-f]+|\d+", "#", before) + via + way, line[:_NCCL_WIDTH])
    return list(kept.values())[:_NCCL_LINES]


if __name__ == "__main__":
    answer(all_reduce)
    # What is left of torch's threads may wait for a node that is gone.
    os._exit(0)
