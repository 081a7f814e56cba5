"""Which nodes are one computer: devices of one host, or the embedded nodes of a lab."""

from collections.abc import Collection

from console.core.record.experiment import Experiment

TOGETHER = "of all nodes together (one computer)"
"""Ends the words of a peak that holds a run's processes on all its nodes: readings didn't tell them apart."""


def computer_of(experiment: Experiment, node: str) -> str:
    """What tells the node's computer from others; the nodes of an embedded lab are all of the console's.

    Else it is the boot id. A node whose boot id is not known counts as a computer of its own, so that nodes
    are said to share one only where that was seen.
    """
    if experiment.profile.embedded:
        return "the console's"
    return str(experiment.nodes[node].facts.get("boot_id") or node)


def one_computer(experiment: Experiment, nodes: Collection[str]) -> bool:
    """There are several nodes, and all of them are the same computer."""
    return len(nodes) > 1 and len({computer_of(experiment, node) for node in nodes}) == 1
