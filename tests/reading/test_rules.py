"""The rule file: what is refused, and how findings behave over time."""

import re

import pytest

from console.core.errors import InputError
from console.core.reading.findings import Finding
from console.core.reading.rules import FindingRule, Rules, SymptomCondition, load_rules
from tests.reading import test_diagnosis_losses as losses
from tests.reading import test_diagnosis_machines as machines
from tests.reading import test_diagnosis_signatures as signatures
from tests.reading import test_diagnosis_silence as silence
from tests.reading.diagnosing import PAIR, ROOT, RULES, diagnosis, step

SHIPPED = (ROOT / "checklists" / "diagnosis.yaml").read_text(encoding="utf-8")

CHINESE = re.compile("[\u4e00-\u9fff]")
WORD = re.compile("[a-z]{2}")
FIGURE = re.compile(r"\{(\w+)(?::[^}]*)?\}")

CASES = {
    "memory-climbing": (
        losses.test_memory_that_grows_all_the_time_is_climbing,
        losses.test_memory_that_settles_after_the_first_steps_is_not,
    ),
    "nan-filtered": (
        losses.test_zero_loss_with_nan_gradient_is_a_filtered_nan,
        losses.test_zero_loss_with_a_finite_gradient_is_not_nan,
    ),
    "nan-loss": (losses.test_nan_and_infinity_are_reported, losses.test_a_missing_loss_is_not_nan),
    "loss-explodes": (
        losses.test_a_loss_that_grows_at_once_explodes,
        losses.test_a_small_rise_at_the_start_does_not_explode,
    ),
    "loss-spike": (
        losses.test_a_spike_without_recovery_names_its_step_and_clears_after_recovery,
        losses.test_a_spike_that_recovers_is_no_finding,
    ),
    "loss-flat": (
        losses.test_a_loss_that_never_fell_is_flat,
        losses.test_a_low_loss_after_a_fall_is_not_flat,
    ),
    "validation-rises": (
        losses.test_validation_turning_up_names_the_best_step_and_that_it_was_not_saved,
        losses.test_validation_that_wavers_is_no_finding,
    ),
    "slower-than-predicted": (
        losses.test_steps_slower_than_predicted,
        losses.test_steps_slower_than_predicted,
    ),
    "rendezvous-silent": (
        silence.test_silence_after_launch_is_named_and_clears_when_the_ranks_meet,
        silence.test_output_of_any_kind_is_no_silence,
    ),
    "same-rank": (silence.test_two_nodes_of_one_number, silence.test_two_numbers_are_no_finding),
    "waiting-for-data": (
        silence.test_a_rank_that_waits_for_data_is_not_hanging,
        silence.test_nodes_that_all_go_quiet_before_the_first_step_hang,
    ),
    "startup-hang": (
        silence.test_nodes_that_all_go_quiet_before_the_first_step_hang,
        silence.test_a_run_that_steps_does_not_hang_at_start,
    ),
    "log-node-unread": (
        silence.test_metrics_on_a_node_whose_log_does_not_come,
        silence.test_a_quiet_first_node_is_normal_while_the_last_rank_is_heard,
    ),
    "stall": (
        silence.test_a_stall_is_found_after_many_usual_steps_and_clears_with_the_next,
        silence.test_slow_steps_are_no_stall,
    ),
    "node-gone": (
        silence.test_one_job_that_failed_while_the_other_runs,
        silence.test_jobs_that_end_seconds_apart_are_normal,
    ),
    "no-contact": (
        silence.test_no_contact_is_said_of_a_running_job_only,
        silence.test_no_contact_is_said_of_a_running_job_only,
    ),
    "trains-alone": (
        machines.test_ranks_that_report_different_losses_train_alone,
        machines.test_rank_0_may_print_and_megatron_prints_on_the_last_rank,
    ),
    "slow-rank": (
        machines.test_a_node_that_works_while_the_other_waits_is_the_slow_rank,
        machines.test_pipeline_stages_may_draw_different_power,
    ),
    "gpu-spins": (
        machines.test_a_gpu_that_is_busy_at_idle_power_without_progress_spins,
        machines.test_low_power_with_progress_does_not_spin,
    ),
    "low-clock": (
        machines.test_a_low_clock_under_load_is_stuck_and_clears,
        machines.test_a_low_clock_without_load_or_a_usual_one_is_fine,
    ),
    "nccl-sockets": (
        machines.test_sockets_where_rdma_was_intended,
        machines.test_sockets_that_are_right_or_not_used,
    ),
    "nccl-one-rail": (machines.test_one_rail_of_two, machines.test_sockets_that_are_right_or_not_used),
    "exception": (
        signatures.test_an_exception_that_no_rule_knows_is_reported_with_its_message,
        signatures.test_wrappers_and_a_stop_that_was_asked_for_are_no_exceptions,
    ),
}
"""Of every rule that is no pattern of lines: the test that it fires in, and one that it must not fire in."""


def test_every_rule_has_a_case_that_fires_and_one_that_does_not():
    patterns = {rule.id for rule in RULES.findings if isinstance(rule.when, SymptomCondition)}
    assert patterns == set(signatures.CASES)
    assert {rule.id for rule in RULES.findings} - patterns == set(CASES)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("version: 1", "version: 2", "version"),
        ("severity: failure", "severity: bad", "severity"),
        ("function: nan_filtered", "function: nan_invented", "no function nan_invented"),
        ("- id: cuda-oom", "- id: cuda-oom-2", "cuda-oom"),
        ("kind: symptom, signatures: [ready-twice]", "kind: symptom, signatures: [nothing]", "nothing"),
        ("- id: host-oom\n    contains", "- id: cuda-oom\n    contains", "cuda-oom"),
        ("pattern: 'Expected to mark", "pattern: '(Expected to mark", "regular expression"),
        ('contains: ["EADDRINUSE"]', "contains: []", "contains"),
        ("first_action:", "first_step:", "first_"),
        ("title_zh:", "title_cn:", "title_"),
        ("version: 1", "version: [1", "not YAML"),
    ],
)
def test_a_broken_rule_file_is_refused_with_its_place(old: str, new: str, said: str):
    assert old in SHIPPED
    with pytest.raises(InputError, match=r"rules\.yaml") as caught:
        load_rules(SHIPPED.replace(old, new, 1), "rules.yaml")
    assert said in caught.value.render()


@pytest.mark.parametrize("text", ["", "[]", "just words", "version: 1"])
def test_what_is_no_rule_file_is_refused(text: str):
    with pytest.raises(InputError, match=r"rules\.yaml"):
        load_rules(text, "rules.yaml")


def test_every_text_can_be_shown_and_every_link_is_one():
    for rule in RULES.findings:
        assert rule.facts.startswith("https://")
        assert rule.title
        assert rule.first_action.endswith(".")


@pytest.mark.parametrize("rule", RULES.findings, ids=lambda rule: rule.id)
def test_every_rule_speaks_chinese_with_the_same_figures(rule: FindingRule):
    assert CHINESE.search(rule.title_zh)
    assert rule.first_action_zh.endswith("。")
    if WORD.search(FIGURE.sub("", rule.seen)):
        assert CHINESE.search(rule.seen_zh or "")
    figures = {name.removesuffix("_zh") for name in FIGURE.findall(rule.seen_zh or rule.seen)}
    assert figures == set(FIGURE.findall(rule.seen))


def test_a_finding_is_said_in_either_language():
    watched = diagnosis(PAIR)
    watched.facts("node-b", [step(number, 2.0) for number in range(1, 61)], 60.0)
    (finding,) = watched.active
    assert finding.said("en") == (finding.title, finding.seen, finding.first_action)
    assert finding.said("zh").title == "损失不下降"
    assert finding.said("zh").seen == "最初几步为 2，到第 60 步为 2"
    assert finding.said("zh").first_action.endswith("再提高学习率。")


def test_a_finding_of_an_old_journal_is_said_in_english():
    watched = diagnosis(PAIR)
    watched.facts("node-b", [step(3, 0.0, float("nan"))], 5.0)
    kept = watched.active[0].model_dump(exclude={"title_zh", "seen_zh", "first_action_zh"})
    old = Finding.model_validate(kept)
    assert old.said("zh") == old.said("en")


def test_the_searched_literals_are_those_of_the_patterns():
    assert isinstance(RULES, Rules)
    assert {signature.id for signature in RULES.signatures} == {rule.id for rule in RULES.signature_rules}


def test_a_finding_keeps_the_time_it_was_raised_and_is_raised_once():
    watched = diagnosis(PAIR)
    nan = float("nan")
    raised = watched.facts("node-a", [step(3, 0.0, nan)], 5.0)
    assert [(change.what, change.at) for change in raised] == [("raised", 5.0)]
    assert watched.facts("node-a", [step(4, 0.0, nan)], 6.0) == ()
    assert watched.active[0].since == 5.0
    assert [change.what for change in watched.facts("node-a", [step(5)], 7.0)] == ["cleared"]


def test_the_worst_comes_first():
    watched = diagnosis(PAIR)
    watched.job("node-a", "running", 0.0)
    watched.link("node-a", "down", 0.0)
    watched.tick(30.0)
    watched.facts("node-b", [step(1), step(2, 0.0, float("nan"))], 31.0)
    assert [finding.severity for finding in watched.active] == ["failure", "warning"]
