"""Memory per stage: published rows, the terms, the three totals, and what must never happen."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.core.errors import InputError
from console.core.ledger import catalogue
from console.core.ledger.activations import layer_saved
from console.core.ledger.architecture import Architecture, Block
from console.core.ledger.memory import MemoryEstimate, estimate
from console.core.ledger.methods import FULL_RECOMPUTE, NO_RECOMPUTE, Batch, Method, Recompute
from console.core.ledger.mixers import GroupedQuery
from console.core.ledger.mlps import DenseMlp
from console.core.ledger.room import judge, room_on
from console.core.ledger.setup import Setup, padded_vocab
from console.core.ledger.working_terms import in_flight
from console.core.plan.topology import ParallelSizes, derive

GIB = 2**30
LORA = Method(kind="lora", lora_rank=8)


def predict(
    model: str,
    *,
    dp: int = 1,
    sequence: int = 2048,
    micro_batch: int = 1,
    micro_batches: int = 8,
    method: Method = Method(),
    recompute: Recompute = NO_RECOMPUTE,
    optimizer: str = "distributed",
    loss: str = "native",
    layers: int | None = None,
    device: str | None = None,
    **sizes: int,
) -> MemoryEstimate:
    architecture = catalogue.model(model).architecture()
    if layers is not None:
        architecture = shortened(architecture, layers)
    cut = ParallelSizes(sequence_parallel=sizes.get("tp", 1) > 1, **sizes)
    setup = Setup.model_validate(
        {
            "architecture": architecture,
            "topology": derive(dp * cut.dense_cut, cut),
            "batch": Batch(sequence=sequence, micro_batch=micro_batch, micro_batches=micro_batches),
            "method": method,
            "recompute": recompute,
            "optimizer": optimizer,
            "loss": loss,
        }
    )
    return estimate(setup, catalogue.device(device) if device else None)


def shortened(architecture: Architecture, layers: int) -> Architecture:
    return architecture.model_copy(update={"blocks": architecture.blocks[:layers]})


def terms(memory: MemoryEstimate, stage: int = 0) -> dict[str, int]:
    return {term.name: term.bytes for term in memory.stages[stage].terms}


def test_published_reserved_memory_of_dense_models_lies_inside_the_band() -> None:
    qwen_14b = predict("Qwen2.5-14B", tp=4, dp=2, sequence=8192)
    qwen3_14b = predict("Qwen3-14B", tp=4, dp=2, sequence=8192, optimizer="bf16-moments")

    assert qwen_14b.band.holds(qwen_14b.reserved_bytes, 64 * GIB)
    assert qwen3_14b.band.holds(qwen3_14b.reserved_bytes, 52 * GIB)


@pytest.mark.parametrize(
    ("sizes", "dp", "sequence", "measured"),
    [
        ({"tp": 2}, 4, 4096, 60.68),
        ({"tp": 8}, 1, 4096, 28.29),
        ({"tp": 2, "cp": 4}, 1, 32_768, 68.43),
        ({"cp": 8}, 1, 131_072, 147.99),
    ],
)
def test_twelve_layers_of_llama_70b_come_out_within_two_percent(
    sizes: dict[str, Any], dp: int, sequence: int, measured: float
) -> None:
    memory = predict("Llama-3-70B", layers=12, dp=dp, sequence=sequence, loss="te-fused", **sizes)

    assert memory.allocated_bytes / GIB == pytest.approx(measured, rel=0.02)


def test_the_first_stage_is_the_peak_when_it_holds_more_micro_batches() -> None:
    memory = predict("Llama-3-70B", layers=12, pp=2, dp=4, sequence=4096, loss="te-fused")

    assert memory.peak_stage == 0
    assert memory.stages[0].allocated_bytes / GIB == pytest.approx(66.55, rel=0.02)
    assert memory.stages[1].allocated_bytes / GIB == pytest.approx(62.97, rel=0.02)


def test_a_long_vocabulary_makes_the_last_stage_the_peak() -> None:
    memory = predict("Qwen3-30B-A3B", pp=2, ep=8, dp=8, sequence=8192, recompute=FULL_RECOMPUTE)

    assert memory.peak_stage == 1
    assert "logits and loss" in terms(memory, 1)
    assert "logits and loss" not in terms(memory, 0)


def test_static_bytes_per_parameter() -> None:
    parameters = predict("Qwen2.5-7B", dp=4)
    weights = terms(parameters)["weights"] // 2

    assert terms(parameters)["gradients"] == 4 * weights
    assert terms(parameters)["optimizer"] == pytest.approx(12 * weights / 4, rel=1e-6)
    assert terms(predict("Qwen2.5-7B", dp=4, optimizer="unsharded"))["optimizer"] == 12 * weights
    assert "optimizer" not in terms(predict("Qwen2.5-7B", optimizer="offloaded"))


def test_expert_state_is_not_sharded_when_expert_dp_is_one() -> None:
    """The commonest surprise: 18 bytes per expert parameter although DP is 8."""
    memory = predict("Qwen3-30B-A3B", pp=2, ep=8, dp=8, sequence=8192)
    routed = 28_991_029_248 // 2 // 8

    assert terms(memory)["optimizer"] > 12 * routed


def test_lora_freezes_weights_and_drops_their_gradient_buffers() -> None:
    memory = predict("Qwen2.5-7B", tp=2, method=LORA, recompute=FULL_RECOMPUTE)

    assert {"frozen weights", "adapter weights", "adapter gradients", "adapter optimizer"} <= terms(
        memory
    ).keys()
    assert not {"weights", "weight-gradient buffers", "head gradient buffer"} & terms(memory).keys()
    assert terms(memory)["adapter weights"] < 0.01 * terms(memory)["frozen weights"]


def test_a_quantised_base_takes_about_half_a_byte() -> None:
    whole = terms(predict("Qwen2.5-7B", method=LORA))["frozen weights"]
    quantised = terms(predict("Qwen2.5-7B", method=Method(kind="qlora")))["frozen weights"]

    assert quantised / whole == pytest.approx(0.26)


def test_adapters_on_attention_only_spare_the_product_of_the_mlp() -> None:
    everywhere = terms(predict("Qwen2.5-7B", method=LORA))["activations"]
    attention = terms(
        predict("Qwen2.5-7B", method=LORA.model_copy(update={"targets": ("linear_qkv", "linear_proj")}))
    )

    assert everywhere - attention["activations"] > 28 * 2048 * 2 * 18_944


def test_a_gpt_layer_keeps_32_bytes_per_token_and_hidden() -> None:
    """Korthikanti et al.: 34 with dropout masks, 32 without. Multi-head, GELU, f = 4h."""
    block = Block(
        mixer=GroupedQuery(heads=32, kv_heads=32, head_dim=128), mlp=DenseMlp(ffn=16_384, gated=False)
    )
    architecture = Architecture(name="gpt", hidden=4096, vocab=50_304, tied_embeddings=True, blocks=(block,))
    batch = Batch(sequence=2048, micro_batch=1, micro_batches=1)

    kept = layer_saved(block, architecture, ParallelSizes(), batch, Method())

    assert kept == 2048 * (32 * 4096 + 4 * 32)


def test_recomputing_core_attention_saves_nothing_under_flash_attention() -> None:
    assert predict("Qwen3-8B", recompute=Recompute(kind="selective", layers=1)) == predict("Qwen3-8B")


def test_recomputation_saves_in_this_order() -> None:
    none = predict("Moonlight-16B-A3B", ep=8, dp=8, sequence=4096).allocated_bytes
    some = predict(
        "Moonlight-16B-A3B",
        ep=8,
        dp=8,
        sequence=4096,
        recompute=Recompute(kind="selective", layers=1, modules=("mla_up_proj", "moe_act", "layernorm")),
    ).allocated_bytes
    full = predict("Moonlight-16B-A3B", ep=8, dp=8, sequence=4096, recompute=FULL_RECOMPUTE).allocated_bytes

    assert full < some < none


def test_block_recomputation_keeps_the_other_layers_whole() -> None:
    def kept(layers: int) -> int:
        recompute = Recompute(kind="full", method="block", layers=layers)
        return predict("Qwen2.5-7B", recompute=recompute).allocated_bytes

    assert kept(28) < kept(14) < kept(1)
    assert kept(28) == predict("Qwen2.5-7B", recompute=FULL_RECOMPUTE).allocated_bytes


def test_uneven_routing_costs_activations() -> None:
    even = Batch(sequence=4096, micro_batch=1, micro_batches=1)
    setup = Setup(
        architecture=catalogue.model("Qwen3-30B-A3B").architecture(),
        topology=derive(8, ParallelSizes(ep=8)),
        batch=even,
        method=Method(),
        recompute=NO_RECOMPUTE,
    )
    uneven = setup.model_copy(update={"batch": even.model_copy(update={"imbalance": 2.0})})

    assert estimate(uneven).allocated_bytes > 1.1 * estimate(setup).allocated_bytes


def test_micro_batches_in_flight() -> None:
    assert [in_flight(i, 4, 1, 8) for i in range(4)] == [4, 3, 2, 1]
    assert in_flight(0, 4, 1, 2) == 2
    assert in_flight(0, 8, 5, 100) == pytest.approx(8 * (1 + 7 / 40))


def test_the_vocabulary_is_padded_to_128_times_tp() -> None:
    assert padded_vocab(151_936, 1) == 151_936
    assert padded_vocab(151_936, 8) == 152_576


def test_tied_embeddings_stand_on_both_ends_of_a_pipeline() -> None:
    whole = terms(predict("Qwen2.5-0.5B"))["weights"] // 2
    first = terms(predict("Qwen2.5-0.5B", pp=2), 0)["weights"] // 2
    last = terms(predict("Qwen2.5-0.5B", pp=2), 1)["weights"] // 2

    assert whole == 494_032_768
    assert first + last == whole + 136_134_656


def test_three_totals_are_three_numbers() -> None:
    memory = predict("Qwen2.5-7B", tp=2)

    assert memory.reserved_bytes == round(1.05 * memory.allocated_bytes)
    assert memory.shown_bytes is not None
    assert memory.reserved_bytes < memory.shown_bytes[0] < memory.shown_bytes[1]


def test_a_unified_device_has_no_nvidia_smi_figure_and_says_why() -> None:
    memory = predict("Qwen2.5-7B", device="GB10")

    assert memory.shown_bytes is None
    assert "/proc/meminfo" in memory.shown_reason


def test_bands_name_their_reason() -> None:
    dense, moe, hybrid = (predict(name).band for name in ("Qwen3-8B", "Qwen3-30B-A3B", "Qwen3.6-35B-A3B"))

    assert (dense.low, dense.high) == (-0.08, 0.08)
    assert (moe.low, moe.high) == (-0.10, 0.40)
    assert (predict("Qwen3-8B", optimizer="offloaded").band.low) == -0.05
    assert hybrid.high >= moe.high
    assert all(band.reason for band in (dense, moe, hybrid))


def test_a_resident_service_and_the_system_come_off_unified_memory() -> None:
    spark = catalogue.device("GB10")
    beside_service = room_on(spark, resident_bytes=96 * 10**9)
    memory = predict("Qwen2.5-7B", method=LORA, recompute=FULL_RECOMPUTE)

    assert room_on(spark).free_bytes / GIB == pytest.approx(113.5)
    assert beside_service.free_bytes / GIB == pytest.approx(24.1, abs=0.1)
    assert judge(memory, room_on(spark))[0] == "fits"
    assert judge(predict("Qwen3-32B"), room_on(spark))[0] == "does not fit"
    assert judge(memory, room_on(spark, resident_bytes=round(94.5 * GIB)))[0] == "may fit"
    with pytest.raises(InputError):
        room_on(spark, resident_bytes=-1)


METHODS = st.sampled_from([Method(), LORA])
RECOMPUTES = st.sampled_from([NO_RECOMPUTE, FULL_RECOMPUTE, Recompute(kind="selective", layers=1)])
SHARDS = st.sampled_from(["tp", "pp", "cp", "ep", "dp"])


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["Llama-3.1-8B", "Qwen3-32B", "Qwen3-30B-A3B", "Qwen2.5-7B"]),
    st.fixed_dictionaries({name: st.sampled_from([1, 2]) for name in ("tp", "pp", "cp")}),
    SHARDS,
    METHODS,
    RECOMPUTES,
    st.sampled_from([2048, 8192]),
)
def test_memory_never_grows_when_a_shard_count_grows(
    model: str, sizes: dict[str, Any], grown: str, method: Method, recompute: Recompute, sequence: int
) -> None:
    fixed: dict[str, Any] = {"method": method, "recompute": recompute, "sequence": sequence}
    has_experts = catalogue.model(model).architecture().moe is not None
    before: dict[str, Any] = {**sizes, "dp": 4}
    after = {**before, grown: 2 * before.get(grown, 1)}
    if grown == "ep" and not has_experts:
        with pytest.raises(InputError):
            predict(model, **fixed, **after)
        return

    small, large = predict(model, **fixed, **after), predict(model, **fixed, **before)

    assert small.allocated_bytes <= large.allocated_bytes + len(large.stages[0].terms)


@pytest.mark.parametrize("sizes", [{"tp": 3}, {"pp": 5}, {"ep": 3}, {"cp": 3}])
def test_what_does_not_divide_is_refused(sizes: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refusal:
        predict("Qwen3-30B-A3B", sequence=2048, dp=3, **sizes)
    assert refusal.value.next_step
