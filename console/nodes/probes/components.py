"""The packages of Megatron mode, one by one, each in a process of its own.

Arguments: `components`, names to try (none: all five); `seconds`, limit for each (default 120). A component
that crashes or hangs is an answer like any other. Keys are the names with `.` written as `_`.
"""

from typing import Any

from console.nodes.probes.kit import Failed, answer, ask_child

COMPONENTS = {
    "transformer_engine": ("transformer_engine.pytorch", "transformer-engine"),
    "mcore_bridge": ("mcore_bridge", "mcore-bridge"),
    "megatron.core": ("megatron.core", "megatron-core"),
    "flash_attn": ("flash_attn", "flash-attn"),
    "apex": ("apex", "apex"),
}
"""Name -> module that is imported, and the distribution that carries its version."""

_IMPORT_ONE = """
import importlib, importlib.metadata, json, os, sys, time, traceback
args = json.loads(sys.argv[2])
began = time.monotonic()
answer = {"ok": False, "version": None, "error": None}
try:
    module = importlib.import_module(args["module"])
    top = importlib.import_module(args["module"].split(".")[0])
    version = getattr(module, "__version__", None) or getattr(top, "__version__", None)
    if version is None:
        try:
            version = importlib.metadata.version(args["distribution"])
        except importlib.metadata.PackageNotFoundError:
            version = "unknown"
    answer.update(ok=True, version=str(version))
except BaseException:
    answer["error"] = traceback.format_exc()
answer["seconds"] = time.monotonic() - began
os.write(int(sys.argv[1]), json.dumps(answer).encode())
os._exit(0)
"""


def components(args: dict[str, Any]) -> dict[str, Any]:
    names = args.get("components") or list(COMPONENTS)
    unknown = [name for name in names if name not in COMPONENTS]
    if unknown:
        raise Failed("bad arguments", f"unknown components: {', '.join(map(str, unknown))}")
    seconds = float(args.get("seconds") or 120)
    return {name.replace(".", "_"): _try(name, seconds) for name in names}


def _try(name: str, seconds: float) -> dict[str, Any]:
    module, distribution = COMPONENTS[name]
    said, ran = ask_child(_IMPORT_ONE, {"module": module, "distribution": distribution}, seconds)
    if said is None:
        return {"ok": False, "version": None, "seconds": ran.seconds, "error": ran.error}
    return {
        "ok": bool(said["ok"]),
        "version": said["version"],
        "seconds": said["seconds"],
        "error": said["error"],
    }


if __name__ == "__main__":
    answer(components)
