"""What it means when nothing comes: rendezvous, data preparation, hang, stall, a node that is gone.

Silence counts only as far as the link can be trusted: while it is down nothing is concluded, and after it
came back the clock starts anew.
"""

from collections.abc import Sequence

from console.core.reading.facts import CheckpointSaved, EvalMetrics, Progress
from console.core.reading.findings import JobState
from console.core.reading.seen import Parameters, Seen
from console.core.reading.situation import NodeSituation, Situation

DATA_BARS = ("Map", "Filter", "Generating", "Downloading", "Loading", "Converting", "Saving", "Packing")
OVER: tuple[JobState, ...] = ("ended", "failed")


def rendezvous_silent(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """Nothing after the launch line of a node that has to meet others: torchrun waits without a word."""
    seen = []
    for node in situation.nodes.values():
        quiet = node.quiet_for(now)
        if node.launch is None or (node.launch.nnodes or 1) < 2 or node.world is not None or node.ended:
            continue
        if quiet is None or quiet < parameters["seconds"] or node.job in OVER or _same_rank(situation, node):
            continue
        address = f"{node.launch.master_addr or 'an unset address'}:{node.launch.master_port or 29500}"
        values = {"seconds": quiet, "address": address, "rank": node.launch.node_rank}
        seen.append(Seen(values, node.name, node.launch, _why_alone(situation, node)))
    return seen


def same_rank(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """Two nodes were launched under one number."""
    for node in situation.nodes.values():
        twin = _same_rank(situation, node)
        if twin is not None and node.launch is not None and node.job not in OVER:
            values = {"first": twin, "second": node.name, "rank": node.launch.node_rank}
            return (Seen(values, node.name, node.launch),)
    return ()


def waiting_for_data(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """A rank is quiet while another prepares data for all: not a hang."""
    if situation.steps or situation.finished:
        return ()
    seen = []
    for node in situation.nodes.values():
        quiet = node.quiet_for(now)
        if node.world is None or quiet is None or quiet < parameters["seconds"] or node.job in OVER:
            continue
        busy = _preparing(situation, node, parameters["recent_seconds"], now)
        if busy is not None and busy.bar is not None:
            done = f"{busy.bar.done}/{busy.bar.total}" if busy.bar.total else str(busy.bar.done)
            values = {"seconds": quiet, "busy": busy.name, "what": f"{busy.bar.label} {done}"}
            seen.append(Seen(values, node.name))
    return seen


def startup_hang(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """All nodes have met, none says anything, and no step has come."""
    if not situation.several_nodes or situation.steps or situation.finished:
        return ()
    started = [node for node in situation.nodes.values() if node.world is not None]
    quiet = [node.quiet_for(now) for node in started]
    if len(started) < 2 or any(node.job in OVER for node in started):
        return ()
    least = min((one for one in quiet if one is not None), default=0.0)
    if None in quiet or least < parameters["seconds"]:
        return ()
    suspect = None
    if situation.expected.shared_cache is False:
        suspect = "MODELSCOPE_CACHE is not on storage that all nodes share"
    return (Seen({"seconds": least}, None, None, suspect),)


def stall(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """No step for `times` the usual time between two signs of progress."""
    node = situation.log_node
    usual = _usual_gap(situation)
    if node is None or usual is None or situation.moved_at is None or situation.finished:
        return ()
    last = situation.last_step
    if node.job in OVER or node.link == "down" or last is None or (last.total and last.step >= last.total):
        return ()
    moved = situation.moved_at
    if node.link == "up":
        moved = max(moved, node.link_since)
    patience = max(parameters["least_seconds"], parameters["times"] * usual)
    if isinstance(situation.moved_by, EvalMetrics | CheckpointSaved):
        patience *= parameters["grace"]
    if now - moved < patience:
        return ()
    values = {"seconds": now - moved, "step": last.step, "usual": usual}
    return (Seen(values, node.name, last),)


def log_node_unread(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """Megatron prints metrics on the last rank only, and that log has not come while another node started."""
    expected = situation.expected.log_node
    if situation.framework != "megatron" or expected is None or situation.steps:
        return ()
    silent = situation.nodes.get(expected)
    if silent is not None and silent.output_at is not None and silent.link != "down":
        return ()
    for node in situation.nodes.values():
        if node.name == expected or node.world is None or node.job in OVER:
            continue
        quiet = node.quiet_for(now)
        if quiet is not None and quiet >= parameters["seconds"]:
            return (Seen({"node": node.name, "log_node": expected, "seconds": quiet}, expected),)
    return ()


def peer_ended(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """One node's job is over while another's goes on."""
    running = [node.name for node in situation.nodes.values() if node.job == "running"]
    for node in situation.nodes.values():
        limit = parameters["failed_seconds" if node.job == "failed" else "ended_seconds"]
        if running and node.job in OVER and now - node.job_since >= limit:
            how_zh = "失败" if node.job == "failed" else "已结束"
            values = {"node": node.name, "how": node.job, "how_zh": how_zh, "others": ", ".join(running)}
            return (Seen(values, node.name),)
    return ()


def no_contact(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """The link to a node with a job has been down for a while. Says nothing about the job."""
    seen = []
    for node in situation.nodes.values():
        silent = now - node.link_since
        busy = node.job in ("starting", "running")
        if node.link == "down" and busy and silent >= parameters["seconds"]:
            seen.append(Seen({"seconds": silent}, node.name))
    return seen


def _same_rank(situation: Situation, node: NodeSituation) -> str | None:
    if node.launch is None or node.launch.node_rank is None or (node.launch.nnodes or 1) < 2:
        return None
    for other in situation.nodes.values():
        if other.name < node.name and other.launch and other.launch.node_rank == node.launch.node_rank:
            return other.name
    return None


def _why_alone(situation: Situation, node: NodeSituation) -> str | None:
    """What the other nodes' launch lines say about this one's silence."""
    if node.launch is None:
        return None
    for name in situation.expected.nodes:
        other = situation.nodes.get(name)
        if name == node.name:
            continue
        if other is None or other.launch is None:
            return f"{name} has not been started yet"
        mine = (node.launch.master_addr, node.launch.master_port)
        theirs = (other.launch.master_addr, other.launch.master_port)
        if mine != theirs and node.launch.node_rank != 0 and other.launch.node_rank != 0:
            return f"{name} looks for another master ({theirs[0]}:{theirs[1]})"
        if mine[1] != theirs[1]:
            return f"{name} uses another port ({theirs[1]})"
    return None


def _preparing(
    situation: Situation, waiting: NodeSituation, recent: float, now: float
) -> NodeSituation | None:
    for node in situation.nodes.values():
        if node is waiting or node.bar is None or node.bar_at is None or now - node.bar_at > recent:
            continue
        if node.bar.label.startswith(DATA_BARS):
            return node
    return None


def _usual_gap(situation: Situation) -> float | None:
    """Seconds between two signs of progress: one step with a bar, else the steps between two log lines."""
    steps = [step for step in situation.steps if step.elapsed_seconds is not None]
    windows = [step for step in situation.steps if step.iteration_seconds is not None]
    if len(situation.steps) < 2:
        return None
    spacing = situation.steps[-1].step - situation.steps[-2].step
    if windows:
        per_step = windows[-1].iteration_seconds or 0.0
    elif len(steps) >= 2:
        recent = steps[-10:]
        first, last = recent[0], recent[-1]
        count = last.step - first.step
        per_step = ((last.elapsed_seconds or 0.0) - (first.elapsed_seconds or 0.0)) / count if count else 0.0
    else:
        return None
    barred = any(
        isinstance(node.bar, Progress) and node.bar.label.startswith("Train") and node.bar.done > 1
        for node in situation.nodes.values()
    )
    return max(0.0, per_step) * (1 if barred else max(1, spacing))
