"""Experiments made by hand, event by event: two nodes, real log text, rows built by the real code."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from console.core.plan.checklist import ItemState, Verdict
from console.core.plan.matrix import hypothesis_hash
from console.core.reading.trainlog import read_whole
from console.core.record import events as ev
from console.core.record.experiment import Experiment
from console.core.record.figures import Row, Source
from console.core.record.folding import fold
from console.core.record.rows import LoggedRun, PeakMemory, build_row

START = datetime(2026, 11, 29, 14, 0, tzinfo=UTC)
GIB = 1 << 30

CHECKLIST = """
name: short
title: Short walk
items:
  - number: 1
    id: baseline
    title: Baseline
    title_zh: 基线
    why: numbers
    steps: [{id: look, title: Look, probe: baseline}]
  - number: 2
    id: pair
    title: Pair
    title_zh: 双机
    why: reach
    steps: [{id: meet, title: Meet, probe: pair}]
"""

PROFILE = """
name: {name}
title: {title}
{head}
nodes:
  - {{name: node-a, ssh: {{host: 127.0.0.1}}, address: node-a, python: python3, gpu: {gpus[0]}}}
  - {{name: node-b, ssh: {{host: 127.0.0.1}}, address: node-b, python: python3, gpu: {gpus[1]}}}
environment: {{kind: venv}}
shared: /shared
service: {service}
model: {model}
dataset: {{sources: [data.jsonl]}}
settings: {settings}
peaks: {peaks}
checklist: short
matrix:
  baseline: E0
  configurations:
    - {{id: E0, title: one node, mode: swift, varies: nothing}}
    - {{id: E1, title: "two nodes, data parallel", mode: swift, varies: data parallel, nodes: 2}}
    - {{id: R1, title: recompute off, mode: swift, varies: recompute, settings: {{recompute: none}}}}
    - {{id: G1, title: half the accumulation, mode: swift, varies: accumulation,
       settings: {{global_batch: 8}}}}
    - {{id: P2, title: pipeline, mode: megatron, varies: pipeline parallel, nodes: 2, pipeline_parallel: 2}}
    - {{id: T2, title: tensor, mode: megatron, varies: tensor parallel, nodes: 2, tensor_parallel: 2}}
"""

TINY = (
    "{path: tiny, build: {layers: 4, hidden: 128, heads: 4, kv_heads: 2, ffn: 384, vocab: 1000, rows: 320}}"
)
SEVEN_B = "{path: Qwen/Qwen2.5-7B-Instruct, name: Qwen2.5-7B}"
CPU_SETTINGS = "{dtype: float32, max_length: 512, epochs: 1, use_cpu: true}"
GPU_SETTINGS = "{dtype: bfloat16, max_length: 2048, epochs: 1}"
GB10_PEAK = "[{dtype: bfloat16, tflops: 125, origin: derived, source: half of the dense FP8 figure}]"
VLLM = "{kind: docker, name: vllm-fn, container: vllm-fn}"

CPU_FACTS: Mapping[str, Any] = {
    "architecture": "x86_64",
    "kernel": "6.1.0",
    "gpu_count": 0,
    "cpu_count": 2,
    "boot_id": "b00t",
    "memory": {"total_bytes": 24 * GIB},
    "matmul_tflops": 0.08,
    "matmul_dtype": "float32",
    "imports": {"torch": {"version": "2.13.0"}, "swift": {"version": "4.6.0"}},
}
GPU_FACTS: Mapping[str, Any] = {
    "architecture": "aarch64",
    "kernel": "6.14.0-nvidia",
    "gpu_count": 1,
    "gpu_name": "NVIDIA GB10",
    "driver": "580.95",
    "memory": {"total_bytes": 122 * GIB},
    "matmul_tflops": 90.0,
    "matmul_dtype": "bfloat16",
    "imports": {"torch": {"version": "2.13.0"}, "swift": {"version": "4.6.0"}},
}


def train_log(
    seconds: Iterable[float],
    *,
    losses: Mapping[int, str] | None = None,
    norms: Mapping[int, str] | None = None,
    tokens_per_step: int | None = None,
    mean_tokens: float | None = 90.0,
    parameters: str | None = "0.8651M Params (0.0655M Trainable [7.5714%])",
    memory_gib: float | None = None,
    end: bool = True,
) -> bytes:
    """What the logging rank of `swift sft` prints for steps of these durations."""
    steps = list(seconds)
    lines = ["[INFO:swift] rank: -1, local_rank: -1, world_size: 1, local_world_size: 1"]
    if parameters:
        lines.append(
            f"[INFO:swift] model_parameter_info: PeftModelForCausalLM: {parameters}, 0.0000M Buffers."
        )
    if mean_tokens is not None:
        lines.append(
            f"[INFO:swift] Dataset Token Length: {mean_tokens:.6f}±30.000000, "
            "min=20.000000, max=200.000000, size=320"
        )
    lines.append("[INFO:swift] Start time of running main: 2026-11-29 14:10:00.000000")
    elapsed = 0.0
    for number, duration in enumerate(steps, start=1):
        elapsed += duration
        loss = (losses or {}).get(number, f"{7 - number * 0.05:.8f}")
        norm = (norms or {}).get(number, "3.20977736")
        tokens = f"'num_input_tokens_seen': {tokens_per_step * number}, " if tokens_per_step else ""
        memory = f"'memory(GiB)': {memory_gib:.2f}, " if memory_gib else ""
        lines.append(
            f"{{'loss': {loss}, 'grad_norm': {norm}, 'learning_rate': 1e-05, "
            f"'epoch': {number / len(steps):.2f}, "
            f"{tokens}'global_step/max_steps': '{number}/{len(steps)}', 'elapsed_time': '{int(elapsed)}s', "
            f"'remaining_time': '0s', {memory}'train_speed(s/it)': {elapsed / number:.6f}}}"
        )
    if end:
        lines.append("[INFO:swift] End time of running main: 2026-11-29 14:20:00.000000")
    return ("\n".join(lines) + "\n").encode()


@dataclass
class Story:
    """Collects events and keeps the folded experiment up to date."""

    name: str = "story"
    title: str = "Two nodes on a desk"
    head: str = "degraded: CPU nodes without a GPU"
    service: str = "{kind: none}"
    model: str = TINY
    settings: str = CPU_SETTINGS
    peaks: str = "[]"
    only: tuple[str, ...] = ("E0", "E1")
    facts: Mapping[str, Any] = field(default_factory=lambda: CPU_FACTS)
    gpus: tuple[int | str, int | str] = ("null", "null")
    peak: int = 700 << 20
    """What a node reads when a run names no peak of its own."""
    peak_words: str = "resident memory"
    at: datetime = START
    events: list[ev.Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        profile = PROFILE.format(**vars(self))
        self.add(
            ev.ExperimentOpened,
            name=self.name,
            profile_text=profile,
            profile_file="story.yaml",
            checklist_text=CHECKLIST,
            only=self.only,
            console_version="0.1.0",
        )
        for node in ("node-a", "node-b"):
            if self.facts:
                self.add(ev.NodeDescribed, node=node, facts=dict(self.facts))

    @property
    def experiment(self) -> Experiment:
        return fold(self.events)

    def add(self, kind: type[Any], **fields: Any) -> None:
        self.at += timedelta(seconds=10)
        self.events.append(kind(at=self.at, **fields))

    def walk(self, second: ItemState = ItemState.PASSED, error: str = "") -> None:
        """Both items; the second ends as told."""
        self.add(ev.WalkStarted, box_seconds=2400)
        for item, state in (("baseline", ItemState.PASSED), ("pair", second)):
            self.add(ev.ItemStarted, item=item, box_seconds=900)
            self.add(
                ev.StepEnded,
                item=item,
                step="look" if item == "baseline" else "meet",
                node="node-a",
                command="probe",
                outcome="passed" if state.good else "failed",
                seconds=1.5,
                error="" if state.good else error,
            )
            self.add(ev.ItemEnded, item=item, state=state, seconds=2.0)
        self.add(ev.WalkEnded, verdict=Verdict.ALL_THROUGH if second.good else Verdict.DOWN, seconds=60)

    def hypotheses(self, **texts: str) -> None:
        self.add(ev.HypothesesWritten, texts=texts, sha256=hypothesis_hash(texts))

    def run(
        self,
        config: str,
        log: bytes,
        *,
        outcome: str = "done",
        cause: str = "",
        peaks: Mapping[str, int | None] | None = None,
        attempt: int = 1,
        adopted: bool = False,
        record: bool = True,
    ) -> str:
        """One run from plan to row. `peaks` is in bytes per node; a node with None has no reading."""
        run = f"{config}-{attempt}"
        nodes = self.experiment.profile.configuration(config).nodes
        names = ["node-a", "node-b"][:nodes]
        self.add(
            ev.RunPlanned,
            run=run,
            config=config,
            attempt=attempt,
            purpose="matrix",
            launches=tuple(
                ev.NodeLaunch(node=node, rank=rank, argv=("swift", "sft"), env={})
                for rank, node in enumerate(names)
            ),
            log_node="node-a",
            settings={},
        )
        for node in names:
            self.add(
                ev.JobStarted, run=run, node=node, pid=7, rung="setsid", run_dir="~/.lab", adopted=adopted
            )
        digest = hashlib.sha256(log).hexdigest()
        file = f"logs/node-a/{run}.log"
        source = Source(words="whole log", file=file, node="node-a", sha256=digest)
        self.add(ev.RunEnded, run=run, outcome=outcome, cause=cause, logs={"node-a": source})
        if record:
            self.add(ev.RowRecorded, run=run, row=self.row(run, log, names, peaks or {}))
        return run

    def row(self, run: str, log: bytes, names: list[str], peaks: Mapping[str, int | None]) -> Row:
        logged = LoggedRun(
            log=read_whole(log), file=f"logs/node-a/{run}.log", sha256=hashlib.sha256(log).hexdigest()
        )
        sizes = {node: peaks.get(node, self.peak) for node in names}
        return build_row(
            self.experiment,
            run,
            logs={"node-a": logged},
            peaks_memory={
                node: PeakMemory(
                    size, Source(words=f"{self.peak_words}, highest of 60 readings", node=node), None
                )
                if size
                else PeakMemory(None, None, "the sampler delivered nothing")
                for node, size in sizes.items()
            },
        )

    def close(self, outcome: str = "accepted") -> None:
        self.add(ev.ExperimentClosed, outcome=outcome)


def demo() -> Story:
    """What the embedded lab leaves behind: two complete rows on CPUs, degraded."""
    story = Story()
    story.walk()
    story.hypotheses(E0="The baseline.", E1="A shorter step than E0, since each rank does half of it.")
    story.run("E0", train_log([1.4] + [0.8] * 19, tokens_per_step=1440))
    story.run("E1", train_log([1.2] + [0.5] * 19, tokens_per_step=1440))
    story.close()
    return story


def spark(only: tuple[str, ...] = ("E0", "E1", "R1")) -> Story:
    """A lab of two GPU machines with a 7B model and a borrowed service."""
    return Story(
        name="pair",
        title="Two Sparks, 7B LoRA",
        head="device: GB10",
        service=VLLM,
        model=SEVEN_B,
        settings=GPU_SETTINGS,
        peaks=GB10_PEAK,
        only=only,
        facts=GPU_FACTS,
        peak=20 * GIB,
    )


def seven_b_log(seconds: float, tokens: int = 3200, **more: Any) -> bytes:
    return train_log(
        [seconds * 3] + [seconds] * 29,
        tokens_per_step=tokens,
        mean_tokens=200.0,
        parameters="7635.8021M Params (20.1851M Trainable [0.2643%])",
        memory_gib=20.5,
        **more,
    )
