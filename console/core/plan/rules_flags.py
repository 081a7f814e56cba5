"""Flags that are misspelt, renamed, contradictory, or silently do something else than meant."""

from console.core.errors import InputError
from console.core.plan.launch_facts import Finding, LaunchFacts, version_key
from console.core.plan.rules_pitfalls import sizes_of, topology_of
from console.core.plan.topology import derive, micro_batches

RENAMED = {
    "train_type": "tuner_type",
    "max_epochs": "num_train_epochs",
    "log_interval": "logging_steps",
    "save": "output_dir",
    "save_interval": "save_steps",
    "eval_interval": "eval_steps",
    "load": "mcore_model",
    "adapter_load": "mcore_adapter",
    "no_gradient_accumulation_fusion": "gradient_accumulation_fusion",
    "no_rope_fusion": "apply_rope_fusion",
    "no_bias_swiglu_fusion": "bias_activation_fusion",
    "distributed_backend": "ddp_backend",
    "distributed_timeout_minutes": "ddp_timeout",
    "num_workers": "dataloader_num_workers",
    "manual_gc_interval": "manual_gc_steps",
    "no_initialization": "perform_initialization",
}
"""Megatron-SWIFT 3.x names and their 4.x successors."""

GONE = ("load_safetensors", "use_flash_attn", "deterministic_mode", "log_throughput")
SWANLAB_SWIFT_ONLY = ("swanlab_mode", "swanlab_token", "swanlab_workspace")
DEFAULT_SAVE_STEPS = 500


def renamed_flags(facts: LaunchFacts) -> Finding | None:
    """3.x names end the start-up of 4.x."""
    installed = facts.versions.get("ms_swift")
    if facts.program != "megatron" or (installed and version_key(installed) < (4,)):
        return None
    old = [name for name in facts.flags if name in RENAMED or name in GONE]
    if not old:
        return None
    changes = [f"{name} -> {RENAMED[name]}" if name in RENAMED else f"drop {name}" for name in old]
    return Finding(
        rule="renamed-flags",
        severity="error",
        what=f"flags of ms-swift 3.x: {', '.join(old)}",
        if_ignored="the run ends with 'remaining_argv' after about ten seconds of imports",
        remedy="; ".join(changes),
    )


def report_to_none(facts: LaunchFacts) -> Finding | None:
    """`report_to none` is a trap under Megatron."""
    if facts.program != "megatron" or "none" not in facts.flags.get("report_to", ()):
        return None
    return Finding(
        rule="report-to-none",
        severity="error",
        what="report_to none under Megatron",
        if_ignored="KeyError: 'none', after the weights are loaded",
        remedy="leave --report_to out, or use tensorboard",
    )


def swanlab_flags(facts: LaunchFacts) -> Finding | None:
    """Megatron knows two SwanLab flags only, and a token does not belong on a command line."""
    wrong = [name for name in SWANLAB_SWIFT_ONLY if name in facts.flags]
    if facts.program != "megatron":
        wrong = [name for name in wrong if name == "swanlab_token"]
    if not wrong:
        return None
    return Finding(
        rule="swanlab-flags",
        severity="error",
        what=f"{', '.join(wrong)} on the command line",
        if_ignored="unknown to megatron sft; a token would stand in process lists and logs",
        remedy="use --swanlab_project and --swanlab_exp_name, and SWANLAB_API_KEY from the environment",
    )


def tuner_not_given(facts: LaunchFacts) -> Finding | None:
    """The two programs have opposite defaults."""
    if "tuner_type" in facts.flags or "train_type" in facts.flags:
        return None
    other = "lora" if facts.tuner == "full" else "full"
    return Finding(
        rule="tuner-not-given",
        severity="warning",
        what=f"tuner_type is not given, so this trains {facts.tuner}",
        if_ignored=f"the other program would train {other}: neither memory nor time compare",
        remedy="always pass --tuner_type",
    )


def saves_miss_evaluations(facts: LaunchFacts) -> Finding | None:
    """Checkpoints should stand where evaluations were made."""
    saves = facts.number("save_steps", DEFAULT_SAVE_STEPS)
    evaluations = facts.number("eval_steps", saves)
    if not saves or not evaluations or saves == evaluations:
        return None
    if saves % evaluations:
        return Finding(
            rule="saves-miss-evaluations",
            severity="warning",
            what=f"save_steps {saves} is not a multiple of eval_steps {evaluations}",
            if_ignored="checkpoints fall between evaluations: none of them has a validation loss",
            remedy=f"set --save_steps {evaluations}",
        )
    return Finding(
        rule="saves-miss-evaluations",
        severity="note",
        what=f"only every {saves // evaluations}. evaluation is saved",
        if_ignored="the step with the best validation loss may have no checkpoint",
        remedy=f"set --save_steps {evaluations}",
    )


def sizes_do_not_fit(facts: LaunchFacts) -> Finding | None:
    """World size, parallel sizes and batches must divide."""
    if facts.program != "megatron":
        return None
    try:
        topology = derive(facts.world_size, sizes_of(facts))
        micro_batches(facts.number("global_batch_size", 16), facts.number("micro_batch_size", 1), topology.dp)
    except InputError as error:
        return Finding(
            rule="sizes-do-not-fit",
            severity="error",
            what=f"{error.what}: {error.why}",
            if_ignored="Megatron refuses to start",
            remedy=error.next_step,
        )
    return None


def only_bubble(facts: LaunchFacts) -> Finding | None:
    """A pipeline needs several micro-batches."""
    topology = topology_of(facts)
    if topology is None or topology.sizes.pp == 1:
        return None
    pp = topology.sizes.pp
    unit = facts.number("micro_batch_size", 1) * topology.dp
    count = facts.number("global_batch_size", 16) // unit
    if count >= pp:
        return None
    return Finding(
        rule="only-bubble",
        severity="warning",
        what=f"{count} micro-batches for {pp} pipeline stages",
        if_ignored=f"stages idle for {pp - 1} of {pp - 1 + max(count, 1)} slots",
        remedy=f"lower --micro_batch_size or raise --global_batch_size to {4 * pp * unit}",
    )


def recompute_contradiction(facts: LaunchFacts) -> Finding | None:
    """Method and layer count belong to full recomputation."""
    kind = facts.value("recompute_granularity", "selective")
    if facts.program != "megatron" or kind == "full" or "recompute_method" not in facts.flags:
        return None
    return Finding(
        rule="recompute-contradiction",
        severity="error",
        what=f"recompute_method with recompute_granularity {kind}",
        if_ignored="ValueError at the start",
        remedy="add --recompute_granularity full, or drop --recompute_method",
    )


def placeholders_stay(facts: LaunchFacts) -> Finding | None:
    """The self-cognition data has two blanks to fill."""
    uses = any("self-cognition" in source for source in facts.flags.get("dataset", ()))
    if not uses or {"model_author", "model_name"} <= facts.flags.keys():
        return None
    return Finding(
        rule="placeholders-stay",
        severity="warning",
        what="self-cognition data without --model_author and --model_name",
        if_ignored="{{NAME}} and {{AUTHOR}} stay in the training text, silently",
        remedy="pass both",
    )


FLAG_RULES = (
    renamed_flags,
    report_to_none,
    swanlab_flags,
    tuner_not_given,
    saves_miss_evaluations,
    sizes_do_not_fit,
    only_bubble,
    recompute_contradiction,
    placeholders_stay,
)
