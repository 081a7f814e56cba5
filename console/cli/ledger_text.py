"""What `lab ledger` prints for a person: units on every number, the band with its reason, the peak stage
marked.
"""

from console.core.ledger.choose import Choice
from console.core.ledger.classic import ClassicAccount, fits_sparks
from console.core.ledger.feasible import Candidate
from console.core.ledger.flops import lora_parameters
from console.core.ledger.memory import MemoryEstimate, Stage
from console.core.ledger.numbers import gb, gib
from console.core.ledger.scenario import Suggestion
from console.core.ledger.setup import Setup
from console.core.ledger.steptime import StepTime
from console.core.plan.placement import Advice, Group
from console.core.plan.topology import PipelineLayout, Topology

LABEL_WIDTH = 27


def duration(seconds: float) -> str:
    """Seconds in the unit a person would use."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.3g} s"


def row(label: str, value: str, remark: str = "") -> str:
    """One aligned line: label, value, remark."""
    return f"{label:<{LABEL_WIDTH}}{value:>14}   {remark}".rstrip()


def setup_lines(setup: Setup) -> list[str]:
    """What the numbers below are about."""
    architecture, batch, method = setup.architecture, setup.batch, setup.method
    total = architecture.parameters.total
    trained = "all trained"
    if method.frozen_base:
        adapters = lora_parameters(architecture, method.lora_rank, method.targets).total
        trained = f"{adapters:,} trained: rank {method.lora_rank} on {', '.join(method.targets)}"
    return [
        f"{architecture.name} · {method.kind} · {total:,} parameters, {trained}",
        topology_line(setup.topology),
        f"micro-batch {batch.micro_batch} x {batch.sequence} tokens, {batch.micro_batches} per step and rank"
        f" · recompute {setup.recompute.kind} · {setup.loss} loss",
    ]


def topology_line(topology: Topology) -> str:
    sizes = topology.sizes
    words = [
        f"{topology.world_size} devices = TP {sizes.tp} x PP {sizes.pp} x CP {sizes.cp} x DP {topology.dp}"
    ]
    if sizes.ep > 1 or sizes.etp > 1:
        words.append(f"experts ETP {sizes.etp} x EP {sizes.ep} x PP {sizes.pp} x expert DP {topology.edp}")
    words.append(f"sequence parallelism {'on' if sizes.sequence_parallel and sizes.tp > 1 else 'off'}")
    return " · ".join(words)


def memory_text(setup: Setup, memory: MemoryEstimate, verdict: str, notes: tuple[str, ...]) -> str:
    low, high = memory.band.around(memory.reserved_bytes)
    lines = setup_lines(setup)
    for stage in memory.stages:
        lines += [
            "",
            *_stage_lines(stage, is_peak=stage.index == memory.peak_stage and len(memory.stages) > 1),
        ]
    lines += [
        "",
        row("allocated, at the peak", gib(memory.allocated_bytes), "max_memory_allocated"),
        row("reserved", gib(memory.reserved_bytes), "what ms-swift prints; 1.05 x allocated"),
        row("  expected between", f"{gib(low)}", f"and {gib(high)}: {memory.band.reason}"),
        row("nvidia-smi", _shown(memory), memory.shown_reason),
    ]
    if verdict:
        lines += ["", verdict]
    return "\n".join([*lines, *(f"note: {note}" for note in notes)])


def _shown(memory: MemoryEstimate) -> str:
    return "no figure" if memory.shown_bytes is None else f"from {gib(memory.shown_bytes[0])}"


def _stage_lines(stage: Stage, *, is_peak: bool) -> list[str]:
    mark = "  <- the peak" if is_peak else ""
    lines = [f"stage {stage.index}, {stage.layers} layers{mark}"]
    lines += [row(f"  {term.name}", gib(term.bytes), term.rule) for term in stage.terms]
    return [*lines, row("  allocated", gib(stage.allocated_bytes))]


def classic_text(name: str, account: ClassicAccount, exact_parameters: int | None) -> str:
    lines = [
        f"{name} · the course's account, activations left out",
        row("weights, BF16", gb(account.weights_bytes), f"2 B x {account.parameters / 1e9:g} B parameters"),
        row("gradients, BF16", gb(account.gradients_bytes)),
        row("AdamW state, FP32", gb(account.optimizer_bytes), "12 B per trained parameter"),
        row("static", gb(account.static_bytes), "GB are 10^9 bytes here"),
        row("one Spark", "", fits_sparks(account, 1)),
        row("two Sparks, cut evenly", "", fits_sparks(account, 2)),
    ]
    if exact_parameters:
        lines.append(f"note: the exact count is {exact_parameters:,}; the course rounds")
    return "\n".join(lines)


def step_text(step: StepTime) -> str:
    return "\n".join(
        [
            row(f"step time, {step.basis}", duration(step.seconds), step.reason),
            row("  expected between", duration(step.low_seconds), f"and {duration(step.high_seconds)}"),
        ]
    )


def topology_text(
    topology: Topology | None,
    stages: tuple[int, ...] | None,
    layout: PipelineLayout | None,
    reach: tuple[Group, ...],
    advice: tuple[Advice, ...],
) -> str:
    lines = []
    if topology is not None:
        sizes = topology.sizes
        lines += [
            row(
                "DP",
                str(topology.dp),
                f"{topology.world_size} / (TP {sizes.tp} x PP {sizes.pp} x CP {sizes.cp})",
            ),
            row(
                "expert DP",
                str(topology.edp),
                f"{topology.world_size} / (ETP {sizes.etp} x EP {sizes.ep} x PP {sizes.pp})",
            ),
        ]
    if layout is not None:
        lines += ["stages", *(f"  {line}" for line in layout.draw().splitlines())]
    elif stages is not None:
        lines += ["stages", *(f"  rank {i}: {count} layers" for i, count in enumerate(stages))]
    lines += [
        row(f"{group.name} {group.size}", "crosses nodes" if group.crosses_nodes else "inside a node")
        for group in reach
    ]
    lines += [f"{remark.level}: {remark.what}: {remark.why}" for remark in advice]
    return "\n".join(lines)


def choice_text(choice: Choice) -> str:
    lines = [f"limit {gib(choice.memory_limit_bytes)} per device"]
    for verdict in choice.verdicts:
        rank = f"{verdict.rank}." if verdict.rank else " -"
        lines.append(
            f"{rank:>3} {verdict.row.name:<22}{verdict.row.memory_gib:>7.1f} GiB  "
            f"{verdict.row.relative_step_time:.2f} x  {verdict.reason}"
        )
        lines.append(f"      {verdict.row.settings}, sequence {verdict.row.sequence}")
    if choice.best is None:
        lines.append("nothing fits: shorten the sequence, recompute more, or offload")
    return "\n".join(lines)


def candidates_text(found: tuple[Candidate, ...], suggestions: tuple[Suggestion, ...], most: int) -> str:
    lines = ["  cut                       reserved   verdict"]
    for candidate in found[:most]:
        sizes = candidate.topology.sizes
        cut = f"TP {sizes.tp} PP {sizes.pp} EP {sizes.ep} DP {candidate.topology.dp}"
        lines.append(
            f"  {cut:<22}{gib(candidate.memory.reserved_bytes):>12}   {candidate.fit}: {candidate.reason}"
        )
        lines += [f"      {remark.what}: {remark.why}" for remark in candidate.warnings]
    if len(found) > most:
        lines.append(f"  and {len(found) - most} more; --json lists all")
    lines += ["", *(f"{suggestion.first}: {suggestion.why}" for suggestion in suggestions)]
    return "\n".join(lines)
