"""Why a measurement lies outside the band of its prediction: only what recorded facts support.

Each cause is a sentence with the figures that it rests on, in both languages. No cause is an answer too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

from console.core.errors import InputError
from console.core.ledger.of_lab import setup_of
from console.core.ledger.setup import Setup
from console.core.plan.matrix import effective_settings
from console.core.record.computers import one_computer
from console.core.record.experiment import Experiment
from console.core.record.figures import Row
from console.core.record.gaps import Both, ended_well
from console.core.record.views import RunView

GIB = 2**30

IDLE_SHARE = 0.5
"""Below this share of the power that a matrix product drew, the device mostly waited."""
SHORT_SHARE = 0.9
"""The longest row has less than this share of the tokens that the prediction assumed."""
EXCHANGE_RATIO = 1.1

_ENDS: dict[str, Both] = {
    "failed": ("its run failed", "运行失败"),
    "stopped": ("its run was stopped", "运行被停止"),
    "timed out": ("its run ran out of time", "运行超时"),
}
_ASKED = re.compile(r"Tried to allocate ([\d.]+ [KMGT]iB)")
_HELD = re.compile(r"this process has ([\d.]+ [KMGT]iB) memory in use")


def unfinished(experiment: Experiment, row: Row, *, memory: bool = False) -> Both | None:
    """What is said of a run that did not end well instead of a cause; None of one that did.

    `memory`: with what an out-of-memory error says was held and asked for.
    """
    run = experiment.runs.get(row.run)
    if run is None or run.outcome not in _ENDS:
        return None
    end, end_zh = _ENDS[run.outcome]
    last = run.last_step
    if last is None and row.steps:
        end, end_zh = f"{end} after {row.steps} logged steps", f"{end_zh}（已记录 {row.steps} 步）"
    elif last is None:
        end, end_zh = f"{end} before its first step", f"{end_zh}（第一步之前）"
    else:
        of, of_zh = (f" of {last.total}", f"，共 {last.total} 步") if last.total else ("", "")
        end, end_zh = f"{end} at step {last.step}{of}", f"{end_zh}（第 {last.step} 步{of_zh}）"
    asked, held = _ASKED.search(run.cause), _HELD.search(run.cause)
    if memory and asked and held:
        end += f", out of memory: it held {held[1]} and asked for {asked[1]} more"
        end_zh += f"，内存不足：已占 {held[1]}，还要 {asked[1]}"
    return f"{end}; not a figure of a whole run", f"{end_zh}；不是完整运行的数值"


def slower(experiment: Experiment, row: Row) -> Iterator[Both]:
    """Causes of a step that took longer than predicted."""
    yield from _waiting(experiment, row)
    yield from _exchanging(experiment, row)
    run = experiment.runs[row.run]
    if any("NET/Socket" in seen.words for seen in run.transports):
        yield "NCCL sent over TCP sockets (NET/Socket), not RDMA", "NCCL 走 TCP（NET/Socket），没有走 RDMA"


@dataclass(frozen=True, slots=True)
class LongestRow:
    """Tokens of the longest row of the data set, and of the row that the prediction assumes."""

    tokens: int
    assumed: int


def longest_row(experiment: Experiment, row: Row) -> LongestRow | None:
    """None where it is not known, and with packing, which makes other rows of them."""
    run, setup = experiment.runs.get(row.run), setup_of_row(experiment, row)
    if run is None or run.dataset is None or setup is None or not isfinite(run.dataset.max_tokens):
        return None
    config = experiment.profile.configuration(row.id)
    if effective_settings(experiment.profile.settings, config).packing:
        return None
    return LongestRow(round(run.dataset.max_tokens), setup.batch.sequence)


def shorter(experiment: Experiment, row: Row, ratio_to_low: float) -> Iterator[Both]:
    """Causes of a peak below its band: rows shorter than assumed, if the longest is that much shorter.

    `ratio_to_low` is the measurement over the low end of the band.
    """
    seen = longest_row(experiment, row)
    if seen is None:
        return
    share = seen.tokens / seen.assumed
    if share < SHORT_SHARE and share <= ratio_to_low:
        yield (
            f"activations of rows of {seen.assumed:,} tokens were assumed; the longest has {seen.tokens:,}",
            f"预测假定每行 {seen.assumed:,} 个 token 的激活，最长的样本只有 {seen.tokens:,} 个",
        )


def larger(experiment: Experiment, row: Row, node: str, size: int, high: float) -> Iterator[Both]:
    """Causes of a peak above the prediction, which is of what torch reserves."""
    run = experiment.runs[row.run]
    reserved = framework_bytes(run)
    source = " ".join(one.words for one in row.sources.get(f"peak_memory_bytes.{node}", ()))
    if reserved is None or "driver" not in source:
        return
    if reserved > high:
        return
    outside = size - reserved
    torch = f"{reserved / GIB:.1f} GiB"
    if _sums_processes(experiment, row, size, reserved):
        processes = len(run.nodes)
        yield (
            f"torch reserved {torch}, inside the band; the driver's figure is the same on all nodes of this "
            f"one computer and holds the {processes} processes of the run together",
            f"torch 预留 {torch}，在区间内；各节点其实是同一台计算机，驱动的数字相同，"
            f"是 {processes} 个进程之和",
        )
        return
    yield (
        f"torch reserved {torch}, inside the band; the driver's figure has {outside / GIB:.1f} GiB more, "
        "outside torch's allocator: CUDA context, NCCL and library buffers",
        f"torch 预留 {torch}，在区间内；驱动的数字多出 {outside / GIB:.1f} GiB，"
        "在 torch 分配器之外：CUDA 上下文、NCCL 与库的缓冲区",
    )


def framework_bytes(run: RunView) -> int | None:
    """Most that torch had reserved on the rank that logs, by its own log lines."""
    peaks = [step.memory_gib for step in run.steps if step.memory_gib is not None]
    return round(max(peaks) * GIB) if peaks else None


def _waiting(experiment: Experiment, row: Row) -> Iterator[Both]:
    """Little power at little utilisation. A slow link makes it so too: that the host sets the pace is said
    only of a run on one node, or where the baseline on one node waits as well."""
    seen = _idle(experiment, row)
    if seen is None:
        return
    node, drawn, full = seen
    why = "the device mostly waited (launches, the link or the other rank)"
    why_zh = "设备大多在等待（内核发射、链路或另一个 rank）"
    base = _baseline(experiment)
    if experiment.profile.configuration(row.id).nodes == 1:
        why = "host-bound, launches and not arithmetic set the pace"
        why_zh = "受限于主机端的内核发射，不是算力"
    elif base is not None and (alone := _idle(experiment, base)):
        why = f"host-bound on one node already ({base.id} drew {alone[1]:.0f} W)"
        why_zh = f"单节点时（{base.id}，{alone[1]:.0f} W）已受限于主机端的内核发射"
    beside = "" if row.mfu_lora is None else f", MFU {row.mfu_lora:.1%}"
    launch = experiment.nodes[node].facts.get("launch_seconds")
    beside += f", {launch * 1e6:.1f} µs a launch" if isinstance(launch, int | float) else ""
    yield (
        f"{node} drew {drawn:.0f} W of the {full:.0f} W of a matrix product there{beside}: {why}",
        f"{node} 功耗 {drawn:.0f} W，同机矩阵乘为 {full:.0f} W{beside}：{why_zh}",
    )


def _idle(experiment: Experiment, row: Row) -> tuple[str, float, float] | None:
    """The first node whose device drew little, in watts, and what it drew in a matrix product."""
    for node, drawn in row.power_watts.items():
        facts = experiment.nodes[node].facts if node in experiment.nodes else {}
        full = facts.get("power_watts")
        if not isinstance(full, int | float) or facts.get("matmul_tflops") is None:
            continue
        if drawn < IDLE_SHARE * full:
            return node, drawn, full
    return None


def _baseline(experiment: Experiment) -> Row | None:
    """The baseline's row if its run on one node ended well."""
    row = experiment.rows.get(experiment.baseline)
    if row is None or not ended_well(experiment, row):
        return None
    return row if experiment.profile.configuration(row.id).nodes == 1 else None


def _exchanging(experiment: Experiment, row: Row) -> Iterator[Both]:
    """Tensor parallelism against the fastest run without it whose ranks make the same passes. Fewer passes,
    as with data parallelism, or fewer layers, as with pipelines, would shorten the other's step as well."""
    profile, passes = experiment.profile, _passes(experiment, row)
    if row.steady_step_seconds is None or passes is None:
        return
    if profile.configuration(row.id).tensor_parallel < 2:
        return
    others = [
        (other.steady_step_seconds, other.id)
        for other in experiment.rows.values()
        if other.steady_step_seconds
        and ended_well(experiment, other)
        and profile.configuration(other.id).tensor_parallel == 1
        and _passes(experiment, other) == passes
    ]
    if not others:
        return
    seconds, name = min(others)
    if row.steady_step_seconds > EXCHANGE_RATIO * seconds:
        times = f"{row.steady_step_seconds / seconds:.2f}×"
        yield (
            f"communication in every layer: {times} the step of {name}, whose ranks make the same "
            f"{passes[0]} passes without tensor parallelism",
            f"每层都要通信：单步是 {name} 的 {times}，后者每个 rank 同为 {passes[0]} 次前向后向，"
            "没有张量并行",
        )


def _passes(experiment: Experiment, row: Row) -> tuple[int, int, int] | None:
    """Micro-batches per rank and step, samples in each, pipeline stages; None where they are not known."""
    setup = setup_of_row(experiment, row)
    if setup is None:
        return None
    return setup.batch.micro_batches, setup.batch.micro_batch, setup.topology.sizes.pp


def setup_of_row(experiment: Experiment, row: Row) -> Setup | None:
    """What the row's prediction assumes; None where that is not known."""
    try:
        return setup_of(experiment.profile, experiment.profile.configuration(row.id))
    except InputError:
        return None


def _sums_processes(experiment: Experiment, row: Row, size: int, reserved: int) -> bool:
    peaks = row.peak_memory_bytes
    alike = set(peaks.values()) == {size}
    return alike and size >= len(peaks) * reserved and one_computer(experiment, peaks)
