"""Whether the machine is fit for a window of training.

Arguments: `paths`, a name for each folder that must have room (e.g. {"checkpoints": "~/.lab"}); `images`,
names of the images whose digests matter. The facts are judged elsewhere, beside those of the other nodes.
"""

import os
import shutil
from pathlib import Path
from typing import Any

from console.nodes.probes.kit import answer
from console.nodes.probes.machine import facts


def prerequisites(args: dict[str, Any]) -> dict[str, Any]:
    missing: dict[str, str] = {}
    return {
        **facts(missing, args.get("images") or ()),
        "disk": {name: _room(name, str(path), missing) for name, path in (args.get("paths") or {}).items()},
        "missing": missing,
    }


def _room(name: str, path: str, missing: dict[str, str]) -> dict[str, Any]:
    """Free bytes for this user at `path`, or at the nearest folder above it that exists."""
    place = Path(path).expanduser().resolve()
    while not place.is_dir() and place != place.parent:
        place = place.parent
    try:
        usage = shutil.disk_usage(place)
    except OSError as error:
        missing[f"disk.{name}"] = str(error)
        return {"path": path, "free_bytes": None, "total_bytes": None, "writable": None}
    return {
        "path": path,
        "measured_at": str(place),
        "free_bytes": usage.free,
        "total_bytes": usage.total,
        "writable": os.access(place, os.W_OK),
    }


if __name__ == "__main__":
    answer(prerequisites)
