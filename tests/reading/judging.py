"""A short hand for telling a diagnosis what happened."""

from collections.abc import Sequence
from pathlib import Path

from console.core.reading.diagnosis import (
    Change,
    Diagnosis,
    Expectation,
    Finding,
    NodeSample,
    Rules,
    load_rules,
)
from console.core.reading.trainlog import TrainLogReader

RULES_FILE = Path(__file__).parents[2] / "checklists" / "diagnosis.yaml"
RULES: Rules = load_rules(RULES_FILE.read_text(encoding="utf-8"), RULES_FILE.name)
WATTS_AT_WORK, HERTZ_AT_WORK = 80.0, 2.3e9


class Case:
    """One run that is being watched; `at` is its clock."""

    def __init__(self, expectation: Expectation | None = None) -> None:
        self.diagnosis = Diagnosis(RULES, expectation)
        self.at = 0.0
        self.changes: list[Change] = []
        self._readers: dict[str, TrainLogReader] = {}

    def says(self, *lines: str, node: str = "a") -> "Case":
        reader = self._readers.setdefault(node, TrainLogReader(signatures=RULES.signatures))
        facts = reader.feed("".join(f"{line}\n" for line in lines).encode())
        self.changes += self.diagnosis.facts(node, facts, self.at)
        if not facts:
            self.diagnosis.output(node, self.at)
        return self

    def steps(
        self, losses: Sequence[float], *, seconds: float = 1.0, every: int = 1, **values: float
    ) -> "Case":
        """Log lines at `every` steps, arriving as time passes."""
        for number, loss in enumerate(losses, 1):
            step = number * every
            self.at += seconds * every
            self.says(metric(step, loss, seconds, **values))
        return self

    def waits(self, seconds: float) -> "Case":
        self.at += seconds
        self.changes += self.diagnosis.tick(self.at)
        return self

    def job(self, node: str, state: str) -> "Case":
        self.changes += self.diagnosis.job(node, state, self.at)  # type: ignore[arg-type]
        return self

    def link(self, node: str, state: str) -> "Case":
        self.changes += self.diagnosis.link(node, state, self.at)  # type: ignore[arg-type]
        return self

    def samples(self, seconds: int, **readings: dict[str, float]) -> "Case":
        """One reading a second of each node."""
        for _ in range(seconds):
            self.at += 1.0
            for node, values in readings.items():
                sample = NodeSample(node=node, at=self.at, **values)  # type: ignore[arg-type]
                self.changes += self.diagnosis.sample(sample)
        return self

    @property
    def ids(self) -> set[str]:
        return {finding.id for finding in self.diagnosis.active}

    def finding(self, rule: str) -> Finding:
        return next(finding for finding in self.diagnosis.active if finding.id == rule)


def metric(
    step: int, loss: float, seconds: float = 1.0, *, grad_norm: float = 1.0, memory: float = 0.0
) -> str:
    held = f"'memory(GiB)': {memory}, " if memory else ""
    return (
        f"{{'loss': {loss}, 'grad_norm': {grad_norm}, 'iteration': '{step}/1000', "
        f"'elapsed_time': '{round(step * seconds)}s', {held}'train_speed(s/it)': {seconds:.6f}}}"
    )


def evaluation(step: int, loss: float) -> str:
    return f"{{'eval_loss': {loss}, 'iteration': '{step}/1000', 'train_speed(s/it)': 1.0}}"


def launch(rank: int, *, nodes: int = 2, master: str = "a", port: int = 29500) -> str:
    return (
        f"run sh: `/py -m torch.distributed.run --nproc_per_node 1 --master_port {port} --nnodes {nodes} "
        f"--node_rank {rank} --master_addr {master} /opt/py/swift/cli/_megatron/sft.py --model tiny`"
    )


def world(rank: int, size: int = 2) -> str:
    return f"[INFO:swift] rank: {rank}, local_rank: 0, world_size: {size}, local_world_size: 1"


def bar(label: str, done: int, total: int) -> str:
    return f"{label}: {done * 100 // total:3d}%|###   | {done}/{total} [00:10<00:10,  1.5it/s]"


def busy(
    *, watts: float = WATTS_AT_WORK, hertz: float = HERTZ_AT_WORK, use: float = 0.96
) -> dict[str, float]:
    return {"gpu_utilization": use, "gpu_power_watts": watts, "sm_clock_hertz": hertz}
