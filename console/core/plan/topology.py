"""Parallel sizes, the two world equations of Megatron, and what they refuse.

Dense ranks are ordered tp-cp-dp-pp and expert ranks etp-ep-edp-pp, so that

    world = tp * cp * dp * pp      (attention, dense layers, embeddings)
    world = etp * ep * edp * pp    (routed experts)

hold together (Megatron-Core `parallel_state.py`). The pipeline groups of both orders coincide because pp is
outermost in each. Functions raise InputError with the numbers put in and the nearest valid value.
"""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from console.core.errors import InputError
from console.core.plan.nearest import nearest_divisor, nearest_multiple
from console.core.plan.pipeline import PipelineLayout, parse_layout, stage_layers

__all__ = [
    "ModelShape",
    "ParallelSizes",
    "PipelineLayout",
    "Topology",
    "derive",
    "micro_batches",
    "parse_layout",
    "require_fit",
    "require_sequence",
    "stage_layers",
]

WORLD_MAX = 1_000_000


class ParallelSizes(BaseModel):
    """How one run is cut. All sizes count ranks; the defaults are those of ms-swift.

    `first_layers` and `last_layers` are `decoder_first/last_pipeline_num_layers`; `layout` is
    `pipeline_model_parallel_layout` and excludes both. `sequence_parallel` has an effect only when tp > 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tp: int = Field(default=1, ge=1, le=WORLD_MAX)
    pp: int = Field(default=1, ge=1, le=WORLD_MAX)
    cp: int = Field(default=1, ge=1, le=WORLD_MAX)
    ep: int = Field(default=1, ge=1, le=WORLD_MAX)
    etp: int = Field(default=1, ge=1, le=WORLD_MAX)
    vpp: int = Field(default=1, ge=1, le=WORLD_MAX)
    sequence_parallel: bool = False
    first_layers: int | None = Field(default=None, ge=0)
    last_layers: int | None = Field(default=None, ge=0)
    layout: str | None = None

    @classmethod
    def checked(cls, **values: object) -> Self:
        """The sizes, or InputError instead of pydantic's own error."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise InputError(
                f"{field} {first['input']!r}"[:80],
                why=f"must be a whole number from {0 if 'layers' in field else 1} to {WORLD_MAX:,}",
                next_step=f"{field} 1",
            ) from None

    @property
    def dense_cut(self) -> int:
        """Ranks that one dense replica takes: tp * cp * pp."""
        return self.tp * self.cp * self.pp

    @property
    def expert_cut(self) -> int:
        """Ranks that one full set of experts takes: etp * ep * pp."""
        return self.etp * self.ep * self.pp


class Topology(BaseModel):
    """Sizes that satisfy both world equations, with what follows from them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    world_size: int
    sizes: ParallelSizes
    dp: int
    edp: int


class ModelShape(BaseModel):
    """What a topology has to divide. `experts` is None for a dense model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layers: int = Field(ge=1)
    heads: int = Field(ge=1)
    kv_heads: int = Field(ge=1)
    experts: int | None = None
    mtp_layers: int = Field(default=0, ge=0)


def derive(world_size: int, sizes: ParallelSizes) -> Topology:
    """DP and expert DP of a world; raises InputError when either world equation fails."""
    if not 1 <= world_size <= WORLD_MAX:
        raise InputError(
            f"world {world_size}",
            why=f"a world has 1 to {WORLD_MAX} ranks",
            next_step=f"world {sizes.dense_cut}",
        )
    _require_division(world_size, sizes.dense_cut, f"tp {sizes.tp} x pp {sizes.pp} x cp {sizes.cp}", "DP")
    _require_division(
        world_size, sizes.expert_cut, f"etp {sizes.etp} x ep {sizes.ep} x pp {sizes.pp}", "expert DP"
    )
    return Topology(
        world_size=world_size,
        sizes=sizes,
        dp=world_size // sizes.dense_cut,
        edp=world_size // sizes.expert_cut,
    )


def micro_batches(global_batch: int, micro_batch: int, dp: int) -> int:
    """Micro-batches per step and rank: global / (micro * dp). CP does not multiply samples."""
    for name, value in (("global batch", global_batch), ("micro batch", micro_batch), ("dp", dp)):
        if value < 1:
            raise InputError(f"{name} {value}", why=f"{name} must be at least 1", next_step=f"{name} 1")
    unit = micro_batch * dp
    if global_batch % unit:
        raise InputError(
            f"global batch {global_batch}",
            why=f"not a multiple of micro batch {micro_batch} x DP {dp} = {unit}",
            next_step=f"global batch {nearest_multiple(global_batch, unit)}",
        )
    return global_batch // unit


def require_sequence(sequence: int, sizes: ParallelSizes) -> None:
    """Raise InputError unless the sequence divides by 2*cp (under CP) times tp (under SP)."""
    cut = (2 * sizes.cp if sizes.cp > 1 else 1) * (sizes.tp if sizes.sequence_parallel else 1)
    if sequence < 1 or sequence % cut:
        parts = [f"2 x cp {sizes.cp}"] * (sizes.cp > 1) + [f"tp {sizes.tp}"] * sizes.sequence_parallel
        raise InputError(
            f"sequence {sequence}",
            why=f"must be a positive multiple of {' x '.join(parts) or '1'} = {cut}",
            next_step=f"sequence {nearest_multiple(sequence, cut)}",
        )


def require_fit(sizes: ParallelSizes, shape: ModelShape) -> tuple[int, ...]:
    """Layers per pipeline rank; raises InputError when heads, experts or layers do not divide."""
    _require_heads(sizes.tp, shape)
    _require_experts(sizes, shape.experts)
    if sizes.layout is None:
        return stage_layers(
            shape.layers, pp=sizes.pp, vpp=sizes.vpp, first=sizes.first_layers, last=sizes.last_layers
        )
    if sizes.first_layers is not None or sizes.last_layers is not None:
        raise InputError(
            "a layout together with decoder_first/last_pipeline_num_layers",
            why="Megatron takes one or the other",
            next_step="keep the layout only",
        )
    return parse_layout(sizes.layout, pp=sizes.pp, layers=shape.layers, mtp=shape.mtp_layers).layers_per_rank


def _require_division(world_size: int, cut: int, product: str, quotient: str) -> None:
    if world_size % cut:
        raise InputError(
            f"world {world_size} leaves no whole {quotient}",
            why=f"{product} = {cut} does not divide {world_size}",
            next_step=f"world {nearest_multiple(world_size, cut)}, or smaller sizes",
        )


def _require_heads(tp: int, shape: ModelShape) -> None:
    """Query heads divide by tp; key-value heads divide by it, or it by them where heads are copied."""
    copied_or_cut = [
        d for d in range(1, shape.heads + 1) if shape.kv_heads % d == 0 or d % shape.kv_heads == 0
    ]
    valid = [d for d in copied_or_cut if shape.heads % d == 0]
    if tp in valid:
        return
    which = f"{shape.kv_heads} key-value heads" if shape.heads % tp == 0 else f"{shape.heads} attention heads"
    raise InputError(
        f"tp {tp}",
        why=f"{which} do not divide by it",
        next_step=f"tp {min(valid, key=lambda d: abs(d - tp))}",
    )


def _require_experts(sizes: ParallelSizes, experts: int | None) -> None:
    if experts is None:
        if sizes.ep > 1:
            raise InputError(f"ep {sizes.ep}", why="the model has no experts", next_step="ep 1")
        return
    if experts % sizes.ep:
        raise InputError(
            f"ep {sizes.ep}",
            why=f"{experts} experts do not divide by it",
            next_step=f"ep {nearest_divisor(experts, sizes.ep)}",
        )
