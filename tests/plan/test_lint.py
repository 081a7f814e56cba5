"""Every rule speaks when it should, stays silent when it should, and says what happens if it is ignored."""

from typing import Any

import pytest

from console.core.plan.launch_facts import version_key
from console.core.plan.lint import RULES, LaunchFacts, NodeFacts, lint

SANE = [
    "--tuner_type",
    "lora",
    "--micro_batch_size",
    "1",
    "--global_batch_size",
    "16",
    "--save_steps",
    "20",
    "--eval_steps",
    "20",
    "--target_modules",
    "all-linear",
    "--gradient_accumulation_fusion",
    "false",
]


def facts(
    *argv: str, nodes: int = 1, program: str = "megatron", env: dict[str, str] | None = None, **known: Any
) -> LaunchFacts:
    """A sane launch with `argv` added; later flags win."""
    environment = {"MODELSCOPE_CACHE": "/shared/cache"} if env is None else env
    return LaunchFacts.model_validate(
        {
            "program": program,
            "nodes": [
                NodeFacts(node=f"spark-{letter}", argv=(*SANE, *argv), env=environment)
                for letter in "abcd"[:nodes]
            ],
            **known,
        }
    )


def rules(given: LaunchFacts) -> dict[str, str]:
    return {finding.rule: finding.severity for finding in lint(given)}


def test_a_sane_single_launch_has_no_findings() -> None:
    assert lint(facts()) == ()


def test_a_sane_pair_only_says_where_the_log_is() -> None:
    assert rules(facts(nodes=2)) == {"log-on-last-rank": "note"}


PITFALLS: list[tuple[str, str, LaunchFacts]] = [
    ("shared-cache", "error", facts(nodes=2, env={})),
    ("flash-attn-too-new", "error", facts(versions={"flash_attn": "2.8.4"}, flash_attn_limit="2.8.3")),
    ("apex-missing", "warning", facts("--gradient_accumulation_fusion", "true", versions={"apex": None})),
    ("log-on-last-rank", "note", facts(nodes=2)),
    ("slow-conversion-test", "warning", facts("--test_convert_precision", "true")),
    ("ngram-offload-full", "error", facts("--tuner_type", "full", env={"PLE_CPU_OFFLOAD": "1"})),
    ("even-pipeline", "warning", facts("--pipeline_model_parallel_size", "2", nodes=2, has_ngram_table=True)),
    ("qlora-merge", "error", facts("--quant_bits", "4", "--quant_method", "bnb", merge_intended=True)),
    (
        "reentrant-checkpointing",
        "warning",
        facts("--gradient_checkpointing_kwargs", '{"use_reentrant": true}', program="swift", nodes=2),
    ),
    ("slow-torch", "error", facts(matmul_tflops=9.0, matmul_baseline_tflops=90.0)),
    ("borrowed-expectation", "warning", facts(gpu_name="GB10", expectation_gpu="A800")),
    ("more-cut-than-needed", "warning", facts("--tensor_model_parallel_size", "2", nodes=2)),
]

COMPATIBILITY: list[tuple[str, str, LaunchFacts]] = [
    (
        "deepseek-v4-stack",
        "error",
        facts(
            model_family="deepseek_v4",
            versions={"ms_swift": "4.4.1", "megatron_core": "0.18.0", "mcore_bridge": "1.6.0"},
        ),
    ),
    (
        "deepseek-v4-tensor-parallel",
        "error",
        facts("--tensor_model_parallel_size", "2", nodes=2, model_family="deepseek_v4"),
    ),
    ("mtp-weights-missing", "error", facts("--mtp_num_layers", "1", checkpoint_mtp_layers=0)),
    (
        "layout-mismatch",
        "error",
        facts(
            "--pipeline_model_parallel_size",
            "2",
            "--pipeline_model_parallel_layout",
            "Et*22|t*21mL",
            "--mtp_num_layers",
            "0",
            nodes=2,
        ),
    ),
    ("no-bf16", "error", facts("--torch_dtype", "bfloat16", gpu_name="Tesla T4")),
    (
        "foreign-target-modules",
        "error",
        facts("--target_modules", "in_proj", "linear_qkv", linear_names=("linear_qkv", "linear_proj")),
    ),
]

FLAGS: list[tuple[str, str, LaunchFacts]] = [
    ("renamed-flags", "error", facts("--train_type", "lora", versions={"ms_swift": "4.6.0"})),
    ("report-to-none", "error", facts("--report_to", "none")),
    ("swanlab-flags", "error", facts("--swanlab_token", "x")),
    ("saves-miss-evaluations", "warning", facts("--save_steps", "25", "--eval_steps", "10")),
    ("saves-miss-evaluations", "note", facts("--save_steps", "20", "--eval_steps", "10")),
    ("sizes-do-not-fit", "error", facts("--micro_batch_size", "16", nodes=2)),
    (
        "only-bubble",
        "warning",
        facts("--pipeline_model_parallel_size", "2", "--micro_batch_size", "16", nodes=2),
    ),
    ("recompute-contradiction", "error", facts("--recompute_method", "uniform")),
    ("placeholders-stay", "warning", facts("--dataset", "swift/self-cognition#500")),
]


@pytest.mark.parametrize(("rule", "severity", "given"), PITFALLS + COMPATIBILITY + FLAGS)
def test_the_rule_speaks(rule: str, severity: str, given: LaunchFacts) -> None:
    findings = {finding.rule: finding for finding in lint(given)}

    assert findings[rule].severity == severity
    assert findings[rule].if_ignored
    assert findings[rule].remedy


def test_older_frameworks_checkpoint_reentrantly_by_default() -> None:
    given = facts(program="swift", nodes=2, versions={"ms_swift": "3.12.6"})
    assert rules(given)["reentrant-checkpointing"] == "warning"


def test_there_are_twelve_pitfalls_in_the_courses_order() -> None:
    assert [rule for rule, _, _ in PITFALLS] == [
        next(iter(set(rules(given)) & {rule})) for rule, _, given in PITFALLS
    ]
    assert len(PITFALLS) == 12


SILENT: list[tuple[str, LaunchFacts]] = [
    ("shared-cache", facts(nodes=1, env={})),
    ("flash-attn-too-new", facts(versions={"flash_attn": "2.8.3"}, flash_attn_limit="2.8.3")),
    ("flash-attn-too-new", facts(versions={"flash_attn": "2.9.0"})),
    ("apex-missing", facts("--gradient_accumulation_fusion", "true")),
    ("ngram-offload-full", facts("--tuner_type", "lora", env={"PLE_CPU_OFFLOAD": "1"})),
    (
        "even-pipeline",
        facts(
            "--pipeline_model_parallel_size",
            "2",
            "--decoder_first_pipeline_num_layers",
            "12",
            nodes=2,
            has_ngram_table=True,
        ),
    ),
    ("qlora-merge", facts("--quant_bits", "4")),
    ("reentrant-checkpointing", facts(program="swift", nodes=2, versions={"ms_swift": "4.6.0"})),
    (
        "reentrant-checkpointing",
        facts("--deepspeed", "zero2", program="swift", nodes=2, versions={"ms_swift": "3.12.6"}),
    ),
    (
        "reentrant-checkpointing",
        facts(
            "--gradient_checkpointing_kwargs",
            '{"use_reentrant": false}',
            program="swift",
            nodes=2,
            versions={"ms_swift": "3.12.6"},
        ),
    ),
    ("slow-torch", facts(matmul_tflops=88.0, matmul_baseline_tflops=90.0)),
    ("more-cut-than-needed", facts("--pipeline_model_parallel_size", "2", nodes=2, smallest_fitting_cut=2)),
    ("deepseek-v4-stack", facts(model_family="deepseek_v4", versions={"ms_swift": "4.6.0"})),
    ("mtp-weights-missing", facts("--mtp_num_layers", "0", checkpoint_mtp_layers=0)),
    (
        "layout-mismatch",
        facts(
            "--pipeline_model_parallel_size", "2", "--pipeline_model_parallel_layout", "Et*22|t*21L", nodes=2
        ),
    ),
    ("no-bf16", facts("--torch_dtype", "float16", gpu_name="T4")),
    ("renamed-flags", facts("--train_type", "lora", versions={"ms_swift": "3.12.5"})),
    ("report-to-none", facts("--report_to", "none", program="swift")),
    ("saves-miss-evaluations", facts("--save_steps", "10", "--eval_steps", "10")),
    ("placeholders-stay", facts("--dataset", "self-cognition", "--model_author", "a", "--model_name", "b")),
]


@pytest.mark.parametrize(("rule", "given"), SILENT)
def test_the_rule_stays_silent(rule: str, given: LaunchFacts) -> None:
    assert rule not in rules(given)


def test_the_default_tuner_depends_on_the_program() -> None:
    bare = NodeFacts(node="spark-a")

    megatron = lint(LaunchFacts(program="megatron", nodes=(bare,)))
    swift = lint(LaunchFacts(program="swift", nodes=(bare,)))

    assert "this trains full" in next(f.what for f in megatron if f.rule == "tuner-not-given")
    assert "this trains lora" in next(f.what for f in swift if f.rule == "tuner-not-given")


def test_errors_come_first() -> None:
    order = [
        finding.severity
        for finding in lint(facts("--report_to", "none", "--test_convert_precision", nodes=2))
    ]

    assert order == sorted(order, key=["error", "warning", "note"].index)
    assert {"error", "warning", "note"} <= set(order)


def test_a_cut_beyond_what_memory_asks_for_is_named() -> None:
    given = facts("--pipeline_model_parallel_size", "2", nodes=2, smallest_fitting_cut=1)

    assert rules(given)["more-cut-than-needed"] == "warning"


def test_flags_are_read_in_both_spellings() -> None:
    given = facts("--lora-rank=16", "--dataset", "a", "b", "--packing")

    assert given.number("lora_rank", 8) == 16
    assert given.flags["dataset"] == ("a", "b")
    assert given.is_on("packing")
    assert not given.is_on("padding_free")


@pytest.mark.parametrize(
    "argv",
    [["--global_batch_size", "x"], ["--micro_batch_size"], ["stray"], ["--=", "--"], ["--save_steps", "-5"]],
)
def test_no_rule_trips_over_odd_flags(argv: list[str]) -> None:
    assert {rule(facts(*argv, nodes=2)) is None for rule in RULES} <= {True, False}


def test_versions_compare_by_their_numbers() -> None:
    assert version_key("2.8.0.post2+cu130") == (2, 8, 0)
    assert version_key("v0.18.0rc1") == (0, 18, 0)
    assert version_key("main") == ()
