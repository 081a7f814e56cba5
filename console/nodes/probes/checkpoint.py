"""The newest checkpoint of a run.

Arguments: `output_dir`, the run's output folder. Checkpoints lie in it or one folder below
(`v0-<time>/checkpoint-10`), in both modes. Newest is the last written; a folder without weights is left out.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

from console.nodes.probes.kit import Failed, answer, read_text

_WEIGHTS = re.compile(r"(adapter_model|model)([.-].*)?\.(safetensors|bin)$|\.distcp$")


def checkpoint(args: dict[str, Any]) -> dict[str, Any]:
    folder = Path(str(args.get("output_dir") or "/nowhere")).expanduser()
    if not folder.is_dir():
        raise Failed("missing", f"no output folder {folder}", checkpoint=None)
    found = [place for place in _folders(folder) if any(_WEIGHTS.search(name) for name in _files(place))]
    if not found:
        raise Failed("missing", f"no checkpoint with weights under {folder}", checkpoint=None)
    newest = max(found, key=lambda place: (place.stat().st_mtime, _step(place)))
    files = _files(newest)
    adapter = {name: size for name, size in files.items() if name.startswith("adapter_model.")}
    return {
        "checkpoint": str(newest),
        "step": _step(newest),
        "trainer_state_step": _trainer_step(newest),
        "kind": "adapter" if adapter else "full",
        "adapter_bytes": sum(adapter.values()) or None,
        "total_bytes": sum(files.values()),
        "files": files,
        "checkpoints": sorted(map(str, found)),
    }


def _folders(folder: Path) -> list[Path]:
    above = [folder, *(place for place in folder.iterdir() if place.is_dir() and not place.is_symlink())]
    return [
        place
        for parent in above
        for place in parent.iterdir()
        if re.fullmatch(r"checkpoint-\d+", place.name) and place.is_dir() and not place.is_symlink()
    ]


def _files(place: Path) -> dict[str, int]:
    """Files of a checkpoint with their sizes, named relative to it."""
    sizes = {}
    for base, _, names in os.walk(place):
        for name in names:
            path = Path(base, name)
            sizes[str(path.relative_to(place))] = path.lstat().st_size
    return dict(sorted(sizes.items()))


def _step(place: Path) -> int:
    return int(place.name.rsplit("-", 1)[1])


def _trainer_step(place: Path) -> int | None:
    """The step that the checkpoint says of itself: trainer_state.json, or Megatron's own mark."""
    try:
        state = json.loads(read_text(place / "trainer_state.json") or "null")
    except ValueError:
        state = None
    if isinstance(state, dict) and isinstance(state.get("global_step"), int):
        return int(state["global_step"])
    mark = (read_text(place / "latest_checkpointed_iteration.txt") or "").strip()
    return int(mark) if mark.isdigit() else None


if __name__ == "__main__":
    answer(checkpoint)
