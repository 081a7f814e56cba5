"""swift and torch with their versions, and whether the device does what it is asked.

Arguments: `seconds`, limit for each import (default 150). Every part runs in a process of its own, so that a
crash in one leaves the other's answer. A part that fails keeps its raw traceback in `error`.
"""

from typing import Any

from console.nodes.probes.kit import answer, ask_child

_TORCH = """
import json, os, sys, time, traceback
began = time.monotonic()
said = {"version": None, "error": None}
try:
    import torch
    visible = torch.cuda.is_available()
    said.update(
        version=torch.__version__,
        cuda_build=torch.version.cuda,
        seconds=time.monotonic() - began,
        device="cuda" if visible else "cpu",
        device_count=torch.cuda.device_count() if visible else 0,
        device_name=torch.cuda.get_device_name(0) if visible else None,
        capability=".".join(map(str, torch.cuda.get_device_capability(0))) if visible else None,
        arch_list=torch.cuda.get_arch_list() if visible else [],
        works=False,
    )
    ones = torch.ones(256, 256, device=said["device"])
    said["works"] = bool((ones @ ones).eq(256).all().item())
except BaseException:
    said["error"] = traceback.format_exc()
os.write(int(sys.argv[1]), json.dumps(said).encode())
os._exit(0)
"""

_SWIFT = """
import importlib.metadata, json, os, sys, time, traceback
began = time.monotonic()
said = {"version": None, "error": None}
try:
    import swift
    from swift.arguments import SftArguments
    said.update(version=swift.__version__, seconds=time.monotonic() - began, path=swift.__path__[0])
except BaseException:
    said["error"] = traceback.format_exc()
os.write(int(sys.argv[1]), json.dumps(said).encode())
os._exit(0)
"""

_VERSIONS = """
import importlib.metadata, json, os, sys
versions = {}
for name in json.loads(sys.argv[2])["names"]:
    try:
        versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        versions[name] = None
os.write(int(sys.argv[1]), json.dumps(versions).encode())
"""
_NAMES = (
    "transformers",
    "accelerate",
    "peft",
    "datasets",
    "modelscope",
    "deepspeed",
    "tokenizers",
    "safetensors",
)


def imports(args: dict[str, Any]) -> dict[str, Any]:
    seconds = float(args.get("seconds") or 150)
    torch = _part(_TORCH, seconds)
    swift = _part(_SWIFT, seconds)
    versions, _ = ask_child(_VERSIONS, {"names": _NAMES}, 30)
    errors = [part["error"] for part in (torch, swift) if part.get("error")]
    found: dict[str, Any] = {
        "torch": torch,
        "swift": swift,
        "versions": versions or dict.fromkeys(_NAMES),
        "device": torch.get("device"),
        "device_works": bool(torch.get("works")),
    }
    if errors:
        found |= {"ok": False, "kind": "import", "error": "\n".join(errors)}
    return found


def _part(program: str, seconds: float) -> dict[str, Any]:
    said, ran = ask_child(program, {}, seconds)
    return said if said is not None else {"version": None, "error": ran.error}


if __name__ == "__main__":
    answer(imports)
