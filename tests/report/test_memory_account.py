"""Where memory goes: a peak is set against the account of just what it holds, and of the room it has."""

from dataclasses import replace

import pytest
from support.lab_story import GIB, Story, seven_b_log, spark

from console.core.ledger import catalogue
from console.report.answers import memory
from console.report.choice import choice
from console.report.onepage import one_page


def pair(story: Story, peak: int) -> Story:
    story.run("E0", seven_b_log(4.0), peaks={"node-a": 20 * GIB})
    story.run("E1", seven_b_log(2.2), peaks={"node-a": peak, "node-b": peak})
    return story


def test_a_peak_of_all_nodes_together_holds_a_copy_of_the_model_for_each() -> None:
    apart = memory(pair(spark(), 21 * GIB).experiment).lines[1]
    words = "driver's figure for the run's processes of all nodes together (one computer)"
    story = replace(spark(), peak_words=words, events=[])
    together = memory(pair(story, 42 * GIB).experiment).lines[1]
    assert apart.static_bytes is not None
    assert together.static_bytes == 2 * apart.static_bytes
    assert "E1 driver's figure for the run's processes of all nodes together" in one_page(
        story.experiment, "en"
    )


def test_a_gpu_with_memory_of_its_own_is_full_by_its_own_measure() -> None:
    card = catalogue.device("H200").memory_bytes
    story = replace(spark(), head="device: H200", events=[])
    found = choice(pair(story, round(0.95 * card)).experiment)
    assert found.memory_share == pytest.approx(0.95, abs=0.001)
    assert found.tight


def test_a_spark_shares_its_memory_and_is_measured_by_the_nodes() -> None:
    found = choice(pair(spark(), 40 * GIB).experiment)
    assert found.memory_share is not None
    assert not found.tight
    assert found.paper.spark_bytes == pytest.approx(119.7 * GIB)
