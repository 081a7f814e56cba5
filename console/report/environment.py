"""Where the figures were measured: one line per kind of node, and all facts for the record."""

from collections.abc import Mapping
from typing import Any

from console.core.record.experiment import Experiment
from console.report.figures import size


def node_lines(experiment: Experiment) -> dict[str, str]:
    """Names of the nodes that are alike -> what they are. Only what is known is named."""
    alike: dict[str, list[str]] = {}
    for name, node in experiment.nodes.items():
        alike.setdefault(describe(node.facts), []).append(name)
    return {", ".join(names): words for words, names in alike.items()}


def describe(facts: Mapping[str, Any]) -> str:
    """Architecture, system, kernel, devices, driver, memory and versions; empty when nothing is known."""
    gpu = _text(facts.get("gpu_name"))
    count = facts.get("gpu_count")
    if gpu and isinstance(count, int) and count > 1:
        gpu = f"{count} × {gpu}"
    cores = facts.get("cpu_count")
    parts = [
        gpu or ("CPU only" if count == 0 else ""),
        _text(facts.get("architecture")),
        f"{cores} cores" if cores and not gpu else "",
        _memory(facts),
        _text(facts.get("os_release")),
        _named("DGX", facts.get("dgx_release")),
        _named("kernel", facts.get("kernel")),
        _named("driver", facts.get("driver")),
        _named("CUDA", facts.get("cuda")),
        _named("torch", _at(facts, "imports", "torch", "version") or facts.get("torch")),
        _named("ms-swift", _at(facts, "imports", "swift", "version")),
        _named("megatron-core", _at(facts, "components", "megatron_core", "version")),
    ]
    return " · ".join(part for part in parts if part)


def _memory(facts: Mapping[str, Any]) -> str:
    total = _at(facts, "memory", "total_bytes")
    return size(total) if isinstance(total, int | float) and total else ""


def memory_bytes(facts: Mapping[str, Any]) -> int | None:
    """Memory the system sees on this node; None when not known."""
    total = _at(facts, "memory", "total_bytes")
    return int(total) if isinstance(total, int | float) and total else None


def _at(facts: Mapping[str, Any], *path: str) -> Any:
    value: Any = facts
    for part in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _named(name: str, value: Any) -> str:
    return f"{name} {value}" if isinstance(value, str | int | float) and value else ""


def on_cpu(experiment: Experiment) -> bool:
    return experiment.profile.settings.use_cpu
