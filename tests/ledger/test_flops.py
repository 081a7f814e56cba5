"""FLOPs per token against published tokens/s and TFLOP/s, and the LoRA convention."""

import pytest

from console.core.errors import InputError
from console.core.ledger import catalogue
from console.core.ledger.flops import attention_span, flops_per_token, lora_parameters
from console.core.ledger.mfu import hfu, mfu_6n, mfu_lora, mfu_megatron

QWEN_7B = catalogue.model("Qwen2.5-7B").architecture()
QWEN_30B = catalogue.model("Qwen3-30B-A3B").architecture()

PUBLISHED = [
    ("Llama-3.1-8B", 8192, 14_451, 744),
    ("Llama-3-70B", 8192, 1_602, 719),
    ("Qwen3-8B", 4096, 10_456.348, 512.7),
    ("Qwen3-30B-A3B", 4096, 13_011.378, 299.352),
    ("Qwen3-235B-A22B", 4096, 1_712, 253),
]


@pytest.mark.parametrize(("model", "sequence", "rate", "tflops"), PUBLISHED)
def test_published_pretraining_rates_are_reproduced(
    model: str, sequence: int, rate: float, tflops: float
) -> None:
    flops = flops_per_token(catalogue.model(model).architecture(), sequence)

    assert flops.model * rate / 1e12 == pytest.approx(tflops, rel=0.005)


def test_deepseek_v4_with_its_mtp_layer_is_91_gigaflop_per_token() -> None:
    flops = flops_per_token(catalogue.model("DeepSeek-V4-Flash").architecture(), 4096, mtp_layers=1)

    assert flops.model / 1e9 == pytest.approx(748 / 8224 * 1e3, rel=0.005)


def test_a_frozen_weight_has_no_weight_gradient() -> None:
    full = flops_per_token(QWEN_7B, 2048)
    lora = flops_per_token(QWEN_7B, 2048, lora_active_parameters=0)

    assert full.matmul == 6 * QWEN_7B.parameters.matmul
    assert lora.matmul == 4 * QWEN_7B.parameters.matmul
    assert lora.attention == full.attention == 6 * 28 * 3584 * 2048


def test_lora_over_full_with_full_recompute_is_three_quarters() -> None:
    """Measured with ms-swift on Qwen2.5-7B: 0.45 s over 0.61 s."""
    full = flops_per_token(QWEN_7B, 2048, recompute="full").hardware
    lora = flops_per_token(
        QWEN_7B, 2048, lora_active_parameters=lora_parameters(QWEN_7B, 8).active, recompute="full"
    ).hardware

    assert lora / full == pytest.approx(0.45 / 0.61, rel=0.03)


def test_a_card_that_prints_387_tflops_for_lora_counted_6n() -> None:
    qwen_8b = catalogue.model("Qwen3-8B").architecture()

    honest = mfu_lora(qwen_8b, 8, 1e-9, 8429.295, 1, 989, targets=("linear_qkv", "linear_proj"))

    assert pytest.approx(0.392, abs=0.001) == 387.43 / 989
    assert honest == pytest.approx(0.26, abs=0.005)


def test_packed_documents_have_a_shorter_span() -> None:
    assert attention_span((1024, 1024)) == 1024
    assert attention_span((2048,)) == 2048
    assert attention_span((3000, 1000)) == 2500
    with pytest.raises(InputError):
        attention_span(())


def test_adapters_on_every_expert_are_not_negligible() -> None:
    found = lora_parameters(QWEN_30B, 32, ("linear_fc1", "linear_fc2"))

    assert found.total == 48 * 128 * 32 * ((2048 + 1536) + (768 + 2048))
    assert found.active * 16 == found.total


def test_adapters_of_the_course_model() -> None:
    per_layer = 8 * ((3584 + 4608) + (3584 + 3584) + (3584 + 37888) + (18944 + 3584))

    assert lora_parameters(QWEN_7B, 8).total == 28 * per_layer


def test_a_foreign_target_module_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="in_proj") as refusal:
        lora_parameters(QWEN_7B, 8, ("in_proj",))
    assert refusal.value.next_step == "one of all-linear, linear_qkv, linear_proj, linear_fc1, linear_fc2"


def test_utilisation_counts_recomputed_work_only_as_hfu() -> None:
    flops = flops_per_token(QWEN_7B, 2048, recompute="full")
    mfu = mfu_megatron(QWEN_7B, 2048, 1000, 1, 989)

    assert flops.model / 1e12 * 1000 / 989 == pytest.approx(mfu)
    assert hfu(flops.hardware, 1000, 1, 989) / mfu == pytest.approx(4 / 3)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_rates_must_be_positive_and_finite(bad: float) -> None:
    with pytest.raises(InputError):
        mfu_6n(7e9, bad, 1, 90)
    with pytest.raises(InputError):
        mfu_6n(7e9, 750, 1, bad)
    with pytest.raises(InputError):
        flops_per_token(QWEN_7B, bad)
