"""In what a lab differs from the one that the criteria speak of: a 7B LoRA on two Sparks."""

from collections.abc import Mapping
from typing import Literal

from console.core.ledger.of_lab import architecture_of
from console.core.record.computers import one_computer
from console.core.record.experiment import Experiment
from console.core.record.gaps import Both, degradation

SEVEN_B = (6e9, 9e9)
SPARK = "GB10"

Difference = Literal["degraded", "cpu", "small model", "not lora", "one computer"]

_WORDS: Mapping[Difference, Both] = {
    "degraded": ("degraded", "降级路径"),
    "cpu": ("on a CPU", "CPU 训练"),
    "small model": ("no 7B model", "非 7B 模型"),
    "not lora": ("no LoRA", "非 LoRA"),
    "one computer": ("all nodes are one computer", "所有节点是同一台计算机"),
}


def differences(experiment: Experiment) -> tuple[Difference, ...]:
    """Why figures of this lab say nothing by themselves about a 7B LoRA on two machines; empty: they do."""
    settings, shapes = experiment.profile.settings, architecture_of(experiment.profile.model)
    found: dict[Difference, bool] = {
        "degraded": degradation(experiment) is not None,
        "cpu": settings.use_cpu,
        "small model": shapes is None or not SEVEN_B[0] <= shapes.parameters.total <= SEVEN_B[1],
        "not lora": settings.tuner != "lora",
        "one computer": one_computer(experiment, experiment.nodes),
    }
    return tuple(name for name, differs in found.items() if differs)


def whose_figures(experiment: Experiment) -> Both:
    """What a proof by figures has to add where they are not those of a 7B LoRA on Sparks; else empty."""
    en, zh = "", ""
    if seen := differences(experiment):
        en = f"; the choice itself is on paper: {', '.join(_WORDS[name][0] for name in seen)}"
        zh = f"；选择本身依据纸面账：{'，'.join(_WORDS[name][1] for name in seen)}"
    if others := _other_devices(experiment):
        en, zh = f"{en}; measured on {others}, not on Sparks", f"{zh}；在 {others} 上测得，不是 Spark"
    return en, zh


def _other_devices(experiment: Experiment) -> str:
    """The GPUs that were seen, if there is no Spark among them."""
    seen = (node.facts.get("gpu_name") for node in experiment.nodes.values())
    names = sorted({name for name in seen if isinstance(name, str) and name})
    return "" if any(SPARK in name for name in names) else ", ".join(names)
