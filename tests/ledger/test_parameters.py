"""Exact parameter counts of the catalogue and of configs read from Hugging Face."""

from typing import Any

import pytest

from console.core.errors import InputError
from console.core.ledger import catalogue
from console.core.ledger.hf_config import read_config

# name: total, active, embedding, head, routed experts; counted by building the classes without weights
COUNTS: dict[str, tuple[int, int, int, int, int]] = {
    "Qwen2.5-0.5B": (494_032_768, 494_032_768, 136_134_656, 0, 0),
    "Qwen2.5-7B": (7_615_616_512, 7_615_616_512, 544_997_376, 544_997_376, 0),
    "Qwen2.5-14B": (14_770_033_664, 14_770_033_664, 778_567_680, 778_567_680, 0),
    "Qwen2.5-32B": (32_763_876_352, 32_763_876_352, 778_567_680, 778_567_680, 0),
    "Qwen2.5-72B": (72_706_203_648, 72_706_203_648, 1_245_708_288, 1_245_708_288, 0),
    "Qwen3-4B": (4_022_468_096, 4_022_468_096, 388_956_160, 0, 0),
    "Qwen3-8B": (8_190_735_360, 8_190_735_360, 622_329_856, 622_329_856, 0),
    "Qwen3-14B": (14_768_307_200, 14_768_307_200, 777_912_320, 777_912_320, 0),
    "Qwen3-32B": (32_762_123_264, 32_762_123_264, 777_912_320, 777_912_320, 0),
    "Llama-3.1-8B": (8_030_261_248, 8_030_261_248, 525_336_576, 525_336_576, 0),
    "Llama-3-70B": (70_553_706_496, 70_553_706_496, 1_050_673_152, 1_050_673_152, 0),
    "Llama-3.2-3B": (3_212_749_824, 3_212_749_824, 394_002_432, 0, 0),
    "Llama-2-7B": (6_738_415_616, 6_738_415_616, 131_072_000, 131_072_000, 0),
    "Llama-2-13B": (13_015_864_320, 13_015_864_320, 163_840_000, 163_840_000, 0),
    "Llama-2-70B": (68_976_648_192, 68_976_648_192, 262_144_000, 262_144_000, 0),
    "Qwen3-30B-A3B": (30_532_122_624, 3_353_032_704, 311_164_928, 311_164_928, 28_991_029_248),
    "Qwen3-235B-A22B": (235_093_634_560, 22_190_763_520, 622_329_856, 622_329_856, 227_096_395_776),
    "Qwen3.6-35B-A3B": (34_660_610_688, 3_454_988_928, 508_559_360, 508_559_360, 32_212_254_720),
    "DeepSeek-V4-Flash": (284_332_230_231, 13_799_622_231, 529_530_880, 529_530_880, 277_025_390_592),
    "Qwen3.5-4B": (4_205_751_296, 4_205_751_296, 635_699_200, 0, 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_exact(name: str) -> None:
    counted = catalogue.model(name).architecture().parameters

    assert (
        counted.total,
        counted.active,
        counted.embedding,
        counted.head,
        counted.routed_experts,
    ) == COUNTS[name]


def test_an_untied_qwen35_has_one_more_matrix() -> None:
    config = {**(catalogue.model("Qwen3.5-4B").config or {}), "tie_word_embeddings": False}

    assert read_config(config, "untied").architecture.parameters.total == 4_841_450_496


def test_a_checkpoint_is_text_model_vision_tower_and_mtp_layer() -> None:
    entry = catalogue.model("Qwen3.6-35B-A3B")
    architecture = entry.architecture()

    assert architecture.mtp_parameters == 844_640_768
    assert (
        architecture.parameters.total + architecture.mtp_parameters + (entry.vision_parameters or 0)
        == 35_951_822_704
    )


def test_names_are_found_with_organisation_suffix_and_case() -> None:
    assert catalogue.model("Qwen/Qwen2.5-7B-Instruct").name == "Qwen2.5-7B"
    assert catalogue.model("deepseek-ai/DEEPSEEK-v4-flash").name == "DeepSeek-V4-Flash"


DENSE = {
    "model_type": "qwen3",
    "hidden_size": 2560,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 9728,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}


def test_query_width_need_not_be_hidden() -> None:
    assert read_config(DENSE, "q is 4096").architecture.parameters.total == 4_022_468_096


def test_latent_attention_and_dense_first_layers_are_read() -> None:
    """DeepSeek-V3: 671,026,404,352 without MTP, as its model card rounds to 671B."""
    architecture = catalogue.model("DeepSeek-V3").architecture()

    assert architecture.parameters.total == 671_026_404_352
    assert [block.mlp.kind for block in architecture.blocks[:4]] == ["dense", "dense", "dense", "moe"]


def test_a_nested_text_config_is_taken_and_the_vision_tower_said() -> None:
    reading = read_config({"text_config": DENSE, "vision_config": {}}, "vl")

    assert reading.architecture.parameters.total == 4_022_468_096
    assert "the vision tower is not counted" in reading.notes


def test_an_unknown_type_is_read_as_llama_and_said() -> None:
    reading = read_config({**DENSE, "model_type": "newcomer"}, "new")

    assert any("'newcomer'" in note for note in reading.notes)


@pytest.mark.parametrize(
    "field", ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"]
)
def test_a_missing_field_is_named(field: str) -> None:
    config = {key: value for key, value in DENSE.items() if key != field}

    with pytest.raises(InputError, match=f"config.json has no {field}"):
        read_config(config, "holey")


@pytest.mark.parametrize("value", [0, -1, "36", 3.5, True, 10**9, float("nan"), [36]])
def test_a_wrong_count_is_named(value: Any) -> None:
    with pytest.raises(InputError, match="num_hidden_layers"):
        read_config({**DENSE, "num_hidden_layers": value}, "odd")


def test_deepseek_v4_needs_its_ratios() -> None:
    config = dict(catalogue.model("DeepSeek-V4-Flash").config or {})
    del config["compress_ratios"]

    with pytest.raises(InputError, match="compress_ratios"):
        read_config(config, "default layer types are wrong")


def test_an_unknown_model_names_the_nearest() -> None:
    with pytest.raises(InputError) as refusal:
        catalogue.model("Qwen2.5-7BB")

    assert refusal.value.next_step == "Qwen2.5-7B"


def test_shapes_that_are_not_published_are_not_invented() -> None:
    with pytest.raises(InputError, match="not known"):
        catalogue.model("Qwen3.8-Flash-Next").architecture()
