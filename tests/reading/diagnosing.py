"""Facts and readings made by hand, and the rules as they ship."""

from collections.abc import Sequence
from pathlib import Path

from console.core.reading.diagnosis import Diagnosis, Expectation, NodeSample, load_rules
from console.core.reading.facts import (
    CheckpointSaved,
    Ended,
    EvalMetrics,
    Launch,
    NcclLine,
    Progress,
    StepMetrics,
    World,
)
from console.core.reading.trainlog import TrainLogReader

ROOT = Path(__file__).parents[2]
RULES = load_rules((ROOT / "checklists" / "diagnosis.yaml").read_text(encoding="utf-8"))
PAIR = Expectation(framework="swift", nodes=("node-a", "node-b"), log_node="node-a")
GIB = 2**30


def diagnosis(expectation: Expectation | None = None) -> Diagnosis:
    return Diagnosis(RULES, expectation or Expectation())


def ids(watched: Diagnosis) -> set[str]:
    return {finding.id for finding in watched.active}


def after_reading(text: bytes, expectation: Expectation | None = None, node: str = "node-a") -> Diagnosis:
    """A diagnosis that was told one whole log."""
    reader = TrainLogReader(signatures=RULES.signatures)
    watched = diagnosis(expectation)
    watched.facts(node, (*reader.feed(text), *reader.finish()), 0.0)
    return watched


def place(line: int) -> dict[str, int]:
    return {"start_byte": line * 100, "end_byte": line * 100 + 80, "line": line}


def step(
    number: int,
    loss: float | None = 2.0,
    grad_norm: float | None = 1.0,
    memory_gib: float | None = None,
    seconds: float = 1.0,
    total: int = 1000,
) -> StepMetrics:
    return StepMetrics(
        **place(number),
        step=number,
        total=total,
        loss=loss,
        grad_norm=grad_norm,
        memory_gib=memory_gib,
        printed_speed_seconds=seconds,
        printed_speed_half_width=0.5e-6,
        elapsed_seconds=seconds * number,
    )


def steps(losses: Sequence[float | None], first: int = 1, every: int = 1) -> list[StepMetrics]:
    return [step(first + index * every, loss) for index, loss in enumerate(losses)]


def validation(number: int, loss: float) -> EvalMetrics:
    return EvalMetrics(**place(number), step=number, total=1000, loss=loss)


def saved(number: int) -> CheckpointSaved:
    return CheckpointSaved(**place(number), path=f"/out/checkpoint-{number}", step=number)


def launched(rank: int, nnodes: int = 2, port: int = 29500, master: str = "node-a") -> Launch:
    return Launch(
        **place(1),
        argv=("python", "-m", "torch.distributed.run"),
        nproc_per_node=1,
        nnodes=nnodes,
        node_rank=rank,
        master_addr=master,
        master_port=port,
        resume_step=None,
    )


def met(rank: int, size: int = 2) -> World:
    return World(**place(2), rank=rank, local_rank=0, world_size=size, local_world_size=1)


def moving(label: str, done: int, total: int | None = 100) -> Progress:
    return Progress(**place(3), label=label, done=done, total=total)


def ended() -> Ended:
    return Ended(**place(900), ok=True, at="2026-01-01 00:00:00")


def nccl(*texts: str) -> list[NcclLine]:
    return [NcclLine(**place(10 + index), text=text) for index, text in enumerate(texts)]


def busy(
    node: str,
    at: float,
    *,
    use: float | None = 0.96,
    watts: float | None = 80.0,
    clock_hertz: float | None = 2.3e9,
    used_gib: float | None = None,
) -> NodeSample:
    return NodeSample(
        node=node,
        at=at,
        gpu_utilization=use,
        gpu_power_watts=watts,
        sm_clock_hertz=clock_hertz,
        memory_used_bytes=None if used_gib is None else round(used_gib * GIB),
        memory_total_bytes=round(121.6 * GIB),
    )
