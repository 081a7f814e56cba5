"""The course's twelve pitfalls as rules, in its order. Each returns a finding, or None when it has nothing to
say.
"""

from console.core.errors import InputError
from console.core.plan.launch_facts import Finding, LaunchFacts, version_key
from console.core.plan.placement import groups
from console.core.plan.topology import ParallelSizes, Topology, derive

SLOW_TORCH_SHARE = 0.5


def shared_cache(facts: LaunchFacts) -> Finding | None:
    """Several nodes need one shared dataset cache."""
    places = [node.env.get("MODELSCOPE_CACHE") for node in facts.nodes]
    if len(places) < 2 or (all(places) and len(set(places)) == 1):
        return None
    missing = [node.node for node, place in zip(facts.nodes, places, strict=True) if not place]
    what = (
        f"MODELSCOPE_CACHE is not set on {', '.join(missing)}"
        if missing
        else "MODELSCOPE_CACHE differs by node"
    )
    return Finding(
        rule="shared-cache",
        severity="error",
        what=what,
        if_ignored="each node prepares the data on its own; if results differ, training hangs at the start",
        remedy="set MODELSCOPE_CACHE to one shared path on every node",
    )


def flash_attn_too_new(facts: LaunchFacts) -> Finding | None:
    """flash-attn must not be newer than Transformer Engine allows."""
    installed, limit = facts.versions.get("flash_attn"), facts.flash_attn_limit
    if not installed or not limit or version_key(installed) <= version_key(limit):
        return None
    return Finding(
        rule="flash-attn-too-new",
        severity="error",
        what=f"flash-attn {installed} is newer than Transformer Engine's limit {limit}",
        if_ignored="Transformer Engine refuses it or fails when attention runs",
        remedy=f"install flash-attn {limit}, or use --attention_backend fused",
    )


def apex_missing(facts: LaunchFacts) -> Finding | None:
    """Without apex, gradient accumulation fusion must be off."""
    absent = "apex" in facts.versions and facts.versions["apex"] is None
    if facts.program != "megatron" or not absent or not facts.is_on("gradient_accumulation_fusion", True):
        return None
    return Finding(
        rule="apex-missing",
        severity="warning",
        what="apex is not installed and gradient_accumulation_fusion is on",
        if_ignored="ms-swift 4.6 warns and switches it off; older ones do not start",
        remedy="add --gradient_accumulation_fusion false",
    )


def log_on_last_rank(facts: LaunchFacts) -> Finding | None:
    """Megatron prints its metrics on the last rank only."""
    if facts.program != "megatron" or facts.world_size < 2:
        return None
    last = facts.nodes[-1].node
    return Finding(
        rule="log-on-last-rank",
        severity="note",
        what=f"metrics are printed by the last rank only, on {last}",
        if_ignored="the other logs stay silent and look as if nothing had started",
        remedy=f"follow the log of {last}",
    )


def slow_conversion_test(facts: LaunchFacts) -> Finding | None:
    """The precision test of a weight conversion is slow and heavy for large models."""
    if not facts.is_on("test_convert_precision"):
        return None
    return Finding(
        rule="slow-conversion-test",
        severity="warning",
        what="test_convert_precision is on",
        if_ignored="on large mixture-of-experts models the conversion takes very long and much memory",
        remedy="drop it, or load the Hugging Face weights directly with --save_safetensors true",
    )


def ngram_offload_full(facts: LaunchFacts) -> Finding | None:
    """An offloaded N-gram table is frozen, which full training does not mention."""
    offload = facts.nodes[0].env.get("PLE_CPU_OFFLOAD", "0") not in ("", "0")
    if not offload or facts.tuner != "full":
        return None
    return Finding(
        rule="ngram-offload-full",
        severity="error",
        what="PLE_CPU_OFFLOAD is on with full-parameter training",
        if_ignored="the offloaded table is frozen: that part of the model silently is not trained",
        remedy="unset PLE_CPU_OFFLOAD, or train with LoRA",
    )


def even_pipeline(facts: LaunchFacts) -> Finding | None:
    """An early heavy layer makes an even split uneven in work."""
    uneven = {"decoder_first_pipeline_num_layers", "pipeline_model_parallel_layout"} & facts.flags.keys()
    if not facts.has_ngram_table or facts.number("pipeline_model_parallel_size", 1) < 2 or uneven:
        return None
    return Finding(
        rule="even-pipeline",
        severity="warning",
        what="layers are split evenly although an early layer carries the N-gram table",
        if_ignored="the first stage holds more memory and takes longer; all others wait for it",
        remedy="give the first stage fewer layers with --decoder_first_pipeline_num_layers",
    )


def qlora_merge(facts: LaunchFacts) -> Finding | None:
    """A quantised base cannot be merged with its adapter."""
    quantised = facts.flags.keys() & {"quant_bits", "quant_method"}
    if not quantised or not (facts.merge_intended or facts.is_on("merge_lora")):
        return None
    return Finding(
        rule="qlora-merge",
        severity="error",
        what="the adapter is to be merged, but the base is quantised",
        if_ignored="the merge is refused after training; the adapter can't be deployed merged",
        remedy="train LoRA on the unquantised base, and quantise after the merge",
    )


def reentrant_checkpointing(facts: LaunchFacts) -> Finding | None:
    """DDP and reentrant gradient checkpointing mark a parameter ready twice.

    ms-swift turns reentrance off under DDP by itself since 4.0, unless it is asked for.
    """
    kwargs = facts.value("gradient_checkpointing_kwargs", "").replace(" ", "").lower()
    installed = facts.versions.get("ms_swift")
    asked = '"use_reentrant":true' in kwargs
    older = installed is not None and version_key(installed) < (4,)
    by_default = older and '"use_reentrant":false' not in kwargs
    if (
        facts.program != "swift"
        or facts.world_size < 2
        or "deepspeed" in facts.flags
        or not facts.is_on("gradient_checkpointing", True)
        or not (asked or by_default)
    ):
        return None
    return Finding(
        rule="reentrant-checkpointing",
        severity="warning",
        what="data parallelism with reentrant gradient checkpointing",
        if_ignored="the first backward pass may end with 'marked as ready only once'",
        remedy="""add --gradient_checkpointing_kwargs '{"use_reentrant": false}', or use DeepSpeed""",
    )


def slow_torch(facts: LaunchFacts) -> Finding | None:
    """A generic torch build can be an order of magnitude slow on this device."""
    seen, known = facts.matmul_tflops, facts.matmul_baseline_tflops
    if seen is None or known is None or seen >= SLOW_TORCH_SHARE * known:
        return None
    return Finding(
        rule="slow-torch",
        severity="error",
        what=f"matrix products reach {seen:.0f} of {known:.0f} TFLOPS with this torch",
        if_ignored="every step time of the experiment measures the build, not the configuration",
        remedy="use the container's torch build; leave the training flags alone",
    )


def borrowed_expectation(facts: LaunchFacts) -> Finding | None:
    """Step times of another device say nothing about this one."""
    theirs, ours = facts.expectation_gpu, facts.gpu_name
    if not theirs or not ours or theirs.lower() == ours.lower():
        return None
    return Finding(
        rule="borrowed-expectation",
        severity="warning",
        what=f"the expected step time comes from {theirs}, this is {ours}",
        if_ignored="a healthy run looks broken, or a broken one healthy",
        remedy=f"compare directions only; take numbers from own runs on {ours}",
    )


def more_cut_than_needed(facts: LaunchFacts) -> Finding | None:
    """Cutting the model further than memory asks for, or tensor parallelism across nodes, costs time."""
    topology = topology_of(facts)
    if topology is None:
        return None
    cut, needed = topology.sizes.dense_cut, facts.smallest_fitting_cut
    crossing = any(g.name == "TP" and g.crosses_nodes for g in groups(topology, facts.devices_per_node))
    if crossing:
        what = f"tensor parallelism {topology.sizes.tp} crosses nodes"
    elif needed is not None and cut > needed:
        what = f"the model is cut into {cut} although {needed} fits"
    else:
        return None
    return Finding(
        rule="more-cut-than-needed",
        severity="warning",
        what=what,
        if_ignored="communication grows faster than the gain; a published run took 2.58 x as long",
        remedy="first what fits, then one change at a time; pipeline or data parallelism across nodes",
    )


def topology_of(facts: LaunchFacts) -> Topology | None:
    """The topology of a Megatron launch, None for other programs and for sizes that do not fit the world."""
    if facts.program != "megatron":
        return None
    try:
        return derive(facts.world_size, sizes_of(facts))
    except InputError:
        return None


def sizes_of(facts: LaunchFacts) -> ParallelSizes:
    """Parallel sizes from the flags; raises InputError for a size that is not 1 or more."""
    return ParallelSizes.checked(
        tp=facts.number("tensor_model_parallel_size", 1),
        pp=facts.number("pipeline_model_parallel_size", 1),
        cp=facts.number("context_parallel_size", 1),
        ep=facts.number("expert_model_parallel_size", 1),
        etp=facts.number("expert_tensor_parallel_size", 1),
        vpp=facts.number("virtual_pipeline_model_parallel_size", 1),
        sequence_parallel=facts.is_on("sequence_parallel"),
    )


PITFALL_RULES = (
    shared_cache,
    flash_attn_too_new,
    apex_missing,
    log_on_last_rank,
    slow_conversion_test,
    ngram_offload_full,
    even_pipeline,
    qlora_merge,
    reentrant_checkpointing,
    slow_torch,
    borrowed_expectation,
    more_cut_than_needed,
)
