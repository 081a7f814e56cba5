"""The run matrix: what is held fixed, what one configuration varies, and what was expected beforehand."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from console.core.errors import InputError
from console.core.plan.part import Integer, Number, Part, Variables

Flag = bool | int | float | str | list[str]
Mode = Literal["swift", "megatron"]
Variable = Literal[
    "nothing",
    "data parallel",
    "tensor parallel",
    "pipeline parallel",
    "recompute",
    "accumulation",
    "micro batch",
    "packing",
    "transport",
]

ALLOWED: Mapping[Variable, frozenset[str]] = {
    "nothing": frozenset(),
    "data parallel": frozenset({"nodes"}),
    "tensor parallel": frozenset({"nodes", "tensor_parallel", "sequence_parallel"}),
    "pipeline parallel": frozenset({"nodes", "pipeline_parallel"}),
    "recompute": frozenset({"recompute"}),
    "accumulation": frozenset({"global_batch"}),
    "micro batch": frozenset({"micro_batch", "global_batch"}),
    "packing": frozenset({"packing"}),
    "transport": frozenset({"env"}),
}
"""Which fields each declared variable may change against the baseline."""


class Settings(Part):
    """What every run shares. Names are the console's; `launch` turns them into the flags of each mode."""

    tuner: Literal["lora", "full"] = "lora"
    lora_rank: Integer = Field(default=8, ge=1)
    lora_alpha: Integer = Field(default=32, ge=1)
    target_modules: list[str] = ["all-linear"]
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    max_length: Integer = Field(default=2048, ge=8)
    epochs: Number | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_steps: Integer | None = Field(default=None, ge=1)
    micro_batch: Integer = Field(default=1, ge=1)
    """Samples of one forward pass on one data-parallel rank."""
    global_batch: Integer = Field(default=16, ge=1)
    """Samples of one optimizer step, over all ranks."""
    learning_rate: Number = Field(default=1e-4, gt=0)
    min_learning_rate: Number = Field(default=1e-5, ge=0)
    warmup_fraction: Number = Field(default=0.05, ge=0, le=1)
    recompute: Literal["full", "selective", "none"] = "full"
    packing: bool = False
    seed: Integer = 42
    logging_steps: Integer = Field(default=1, ge=1)
    save_steps: Integer = Field(default=100, ge=1)
    ddp_timeout_seconds: Integer = Field(default=1800, ge=60)
    """The framework's own default is 208 days: a hang would never end by itself."""
    use_cpu: bool = False
    flags: dict[str, Flag] = {}
    """Further flags of both modes, without the leading dashes."""
    swift_flags: dict[str, Flag] = {}
    megatron_flags: dict[str, Flag] = {}

    @model_validator(mode="after")
    def _length(self) -> Self:
        if (self.epochs is None) == (self.max_steps is None):
            raise ValueError("give either epochs or max_steps")
        return self


class Configuration(Part):
    """One row of the matrix: the baseline plus one declared variable."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,15}$")]
    title: str
    mode: Mode
    varies: Variable
    nodes: Integer = Field(default=1, ge=1)
    tensor_parallel: Integer = Field(default=1, ge=1)
    pipeline_parallel: Integer = Field(default=1, ge=1)
    sequence_parallel: bool = False
    settings: dict[str, Flag | None] = {}
    """Overrides of `Settings`; only fields that the declared variable allows pass the guard."""
    env: Variables = {}
    expect: str = ""
    """The hypothesis offered before the first run; without a screen it is taken as it stands."""

    @property
    def data_parallel(self) -> int:
        """World size (one rank per node) over tensor times pipeline parallel; at least 1."""
        return max(1, self.nodes // (self.tensor_parallel * self.pipeline_parallel))

    @property
    def parallel(self) -> str:
        """The parallel sizes as the record sheet writes them, e.g. `TP2+SP`, `DP2`, `PP2`, `TP1`."""
        parts = []
        if self.tensor_parallel > 1:
            parts.append(f"TP{self.tensor_parallel}" + ("+SP" if self.sequence_parallel else ""))
        if self.pipeline_parallel > 1:
            parts.append(f"PP{self.pipeline_parallel}")
        if self.data_parallel > 1:
            parts.append(f"DP{self.data_parallel}")
        return " ".join(parts) or "TP1"


class Matrix(Part):
    """The configurations of an experiment, in the order in which they run."""

    baseline: str = "E0"
    configurations: list[Configuration] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids(self) -> Self:
        ids = [config.id for config in self.configurations]
        twice = sorted({name for name in ids if ids.count(name) > 1})
        if twice:
            raise ValueError(f"two configurations of one id: {', '.join(twice)}")
        if self.baseline not in ids:
            raise ValueError(f"the baseline {self.baseline} is not among the configurations")
        return self

    def configuration(self, config_id: str) -> Configuration:
        """The configuration of that id. Raises `InputError`."""
        for config in self.configurations:
            if config.id == config_id:
                return config
        known = ", ".join(config.id for config in self.configurations)
        raise InputError(f"no configuration {config_id} in the matrix", next_step=f"choose among {known}")


def effective_settings(fixed: Settings, config: Configuration) -> Settings:
    """The fixed settings with this configuration's overrides. Raises `InputError`."""
    merged = fixed.model_dump() | config.settings
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in fault["loc"])
        raise InputError(
            f"configuration {config.id}: settings.{field}: {fault['msg'].removeprefix('Value error, ')}",
            next_step="use the names and types of the profile's settings block",
        ) from None


def guard(matrix: Matrix, fixed: Settings) -> None:
    """Refuse a matrix in which a configuration differs from the baseline in more than it declares.

    Raises `InputError` that names the configuration, the field and both values.
    """
    base = matrix.configuration(matrix.baseline)
    base_facts = _facts(fixed, base)
    for config in matrix.configurations:
        facts = _facts(fixed, config)
        for field, value in facts.items():
            if value != base_facts[field] and field not in ALLOWED[config.varies]:
                raise InputError(
                    f"{config.id} differs from {base.id} in {field} "
                    f"({value!r} against {base_facts[field]!r}), but declares only: {config.varies}",
                    why="with two variables changed at once no difference can be explained",
                    next_step=f"make {field} equal, or declare another variable in a row of its own",
                )


def _facts(fixed: Settings, config: Configuration) -> dict[str, object]:
    """Everything in which two runs can differ, flat."""
    layout = config.model_dump(include={"mode", "nodes", "tensor_parallel", "pipeline_parallel", "env"})
    return (
        layout
        | {"sequence_parallel": config.sequence_parallel}
        | effective_settings(fixed, config).model_dump()
    )


def hypothesis_hash(texts: Mapping[str, str]) -> str:
    """sha256 over the hypotheses, configuration by configuration in order of id."""
    joined = "\n".join(f"{config_id}\t{texts[config_id]}" for config_id in sorted(texts))
    return hashlib.sha256(joined.encode()).hexdigest()
