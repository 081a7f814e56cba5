"""A Hugging Face `config.json` read into an `Architecture`.

What decides is the fields, not the model's name: latent attention is recognised by `kv_lora_rank`, experts
by their count, delta-net layers by `layer_types` or `full_attention_interval`. The model type only settles
what the fields leave open (query-key norms, biases). Raises InputError naming the field that is missing or
wrong.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from console.core.errors import InputError
from console.core.ledger.architecture import Architecture, Block, Mixer, Mlp
from console.core.ledger.deepseek_v4 import V4Attention
from console.core.ledger.mixers import GatedDeltaNet, GroupedQuery, Latent
from console.core.ledger.mlps import DenseMlp, MoeMlp

QKV_BIAS = {"qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text"}
GATED_HYBRID = {"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"}
QK_NORM = {"qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl_moe_text"} | GATED_HYBRID
SHARED_GATE = {"qwen2_moe"} | GATED_HYBRID
PLAIN = {"llama", "mistral", "mixtral", "deepseek_v2", "deepseek_v3", "deepseek_v4"}

V4_RATIOS = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
LARGEST_LAYERS = 4096
LARGEST_COUNT = 10_000_000


class ConfigReading(NamedTuple):
    """The architecture and what a reader should know about how it was read."""

    architecture: Architecture
    notes: tuple[str, ...]


def read_config(config: Mapping[str, Any], name: str) -> ConfigReading:
    """Read a parsed `config.json`. The text model of a multimodal config is taken; its vision tower is not
    counted.
    """
    notes = []
    text = config.get("text_config", config)
    if not isinstance(text, Mapping):
        raise InputError(f"{name}: text_config", why="not a mapping", next_step="give the whole config.json")
    if "vision_config" in config:
        notes.append("the vision tower is not counted")
    fields = _Fields(name, {"tie_word_embeddings": config.get("tie_word_embeddings"), **text})
    kind = str(fields.get("model_type", "unknown"))
    if kind not in QKV_BIAS | QK_NORM | PLAIN:
        notes.append(f"model type {kind!r} is not known here; read as a Llama-like model")
    if fields.get("tie_word_embeddings") is None:
        notes.append("tie_word_embeddings is missing; taken as untied")
    layers = fields.count("num_hidden_layers")
    if layers > LARGEST_LAYERS:
        raise InputError(
            f"{name}: num_hidden_layers {layers}",
            why=f"above {LARGEST_LAYERS}",
            next_step="check config.json",
        )
    mixers = _mixers(fields, kind, layers)
    try:
        architecture = Architecture(
            name=name,
            hidden=fields.count("hidden_size"),
            vocab=fields.count("vocab_size"),
            tied_embeddings=bool(fields.get("tie_word_embeddings") or False),
            blocks=_one_of_each(Block(mixer=mixers[i], mlp=_mlp(fields, kind, i)) for i in range(layers)),
            mtp_layers=fields.optional(
                "num_nextn_predict_layers", fields.optional("mtp_num_hidden_layers", 0)
            ),
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{name}: {where}", why=first["msg"], next_step="check this field of config.json"
        ) from None
    return ConfigReading(architecture, tuple(notes))


class _Fields:
    """Typed access to a config with errors that name the field."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self._name = name
        self._values = values

    def get(self, key: str, default: Any = None) -> Any:
        value = self._values.get(key)
        return default if value is None else value

    def count(self, key: str) -> int:
        """A whole number above zero that must be there."""
        value = self._values.get(key)
        if value is None:
            raise InputError(
                f"{self._name}: config.json has no {key}",
                why="parameters can't be counted without it",
                next_step=f"add {key}, or name a model of the catalogue",
            )
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_COUNT:
            raise InputError(
                f"{self._name}: {key} {str(value)[:40]}",
                why=f"must be a whole number from 1 to {LARGEST_COUNT:,}",
                next_step=f"{key} 1",
            )
        return value

    def optional(self, key: str, default: int) -> int:
        return self.count(key) if self.get(key) else default


def _one_of_each(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks with equal ones as one object, so that sums over a model can go by kind."""
    seen: dict[Block, Block] = {}
    return tuple(seen.setdefault(block, block) for block in blocks)


def _mixers(fields: _Fields, kind: str, layers: int) -> tuple[Mixer, ...]:
    if kind == "deepseek_v4":
        return tuple(_v4(fields, ratio) for ratio in _v4_ratios(fields, layers))
    attention = _latent(fields) if fields.get("kv_lora_rank") else _grouped(fields, kind)
    linear = _linear_layers(fields, layers)
    if not any(linear):
        return (attention,) * layers
    delta = GatedDeltaNet(
        key_heads=fields.count("linear_num_key_heads"),
        value_heads=fields.count("linear_num_value_heads"),
        key_dim=fields.count("linear_key_head_dim"),
        value_dim=fields.count("linear_value_head_dim"),
        conv=fields.count("linear_conv_kernel_dim"),
    )
    return tuple(delta if is_linear else attention for is_linear in linear)


def _linear_layers(fields: _Fields, layers: int) -> list[bool]:
    types = fields.get("layer_types")
    if isinstance(types, list):
        if len(types) != layers:
            raise InputError(
                f"layer_types has {len(types)} entries",
                why=f"num_hidden_layers is {layers}",
                next_step=f"give {layers} entries",
            )
        return [kind == "linear_attention" for kind in types]
    interval = fields.optional("full_attention_interval", 0)
    return [bool(interval) and (i + 1) % interval != 0 for i in range(layers)]


def _grouped(fields: _Fields, kind: str) -> GroupedQuery:
    heads = fields.count("num_attention_heads")
    bias = bool(fields.get("attention_bias", False))
    return GroupedQuery(
        heads=heads,
        kv_heads=fields.optional("num_key_value_heads", heads),
        head_dim=fields.optional("head_dim", fields.count("hidden_size") // heads),
        qkv_bias=bool(fields.get("qkv_bias", bias or kind in QKV_BIAS)),
        out_bias=bias,
        qk_norm=bool(fields.get("use_qk_norm", kind in QK_NORM)),
        output_gate=bool(fields.get("attn_output_gate", kind in GATED_HYBRID)),
    )


def _latent(fields: _Fields) -> Latent:
    return Latent(
        heads=fields.count("num_attention_heads"),
        q_rank=fields.optional("q_lora_rank", 0) or None,
        kv_rank=fields.count("kv_lora_rank"),
        nope_dim=fields.count("qk_nope_head_dim"),
        rope_dim=fields.count("qk_rope_head_dim"),
        value_dim=fields.count("v_head_dim"),
    )


def _v4_ratios(fields: _Fields, layers: int) -> tuple[int, ...]:
    """Compress ratio per layer. transformers' default is wrong for layers 0 and 1, so none is assumed."""
    ratios = fields.get("compress_ratios")
    if ratios is None and fields.get("layer_types"):
        ratios = [V4_RATIOS.get(kind, -1) for kind in fields.get("layer_types")]
    if not isinstance(ratios, list) or len(ratios) < layers:
        raise InputError(
            "config.json has no compress_ratios for every layer",
            why=f"DeepSeek-V4 layers differ, {layers} ratios of 0, 4 or 128 are needed",
            next_step="add compress_ratios or layer_types from the checkpoint",
        )
    return tuple(ratios[:layers])


def _v4(fields: _Fields, ratio: int) -> V4Attention:
    return V4Attention.model_validate(
        {
            "heads": fields.count("num_attention_heads"),
            "head_dim": fields.count("head_dim"),
            "rope_dim": fields.count("qk_rope_head_dim"),
            "q_rank": fields.count("q_lora_rank"),
            "out_rank": fields.count("o_lora_rank"),
            "out_groups": fields.count("o_groups"),
            "window": fields.count("sliding_window"),
            "ratio": ratio,
            "index_heads": fields.count("index_n_heads"),
            "index_dim": fields.count("index_head_dim"),
            "index_top_k": fields.count("index_topk"),
            "streams": fields.count("hc_mult"),
        }
    )


def _mlp(fields: _Fields, kind: str, layer: int) -> Mlp:
    experts = fields.get("num_experts") or fields.get("num_local_experts") or fields.get("n_routed_experts")
    if not experts or not _is_sparse(fields, layer):
        return DenseMlp(ffn=fields.count("intermediate_size"))
    ffn = fields.optional("moe_intermediate_size", fields.get("intermediate_size", 0))
    shared = fields.get("shared_expert_intermediate_size")
    return MoeMlp(
        experts=experts,
        top_k=fields.count("num_experts_per_tok"),
        ffn=ffn,
        shared_ffn=fields.optional("n_shared_experts", 0) * ffn if shared is None else shared,
        shared_gate=bool(shared) and kind in SHARED_GATE,
    )


def _is_sparse(fields: _Fields, layer: int) -> bool:
    if layer < fields.optional("first_k_dense_replace", 0) or layer in fields.get("mlp_only_layers", ()):
        return False
    if layer % fields.optional("moe_layer_freq", 1):
        return False
    return (layer + 1) % fields.optional("decoder_sparse_step", 1) == 0
