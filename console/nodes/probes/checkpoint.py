"""The newest checkpoint of a run.

Arguments: `output_dir`, the run's output folder. Checkpoints lie in it or one folder below (`v0-<time>/checkpoint-10`),
in both modes. Newest is the last written; a folder without weights is left out.
"""

import json
import os
import re
from typing import Any

from console.nodes.probes.kit import Failed, answer, read_text

_WEIGHTS = re.compile(r"(adapter_model|model)([.-].*)?\.(safetensors|bin)$|\.distcp$")


def checkpoint(args: dict[str, Any]) -> dict[str, Any]:
    folder = os.path.expanduser(str(args.get("output_dir") or ""))
    if not os.path.isdir(folder):
        raise Failed("missing", f"no output folder {folder}", checkpoint=None)
    found = [place for place in _folders(folder) if any(_WEIGHTS.search(name) for name in _files(place))]
    if not found:
        raise Failed("missing", f"no checkpoint with weights under {folder}", checkpoint=None)
    newest = max(found, key=lambda place: (os.path.getmtime(place), _step(place)))
    files = _files(newest)
    adapter = {name: size for name, size in files.items() if name.startswith("adapter_model.")}
    return {
        "checkpoint": newest,
        "step": _step(newest),
        "trainer_state_step": _trainer_step(newest),
        "kind": "adapter" if adapter else "full",
        "adapter_bytes": sum(adapter.values()) or None,
        "total_bytes": sum(files.values()),
        "files": files,
        "checkpoints": sorted(found),
    }


def _folders(folder: str) -> list[str]:
    above = [folder, *(entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))]
    return [
        entry.path
        for place in above
        for entry in os.scandir(place)
        if re.fullmatch(r"checkpoint-\d+", entry.name) and entry.is_dir(follow_symlinks=False)
    ]


def _files(place: str) -> dict[str, int]:
    """Files of a checkpoint with their sizes, named relative to it."""
    sizes: dict[str, int] = {}
    for base, _, names in os.walk(place):
        for name in names:
            path = os.path.join(base, name)
            sizes[os.path.relpath(path, place)] = os.lstat(path).st_size
    return dict(sorted(sizes.items()))


def _step(place: str) -> int:
    return int(place.rsplit("-", 1)[1])


def _trainer_step(place: str) -> int | None:
    """The step that the checkpoint says of itself: trainer_state.json, or Megatron's own mark."""
    try:
        state = json.loads(read_text(os.path.join(place, "trainer_state.json")) or "null")
    except ValueError:
        state = None
    if isinstance(state, dict) and isinstance(state.get("global_step"), int):
        return int(state["global_step"])
    mark = (read_text(os.path.join(place, "latest_checkpointed_iteration.txt")) or "").strip()
    return int(mark) if mark.isdigit() else None


if __name__ == "__main__":
    answer(checkpoint)
