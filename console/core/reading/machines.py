"""What nodes say side by side: transports, a slow rank, ranks that train alone, exceptions."""

import statistics
from collections.abc import Sequence
from itertools import pairwise

from console.core.reading.facts import Symptom, Traceback
from console.core.reading.nccl import transport
from console.core.reading.seen import Parameters, Seen
from console.core.reading.situation import NodeSituation, Situation

NEAR_BYTES = 4096
"""A symptom this close before a traceback is about the same trouble."""


def sockets_used(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """NCCL talks TCP between the nodes although RDMA was intended."""
    if not situation.expected.rdma or not situation.several_nodes:
        return ()
    seen = []
    for node in situation.nodes.values():
        evidence = transport(node.nccl)
        if evidence is None or not evidence.sockets_between_nodes:
            continue
        line = next((one for one in reversed(evidence.lines) if "Socket" in one.text), evidence.lines[-1])
        suspect = evidence.warnings[0] if evidence.warnings else None
        seen.append(Seen({"line": line.text}, node.name, line, suspect))
    return seen


def rail_missing(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """NCCL lists fewer adapters than the plan has."""
    wanted = situation.expected.rails
    if wanted is None or wanted < 2:
        return ()
    seen = []
    for node in situation.nodes.values():
        evidence = transport(node.nccl)
        if evidence is None or not evidence.hcas or evidence.rails >= wanted:
            continue
        line = next(one for one in evidence.lines if "NET/IB : Using" in one.text)
        values = {"rails": evidence.rails, "wanted": wanted, "adapters": ", ".join(evidence.hcas)}
        seen.append(Seen(values, node.name, line))
    return seen


def slow_rank(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """One node works while the others wait for it: lower clock, or much more power than they draw.

    A rank that waits in a collective shows full utilisation at little power. Pipeline stages differ by
    design, so power is compared only without them.
    """
    if not situation.stepping or len(situation.nodes) < 2:
        return ()
    clocks = _means(situation, "sm_clock_hertz", parameters, now)
    slowest = _outlier(clocks, low=True, ratio=parameters["clock_ratio"])
    if slowest is not None:
        name, value, others = slowest
        own, usual = f"{value / 1e9:.2f} GHz", f"{others / 1e9:.2f} GHz"
        what = {
            "what": f"its SM clock is {own}, the others' {usual}",
            "what_zh": f"它的 SM 频率为 {own}，其余为 {usual}",
        }
        return (Seen(what, name),)
    if situation.topology is not None and situation.topology.pp > 1:
        return ()
    powers = _means(situation, "gpu_power_watts", parameters, now)
    busiest = _outlier(powers, low=False, ratio=parameters["power_ratio"])
    if busiest is None:
        return ()
    name, value, others = busiest
    what = {
        "what": f"it draws {value:.0f} W while the others wait at {others:.0f} W",
        "what_zh": f"它的功率为 {value:.0f} W，其余在等待，功率为 {others:.0f} W",
    }
    return (Seen(what, name),)


def trains_alone(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """Ranks believe in a world of several but don't exchange gradients.

    On the `swift` path only rank 0 prints metrics, so metrics of a higher rank are proof; so are different
    losses for one step on two nodes.
    """
    if situation.framework == "swift":
        for node in situation.nodes.values():
            world = node.world
            if world and node.step and world.rank > 0 and world.world_size > 1:
                what = {
                    "what": f"rank {world.rank} of {world.world_size} prints metrics of its own",
                    "what_zh": f"{world.world_size} 个 rank 中的 rank {world.rank} 自行打印指标",
                }
                return (Seen(what, node.name, node.step),)
    reporting = [node for node in situation.nodes.values() if node.step is not None]
    for first, second in pairwise(reporting):
        one, other = first.step, second.step
        if one is None or other is None or one.step != other.step or one.loss is None or other.loss is None:
            continue
        if abs(one.loss - other.loss) > parameters["difference"] * max(abs(one.loss), abs(other.loss)):
            what = {
                "what": f"step {one.step}: loss {one.loss} on {first.name}, {other.loss} on {second.name}",
                "what_zh": f"第 {one.step} 步损失：{first.name} 上 {one.loss}，{second.name} 上 {other.loss}",
            }
            return (Seen(what, second.name, other),)
    return ()


def exception(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """An exception that no other rule explains. Wrappers and aftermath count only as what they are."""
    seen = []
    for node in situation.nodes.values():
        real = [one for one in _tracebacks(node) if not one.wrapper and not one.secondary]
        if real and not _explained(node, real[0]):
            values = {"kind": real[0].kind, "message": real[0].message[:300]}
            seen.append(Seen(values, node.name, real[0]))
    return seen


def _tracebacks(node: NodeSituation) -> list[Traceback]:
    return [trouble.fact for trouble in node.troubles if isinstance(trouble.fact, Traceback)]


def _explained(node: NodeSituation, traceback: Traceback) -> bool:
    return any(
        traceback.start_byte - NEAR_BYTES <= trouble.fact.start_byte <= traceback.end_byte
        for trouble in node.troubles
        if isinstance(trouble.fact, Symptom)
    )


def _means(situation: Situation, field: str, parameters: Parameters, now: float) -> dict[str, float]:
    """Mean of a reading over the window, per node; only nodes that were busy all the time."""
    means = {}
    for node in situation.nodes.values():
        inside = [sample for sample in node.samples if sample.at > now - parameters["window_seconds"]]
        values = [getattr(sample, field) for sample in inside if getattr(sample, field) is not None]
        use = [sample.gpu_utilization for sample in inside if sample.gpu_utilization is not None]
        busy = bool(use) and min(use) >= parameters["utilization"]
        if busy and len(values) >= parameters["samples"]:
            means[node.name] = statistics.fmean(values)
    return means


def _outlier(means: dict[str, float], *, low: bool, ratio: float) -> tuple[str, float, float] | None:
    """The node furthest out, its value, and the mean of the others, if they differ by `ratio`."""
    if len(means) < 2:
        return None
    name = (min if low else max)(means, key=lambda one: means[one])
    others = statistics.fmean(value for other, value in means.items() if other != name)
    small, large = sorted((means[name], others))
    return (name, means[name], others) if small <= 0 or large / small >= ratio else None
