"""What the checklist's all-reduce found out about the link between the nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.core.record.experiment import Experiment


@dataclass(frozen=True, slots=True)
class Network:
    """The latest all-reduce. Figures are those of the largest size that was reduced.

    `way` is what the bytes went over: NCCL's channels, or gloo with its reason. `problems` are sentences;
    figures are None where there are problems.
    """

    nodes: tuple[str, ...]
    backend: str | None
    way: str
    largest_bytes: int | None
    seconds: float | None
    busbw_bytes_per_second: float | None
    sums_right: bool
    problems: tuple[str, ...]
    evidence: str | None
    """The file with the whole answer."""


def network_of(experiment: Experiment) -> Network | None:
    """None where the checklist did not come to it."""
    for item in experiment.items.values():
        for step in reversed(item.evidence):
            if "sums_right" in step.answer:
                return _network(step.answer, step.evidence)
    return None


def _network(answer: Mapping[str, Any], evidence: str | None) -> Network:
    sizes = answer.get("sizes")
    largest = sizes[-1] if isinstance(sizes, list) and sizes else {}
    return Network(
        nodes=tuple(answer.get("ranks", {})),
        backend=answer.get("backend"),
        way=_way(answer),
        largest_bytes=largest.get("bytes"),
        seconds=largest.get("seconds"),
        busbw_bytes_per_second=answer.get("busbw_bytes_per_second"),
        sums_right=bool(answer["sums_right"]),
        problems=tuple(answer.get("problems", ())),
        evidence=evidence,
    )


def _way(answer: Mapping[str, Any]) -> str:
    chosen = answer.get("transport") or {}
    if answer.get("backend") != "nccl":
        blind = ", ".join(answer.get("without_cuda", ()))
        return f"TCP, no CUDA device on {blind}" if blind else ""
    paths = ", ".join(chosen.get("paths", ())) or "no channel named"
    return f"{paths}, NCCL {chosen.get('version') or 'of unknown version'}"
