"""What lint needs to know about a launch, as plain values.

Whoever plans a launch fills in what is known and leaves the rest: a rule whose facts are missing stays
silent.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Severity = Literal["error", "warning", "note"]

TRUE_WORDS = ("true", "1", "yes")


class NodeFacts(BaseModel):
    """One node's command, without the program's own words, and its environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: str
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = Field(default_factory=dict)


class LaunchFacts(BaseModel):
    """A launch before it happens.

    - `program`: `megatron` for `megatron sft`, `swift` for `swift sft`; their flags and defaults differ.
    - `nodes`: in rank order. Flags are read from the first one.
    - `versions`: package name -> version; None means known to be absent, no key means not looked at.
      Names used: ms_swift, megatron_core, mcore_bridge, transformer_engine, flash_attn, apex, torch.
    - `flash_attn_limit`: the highest flash-attn that the installed Transformer Engine takes.
    - `model_family`: dense, moe, hybrid or deepseek_v4. `linear_names`: what `target_modules` may name.
    - `checkpoint_mtp_layers`: MTP layers whose weights the checkpoint really holds.
    - `has_ngram_table`: the model has an N-gram embedding table in an early layer (PLE).
    - `merge_intended`: the adapter is to be merged for deployment.
    - `matmul_tflops`, `matmul_baseline_tflops`: this torch build measured, and what the device is known to
      do.
    - `expectation_gpu`: the device on which the expected step time was measured.
    - `smallest_fitting_cut`: the smallest tp x pp x cp that fits in memory, if the ledger was asked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    program: Literal["megatron", "swift"]
    nodes: tuple[NodeFacts, ...] = Field(min_length=1)
    devices_per_node: int = Field(default=1, ge=1)
    gpu_name: str | None = None
    versions: Mapping[str, str | None] = Field(default_factory=dict)
    flash_attn_limit: str | None = None
    model_family: str | None = None
    model_layers: int | None = None
    linear_names: tuple[str, ...] = ()
    checkpoint_mtp_layers: int | None = None
    has_ngram_table: bool = False
    merge_intended: bool = False
    matmul_tflops: float | None = None
    matmul_baseline_tflops: float | None = None
    expectation_gpu: str | None = None
    smallest_fitting_cut: int | None = None

    @property
    def world_size(self) -> int:
        return len(self.nodes) * self.devices_per_node

    @property
    def flags(self) -> dict[str, tuple[str, ...]]:
        """Flags of the first node's command: `--name value ...` and `--name=value`, names without dashes."""
        found: dict[str, tuple[str, ...]] = {}
        name = None
        for word in self.nodes[0].argv:
            if word.startswith("--"):
                name, has_value, value = word[2:].partition("=")
                name = name.replace("-", "_")
                found[name] = (value,) if has_value else ()
            elif name is not None:
                found[name] = (*found[name], word)
        return found

    def value(self, flag: str, default: str) -> str:
        """First value of a flag, or its default."""
        given = self.flags.get(flag)
        return given[0] if given else default

    def number(self, flag: str, default: int) -> int:
        """A flag as a whole number; the default when it is absent or no number."""
        text = self.value(flag, "")
        return int(text) if text.isdecimal() and len(text) < 10 else default

    def is_on(self, flag: str, default: bool = False) -> bool:
        """A flag as a switch; a bare flag is on."""
        given = self.flags.get(flag)
        if given is None:
            return default
        return not given or given[0].lower() in TRUE_WORDS

    @property
    def tuner(self) -> str:
        """`tuner_type` with the program's own default."""
        return self.value("tuner_type", "full" if self.program == "megatron" else "lora")


class Finding(BaseModel):
    """One thing known to go wrong. An error stops or spoils the run, a warning costs, a note informs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str
    severity: Severity
    what: str
    if_ignored: str
    remedy: str


def version_key(text: str) -> tuple[int, ...]:
    """The leading numbers of a version, for comparison: "2.8.0.post2+cu130" -> (2, 8, 0)."""
    numbers = []
    for part in text.strip().removeprefix("v").split("+")[0].split("."):
        digits = part[: next((i for i, letter in enumerate(part) if not letter.isdecimal()), len(part))]
        if not digits or len(digits) > 9:
            break
        numbers.append(int(digits))
    return tuple(numbers)
