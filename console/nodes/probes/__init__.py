"""Scripts that run on a node and print one JSON document, and how they get there.

A probe is a module of this package with a `main` part. `probe_source` packs it with the helper modules that
it imports into one text, so that nothing needs to be installed on the node. A probe answers `{"ok": true,
…}`, or `{"ok": false, "kind": …, "error": raw text, …}` for a failure that it expects.
"""

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from console.nodes.ssh import Node

PROBES: Mapping[str, str] = {
    "baseline": "what machine this is and what state it is in",
    "microbench": "copy bandwidth and matrix multiplication on the training device",
    "environment": "the venv or container the training runs in, and what is installed there",
    "imports": "swift and torch with their versions, and the device",
    "components": "transformer_engine, mcore_bridge, megatron.core, flash_attn, apex, one by one",
    "tiny_model": "builds the profile's tiny model and data set, or finds the named ones",
    "checkpoint": "the newest checkpoint of a run",
    "pair": "pieces of the check between two nodes",
    "all_reduce": "one rank of an all-reduce between nodes",
    "prerequisites": "whether the machine is fit for a window of training",
}
"""Every probe and what it answers."""

_PACKAGE = "console.nodes.probes"
_IMPORT = re.compile(rf"^from {re.escape(_PACKAGE)}\.(\w+) import", re.MULTILINE)


def probe_source(name: str) -> str:
    """One self-contained program: the probe and the helper modules it imports. Raises `KeyError`."""
    if name not in PROBES:
        raise KeyError(name)
    helpers: dict[str, str] = {}
    _collect(_text(name), helpers)
    return _LOADER.format(
        helpers=repr([(f"{_PACKAGE}.{helper}", text) for helper, text in helpers.items()]),
        name=repr(f"<probe {name}>"),
        probe=repr(_text(name)),
    )


async def run_probe(
    node: Node,
    interpreter: str,
    name: str,
    args: Mapping[str, Any] | None = None,
    *,
    timeout: float = 120,
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Run a probe on a node and return its answer, cleaned.

    Raises what `Node.run_python` raises; a failure that the probe expects is in the answer instead.
    """
    text = json.dumps(dict(args or {}))
    return await node.run_python(interpreter, probe_source(name), args=(text,), timeout=timeout, env=env)


def _text(name: str) -> str:
    return files(_PACKAGE).joinpath(f"{name}.py").read_text(encoding="utf-8")


def _collect(text: str, helpers: dict[str, str]) -> None:
    """Add the helpers that `text` imports, each after those it needs itself."""
    for helper in _IMPORT.findall(text):
        if helper not in helpers:
            source = _text(helper)
            _collect(source, helpers)
            helpers[helper] = source


_LOADER = """\
import sys, types
for _name in ("console", "console.nodes", "console.nodes.probes"):
    _module = types.ModuleType(_name)
    _module.__path__ = []
    sys.modules[_name] = _module
for _name, _text in {helpers}:
    _module = types.ModuleType(_name)
    sys.modules[_name] = _module
    exec(compile(_text, "<" + _name + ">", "exec"), _module.__dict__)
exec(compile({probe}, {name}, "exec"), {{"__name__": "__main__"}})
"""
