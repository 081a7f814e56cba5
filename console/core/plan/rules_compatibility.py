"""Versions, devices and checkpoints that do not go together."""

from console.core.errors import InputError
from console.core.plan.launch_facts import Finding, LaunchFacts, version_key
from console.core.plan.pipeline import expand_layout, parse_layout

NO_DEEPSEEK_V4 = {"ms_swift": (4, 4, 1), "megatron_core": (0, 18, 0), "mcore_bridge": (1, 6, 0)}
"""The newest releases that are known not to know the `dsv4_hybrid` attention."""


def deepseek_v4_stack(facts: LaunchFacts) -> Finding | None:
    """DeepSeek-V4's attention needs a newer stack than the stable releases of mid-2026."""
    if facts.model_family != "deepseek_v4":
        return None
    old = [
        f"{name} {version}"
        for name, newest in NO_DEEPSEEK_V4.items()
        if (version := facts.versions.get(name)) and version_key(version) <= newest
    ]
    if not old:
        return None
    return Finding(
        rule="deepseek-v4-stack",
        severity="error",
        what=f"DeepSeek-V4 with {', '.join(old)}",
        if_ignored="the attention variant dsv4_hybrid is unknown; the model is not built",
        remedy="use a later snapshot of all three, and pin its commits in the record",
    )


def deepseek_v4_tensor_parallel(facts: LaunchFacts) -> Finding | None:
    """DeepSeek-V4 trains with tensor parallelism 1 only."""
    tp = facts.number("tensor_model_parallel_size", 1)
    if facts.model_family != "deepseek_v4" or tp == 1:
        return None
    return Finding(
        rule="deepseek-v4-tensor-parallel",
        severity="error",
        what=f"tensor parallelism {tp} with DeepSeek-V4",
        if_ignored="its training path supports tp 1 only and refuses to start",
        remedy="set --tensor_model_parallel_size 1; cut with EP and PP",
    )


def mtp_weights_missing(facts: LaunchFacts) -> Finding | None:
    """An MTP layer that the checkpoint does not hold can't be loaded."""
    wanted, held = facts.number("mtp_num_layers", 0), facts.checkpoint_mtp_layers
    if held is None or wanted <= held:
        return None
    return Finding(
        rule="mtp-weights-missing",
        severity="error",
        what=f"mtp_num_layers is {wanted}, the checkpoint holds {held}",
        if_ignored="loading ends with missing keys",
        remedy=f"set --mtp_num_layers {held}; the MTP head is then not trained",
    )


def layout_mismatch(facts: LaunchFacts) -> Finding | None:
    """A layout string must match the layer and MTP counts."""
    text = facts.value("pipeline_model_parallel_layout", "")
    if not text:
        return None
    stages_of = facts.number("pipeline_model_parallel_size", 1)
    try:
        layers = facts.model_layers or max(1, expand_layout(text).count("t"))
        parse_layout(text, pp=stages_of, layers=layers, mtp=facts.number("mtp_num_layers", 0))
    except InputError as error:
        return Finding(
            rule="layout-mismatch",
            severity="error",
            what=f"{error.what}: {error.why}",
            if_ignored="Megatron refuses the layout when it starts",
            remedy=error.next_step,
        )
    return None


def no_bf16(facts: LaunchFacts) -> Finding | None:
    """Turing cards have no BF16 units."""
    name = (facts.gpu_name or "").upper().split()
    if "T4" not in name or facts.value("torch_dtype", "bfloat16") not in ("bfloat16", "bf16"):
        return None
    return Finding(
        rule="no-bf16",
        severity="error",
        what="BF16 on a T4",
        if_ignored="BF16 is emulated: very slow, or refused",
        remedy="use --torch_dtype float16 with loss scaling, and no flash attention",
    )


def foreign_target_modules(facts: LaunchFacts) -> Finding | None:
    """Target modules must be linear layers of this architecture."""
    known = facts.linear_names
    asked = facts.flags.get("target_modules", ())
    foreign = [name for name in asked if name not in ("all-linear", "all-router", *known)]
    if not known or not foreign:
        return None
    return Finding(
        rule="foreign-target-modules",
        severity="error",
        what=f"target_modules {', '.join(foreign)} are not layers of this model",
        if_ignored="no adapter is attached there; the run fails or trains less than meant",
        remedy=f"use all-linear, or some of {', '.join(known)}",
    )


COMPATIBILITY_RULES = (
    deepseek_v4_stack,
    deepseek_v4_tensor_parallel,
    mtp_weights_missing,
    layout_mismatch,
    no_bf16,
    foreign_target_modules,
)
