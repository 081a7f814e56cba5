"""Which parallel groups leave a node, and what to think of it.

With tp innermost and pp outermost a group of size n and stride k stays inside a node exactly when k x n
divides the devices of a node.
"""

from typing import Literal, NamedTuple

from console.core.errors import InputError
from console.core.plan.topology import Topology

SHORT_SEQUENCE = 32_768


class Group(NamedTuple):
    """One kind of parallel group: ranks per group, and whether any group spans nodes."""

    name: str
    size: int
    crosses_nodes: bool


class Advice(NamedTuple):
    """One remark on a placement. A warning costs speed, it does not stop a run."""

    level: Literal["warning", "note"]
    what: str
    why: str


def groups(topology: Topology, devices_per_node: int) -> tuple[Group, ...]:
    """Every group larger than one, dense order tp-cp-dp-pp, expert order etp-ep-edp-pp."""
    if devices_per_node < 1:
        raise InputError(
            f"devices per node {devices_per_node}", why="must be at least 1", next_step="devices per node 1"
        )
    sizes = topology.sizes
    dense = (("TP", sizes.tp), ("CP", sizes.cp), ("DP", topology.dp), ("PP", sizes.pp))
    expert = (("ETP", sizes.etp), ("EP", sizes.ep), ("expert DP", topology.edp))
    several = topology.world_size > devices_per_node
    found = [*_laid_out(dense, devices_per_node, several), *_laid_out(expert, devices_per_node, several)]
    return tuple(group for group in found if group.size > 1)


def advise(
    topology: Topology, devices_per_node: int, *, sequence: int | None, has_experts: bool
) -> tuple[Advice, ...]:
    """The placement rules as warnings: heavy traffic inside a node, light traffic across."""
    sizes = topology.sizes
    crossing = {group.name for group in groups(topology, devices_per_node) if group.crosses_nodes}
    remarks = []
    if "TP" in crossing:
        remarks.append(
            Advice("warning", f"TP {sizes.tp} crosses nodes", "it gathers and scatters in every layer")
        )
    if "EP" in crossing and has_experts:
        remarks.append(
            Advice(
                "warning", f"EP {sizes.ep} crosses nodes", "four all-to-all per layer, growing with tokens"
            )
        )
    if "ETP" in crossing and has_experts:
        remarks.append(
            Advice("warning", f"ETP {sizes.etp} crosses nodes", "it gathers in every expert layer")
        )
    if "CP" in crossing:
        remarks.append(
            Advice("warning", f"CP {sizes.cp} crosses nodes", "keys and values travel in every layer")
        )
    if has_experts and sizes.etp > 1 and sizes.ep == 1:
        remarks.append(
            Advice(
                "warning", f"ETP {sizes.etp} without EP", "EP cuts experts with less traffic; use EP first"
            )
        )
    if sizes.cp > 1 and sequence is not None and sequence < SHORT_SEQUENCE:
        remarks.append(
            Advice(
                "warning",
                f"CP {sizes.cp} at sequence {sequence}",
                f"pays off from about {SHORT_SEQUENCE} tokens on",
            )
        )
    if sizes.tp > 1 and not sizes.sequence_parallel:
        remarks.append(
            Advice(
                "note", f"TP {sizes.tp} without sequence parallelism", "norm activations stand on every rank"
            )
        )
    if sizes.tp == 1 and sizes.sequence_parallel:
        remarks.append(
            Advice("note", "sequence parallelism with TP 1", "the framework switches it off silently")
        )
    if has_experts and topology.edp == 1 and topology.dp > 1:
        remarks.append(
            Advice(
                "note",
                f"expert DP is 1 while DP is {topology.dp}",
                "expert optimizer state is not sharded at all",
            )
        )
    for light in ("PP", "DP"):
        if light in crossing:
            remarks.append(
                Advice("note", f"{light} crosses nodes", "the right one to cross: little or rare traffic")
            )
    return tuple(remarks)


def _laid_out(order: tuple[tuple[str, int], ...], devices_per_node: int, several: bool) -> list[Group]:
    stride, found = 1, []
    for name, size in order:
        crosses = several and size > 1 and devices_per_node % (stride * size) != 0
        found.append(Group(name, size, crosses))
        stride *= size
    return found
