"""Rules about what does not come. The clock is a number; nothing here waits."""

import pytest

from console.core.reading.diagnosis import Expectation
from console.core.reading.facts import LogFact
from tests.reading.diagnosing import (
    PAIR,
    diagnosis,
    ended,
    ids,
    launched,
    met,
    moving,
    saved,
    step,
    steps,
    validation,
)

MEGATRON = Expectation(framework="megatron", nodes=("node-a", "node-b"), log_node="node-b")


def two_nodes(expectation=PAIR, *, state="running"):
    watched = diagnosis(expectation)
    for node in ("node-a", "node-b"):
        watched.link(node, "up", 0.0)
        watched.job(node, state, 0.0)
    return watched


def test_silence_after_launch_is_named_and_clears_when_the_ranks_meet():
    watched = two_nodes()
    watched.facts("node-a", [launched(0)], 1.0)
    watched.facts("node-b", [launched(1)], 1.0)
    assert watched.tick(80.0) == ()
    changes = watched.tick(95.0)
    assert {change.finding.key for change in changes} == {
        ("rendezvous-silent", "node-a"),
        ("rendezvous-silent", "node-b"),
    }
    assert "node-a:29500" in changes[0].finding.seen
    cleared = watched.facts("node-b", [met(1)], 96.0)
    assert [(change.what, change.finding.node) for change in cleared] == [("cleared", "node-b")]


def test_silence_names_the_node_that_was_not_started():
    watched = two_nodes()
    watched.facts("node-a", [launched(0)], 1.0)
    watched.tick(100.0)
    assert watched.active[0].suspects[0] == "node-b has not been started yet"


def test_silence_names_another_port():
    watched = two_nodes()
    watched.facts("node-a", [launched(0)], 1.0)
    watched.facts("node-b", [launched(1, port=29511)], 1.0)
    watched.tick(100.0)
    suspects = {finding.node: finding.suspects[0] for finding in watched.active}
    assert suspects == {
        "node-a": "node-b uses another port (29511)",
        "node-b": "node-a uses another port (29500)",
    }


def test_a_single_node_has_no_rendezvous_to_wait_for():
    watched = diagnosis()
    watched.facts("node-a", [launched(0, nnodes=1)], 1.0)
    watched.tick(500.0)
    assert watched.active == ()


def test_output_of_any_kind_is_no_silence():
    watched = two_nodes()
    watched.facts("node-a", [launched(0)], 1.0)
    watched.facts("node-b", [launched(1)], 1.0)
    for second in (50.0, 90.0):
        watched.facts("node-a", (), second)
        watched.output("node-b", second)
    watched.tick(120.0)
    assert watched.active == ()


def test_nothing_is_concluded_while_the_link_is_down_nor_at_once_when_it_is_back():
    watched = two_nodes()
    watched.facts("node-a", [launched(0)], 1.0)
    watched.facts("node-b", [launched(1)], 1.0)
    watched.facts("node-a", [met(0)], 2.0)
    watched.link("node-b", "down", 3.0)
    watched.tick(200.0)
    assert "rendezvous-silent" not in ids(watched)
    watched.link("node-b", "up", 201.0)
    watched.tick(250.0)
    assert "rendezvous-silent" not in ids(watched)
    watched.tick(295.0)
    assert "rendezvous-silent" in ids(watched)


def test_two_nodes_of_one_number():
    watched = two_nodes()
    watched.facts("node-a", [launched(0)], 1.0)
    watched.facts("node-b", [launched(0)], 1.0)
    assert ids(watched) == {"same-rank"}
    watched.tick(200.0)
    assert "rendezvous-silent" not in {f.id for f in watched.active if f.node == "node-b"}


def test_two_numbers_are_no_finding():
    watched = two_nodes()
    watched.facts("node-a", [launched(0)], 1.0)
    watched.facts("node-b", [launched(1)], 1.0)
    assert watched.active == ()


def test_a_rank_that_waits_for_data_is_not_hanging():
    watched = two_nodes()
    watched.facts("node-a", [launched(0), met(0)], 1.0)
    watched.facts("node-b", [launched(1), met(1)], 1.0)
    for second in range(5, 400, 5):
        watched.facts("node-a", [moving("Map", second, 1500)], float(second))
    watched.tick(400.0)
    assert [(finding.id, finding.node) for finding in watched.active] == [("waiting-for-data", "node-b")]
    assert "node-a prepares data (Map 65/1500)" in watched.active[0].seen
    watched.facts("node-a", [step(1)], 401.0)
    assert watched.active == ()


def test_nodes_that_all_go_quiet_before_the_first_step_hang():
    watched = two_nodes(Expectation(nodes=("node-a", "node-b"), shared_cache=False))
    watched.facts("node-a", [launched(0), met(0)], 1.0)
    watched.facts("node-b", [launched(1), met(1)], 1.0)
    watched.tick(290.0)
    assert watched.active == ()
    watched.tick(302.0)
    (finding,) = watched.active
    assert finding.id == "startup-hang"
    assert finding.suspects[0].startswith("MODELSCOPE_CACHE")


@pytest.mark.parametrize("shared", [True, None])
def test_the_cache_is_no_suspect_unless_it_was_seen_not_to_be_shared(shared: bool | None):
    watched = two_nodes(Expectation(nodes=("node-a", "node-b"), shared_cache=shared))
    watched.facts("node-a", [launched(0), met(0)], 1.0)
    watched.facts("node-b", [launched(1), met(1)], 1.0)
    watched.tick(302.0)
    assert ids(watched) == {"startup-hang"}
    assert not watched.active[0].suspects[0].startswith("MODELSCOPE_CACHE")


def test_a_start_that_could_not_be_heard_is_no_hang():
    watched = two_nodes()
    watched.facts("node-a", [launched(0), met(0)], 1.0)
    watched.facts("node-b", [launched(1), met(1)], 1.0)
    for node in ("node-a", "node-b"):
        watched.link(node, "down", 2.0)
    watched.tick(2000.0)
    assert "startup-hang" not in ids(watched)
    for node in ("node-a", "node-b"):
        watched.link(node, "up", 2001.0)
    watched.tick(2010.0)
    assert "startup-hang" not in ids(watched)


def test_a_run_that_steps_does_not_hang_at_start():
    watched = two_nodes()
    watched.facts("node-a", [met(0), step(1)], 1.0)
    watched.facts("node-b", [met(1)], 1.0)
    watched.tick(302.0)
    assert "startup-hang" not in ids(watched)


def test_a_stall_is_found_after_many_usual_steps_and_clears_with_the_next():
    watched = two_nodes()
    watched.facts("node-a", steps([3.0, 2.9, 2.8, 2.7], every=5), 100.0)
    watched.tick(155.0)
    assert watched.active == ()
    watched.tick(161.0)
    (finding,) = watched.active
    assert finding.id == "stall"
    assert finding.node == "node-a"
    assert "after step 16" in finding.seen
    assert [change.what for change in watched.facts("node-a", [step(21, 2.6)], 170.0)] == ["cleared"]


def test_slow_steps_are_no_stall():
    watched = two_nodes()
    slow = [step(number, 3.0 - number / 10, seconds=30.0) for number in (1, 2, 3)]
    watched.facts("node-a", slow, 100.0)
    watched.tick(100.0 + 7 * 30)
    assert watched.active == ()
    watched.tick(100.0 + 9 * 30)
    assert ids(watched) == {"stall"}


def test_a_moving_bar_is_progress():
    watched = two_nodes()
    watched.facts("node-a", steps([3.0, 2.9]), 100.0)
    for second in range(110, 300, 10):
        watched.facts("node-a", [moving("Evaluate", second)], float(second))
    watched.tick(300.0)
    assert watched.active == ()


@pytest.mark.parametrize("fact", [saved(2), validation(2, 2.5)], ids=["saving", "evaluating"])
def test_saving_and_evaluating_get_more_time(fact: LogFact):
    watched = two_nodes()
    watched.facts("node-a", [*steps([3.0, 2.9]), fact], 100.0)
    watched.tick(200.0)
    assert watched.active == ()


def test_nothing_is_to_come_after_the_last_step():
    watched = two_nodes()
    watched.facts("node-a", [step(999, 2.1), step(1000, 2.0)], 100.0)
    watched.tick(900.0)
    assert watched.active == ()


def test_a_run_that_ended_does_not_stall():
    watched = two_nodes()
    watched.facts("node-a", [*steps([3.0, 2.9]), ended()], 100.0)
    watched.tick(900.0)
    assert watched.active == ()


def test_a_stall_is_not_claimed_while_the_log_can_not_be_seen():
    watched = two_nodes()
    watched.facts("node-a", steps([3.0, 2.9]), 100.0)
    watched.link("node-a", "down", 101.0)
    watched.tick(300.0)
    assert ids(watched) == {"no-contact"}
    watched.link("node-a", "up", 301.0)
    watched.tick(330.0)
    assert watched.active == ()


def test_metrics_on_a_node_whose_log_does_not_come():
    watched = two_nodes(MEGATRON)
    watched.link("node-b", "down", 0.0)
    watched.facts("node-a", [met(0)], 1.0)
    watched.tick(130.0)
    assert "log-node-unread" in ids(watched)
    watched.link("node-b", "up", 131.0)
    watched.facts("node-b", [step(1)], 132.0)
    assert "log-node-unread" not in ids(watched)


def test_a_quiet_first_node_is_normal_while_the_last_rank_is_heard():
    watched = two_nodes(MEGATRON)
    watched.facts("node-a", [met(0)], 1.0)
    for second in range(1, 200):
        watched.facts("node-b", [step(second, 3.0 - second / 100)], float(second))
    watched.tick(200.0)
    assert watched.active == ()


def test_one_job_that_failed_while_the_other_runs():
    watched = two_nodes()
    watched.job("node-b", "failed", 50.0)
    watched.tick(55.0)
    assert watched.active == ()
    watched.tick(61.0)
    (finding,) = watched.active
    assert (finding.id, finding.node) == ("node-gone", "node-b")
    assert "still running: node-a" in finding.seen
    assert [change.what for change in watched.job("node-a", "failed", 62.0)] == ["cleared"]


def test_jobs_that_end_seconds_apart_are_normal():
    watched = two_nodes()
    watched.job("node-b", "ended", 50.0)
    watched.tick(80.0)
    assert watched.active == ()


def test_no_contact_is_said_of_a_running_job_only():
    watched = two_nodes(state="ended")
    watched.link("node-b", "down", 10.0)
    watched.tick(100.0)
    assert watched.active == ()
    running = two_nodes()
    running.link("node-b", "down", 10.0)
    running.tick(30.0)
    assert running.active == ()
    running.tick(40.0)
    assert ids(running) == {"no-contact"}
    assert "what its job does is unknown" in running.active[0].seen
