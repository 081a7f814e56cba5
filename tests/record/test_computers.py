"""Which nodes are one computer, by what is known of them."""

from dataclasses import replace

import pytest
from support.lab_story import Story

from console.core.record import events as ev
from console.core.record.computers import computer_of, one_computer
from console.core.record.experiment import Experiment
from console.core.record.views import NodeView


def lab(head: str, *boots: str | None) -> Experiment:
    story = Story(head=head, facts={})
    for node, boot in zip(("node-a", "node-b"), boots, strict=False):
        story.add(ev.NodeDescribed, node=node, facts={"boot_id": boot})
    return story.experiment


@pytest.mark.parametrize(
    ("boots", "one"),
    [(("b1", "b1"), True), (("b1", "b2"), False), (("b1", None), False), ((None, None), False), ((), False)],
)
def test_nodes_are_one_computer_only_where_their_boot_ids_say_so(
    boots: tuple[str | None, ...], one: bool
) -> None:
    experiment = lab("degraded: two boards", *boots)
    assert one_computer(experiment, ("node-a", "node-b")) is one
    assert (computer_of(experiment, "node-a") == computer_of(experiment, "node-b")) is one


@pytest.mark.parametrize("boots", [(), (None, None), ("b1", None)])
def test_embedded_nodes_are_one_computer_whatever_is_known_of_them(boots: tuple[str | None, ...]) -> None:
    assert one_computer(lab("embedded: true", *boots), ("node-a", "node-b"))


def test_a_node_alone_shares_with_none() -> None:
    assert not one_computer(lab("embedded: true"), ("node-a",))


def test_two_of_three_that_share_one_do_not_make_all_of_them_one() -> None:
    pair = lab("degraded: two boards", "b1", "b1")
    third = NodeView("node-c", facts={"boot_id": "b2"})
    experiment = replace(pair, nodes={**pair.nodes, third.name: third})
    assert one_computer(experiment, ("node-a", "node-b"))
    assert not one_computer(experiment, experiment.nodes)
