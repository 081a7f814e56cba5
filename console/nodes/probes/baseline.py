"""What machine this is and what state it is in.

Arguments: `images`, names of the images whose digests matter (none: all). A value that could not be read is
null and `missing` says why; on a machine without a GPU, `gpu_count` is 0.
"""

import platform
from typing import Any

from console.nodes.probes.kit import answer
from console.nodes.probes.machine import facts


def baseline(args: dict[str, Any]) -> dict[str, Any]:
    missing: dict[str, str] = {}
    found = facts(missing, args.get("images") or ())
    first = found["gpus"][0] if found["gpus"] else {}
    return {
        "hostname": platform.node(),
        "python": platform.python_version(),
        **found,
        "sm_clock_mhz": first.get("sm_clock_mhz"),
        "sm_clock_max_mhz": first.get("sm_clock_max_mhz"),
        "missing": missing,
    }


if __name__ == "__main__":
    answer(baseline)
