"""Which parallelism to try first in a situation; the course's selection rules as advice."""

from typing import NamedTuple

LONG_SEQUENCE = 32_768


class Situation(NamedTuple):
    """What matters for the choice."""

    fits_one_device: bool
    devices_per_node: int
    nodes: int
    has_experts: bool
    sequence: int


class Suggestion(NamedTuple):
    """One line of advice."""

    first: str
    why: str


def suggest(situation: Situation) -> tuple[Suggestion, ...]:
    """All suggestions that apply, the deciding one first."""
    found = []
    if situation.fits_one_device:
        found.append(
            Suggestion("data parallelism, optimizer state sharded", "one exchange per step; scales best")
        )
    elif situation.devices_per_node > 1:
        found.append(
            Suggestion(
                "tensor and sequence parallelism inside the node, data parallelism around it",
                "tensor parallelism exchanges in every layer and needs the fast links",
            )
        )
    if situation.nodes > 1:
        found.append(
            Suggestion(
                "pipeline or data parallelism across nodes",
                "a pipeline sends only stage borders, data parallelism once per step",
            )
        )
    if situation.has_experts:
        found.append(
            Suggestion(
                "EP for the experts, not ETP; attention grouped on its own",
                "expert and dense groups are folded over the same ranks",
            )
        )
    if situation.sequence >= LONG_SEQUENCE:
        found.append(
            Suggestion(
                "context parallelism with recomputation",
                "activations grow with the sequence; treat them first",
            )
        )
    if situation.nodes == 2 and situation.devices_per_node == 1:
        found.append(
            Suggestion(
                "measure data against tensor and pipeline parallelism across the two machines",
                "two machines are the smallest scale at which the answer can be measured",
            )
        )
    return tuple(found)
