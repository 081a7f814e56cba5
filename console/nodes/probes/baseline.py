"""What machine this is and what state it is in.

Arguments: `images`, names of the images whose digests matter (none: all). A value that could not be read is
null and `missing` says why; on a machine without a GPU, `gpu_count` is 0.
"""

import platform
from typing import Any

from console.nodes.probes.kit import answer
from console.nodes.probes.machine import (
    clockwork,
    cuda_version,
    docker,
    gpus,
    memory_now,
    pending_changes,
    releases,
)


def baseline(args: dict[str, Any]) -> dict[str, Any]:
    missing: dict[str, str] = {}
    devices = gpus(missing)
    first = devices[0] if devices else {}
    return {
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "hostname": platform.node(),
        "python": platform.python_version(),
        **releases(),
        "gpu_count": len(devices),
        "gpu_name": first.get("name"),
        "driver": first.get("driver"),
        "cuda": cuda_version(missing),
        "sm_clock_mhz": first.get("sm_clock_mhz"),
        "sm_clock_max_mhz": first.get("sm_clock_max_mhz"),
        "gpus": devices,
        **memory_now(missing),
        **clockwork(missing),
        **docker(missing, args.get("images") or ()),
        **pending_changes(missing),
        "missing": missing,
    }


if __name__ == "__main__":
    answer(baseline)
