"""A model as a sequence of blocks, with exact parameter counts.

An `Architecture` is what the ledger needs of a Hugging Face `config.json` (see `hf_config`) and nothing more.
Counts are those of the text model that the transformers class builds: a vision tower and MTP layers are
apart.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from console.core.ledger.deepseek_v4 import V4Attention
from console.core.ledger.mixers import Count, GatedDeltaNet, GroupedQuery, Latent, Shape
from console.core.ledger.mlps import DenseMlp, MoeMlp
from console.core.plan.topology import ModelShape

Mixer = Annotated[GroupedQuery | Latent | GatedDeltaNet | V4Attention, Field(discriminator="kind")]
Mlp = Annotated[DenseMlp | MoeMlp, Field(discriminator="kind")]

Family = Literal["dense", "moe", "hybrid", "deepseek_v4"]


class Block(Shape):
    """One transformer layer: mixer, feed-forward, and two norms."""

    mixer: Mixer
    mlp: Mlp


Kinds = tuple[tuple[Block, int], ...]


def kinds_of(blocks: Iterable[Block]) -> Kinds:
    """Distinct blocks with how often each occurs; blocks are told apart by identity."""
    counts: dict[int, tuple[Block, int]] = {}
    for block in blocks:
        counts[id(block)] = (block, counts.get(id(block), (block, 0))[1] + 1)
    return tuple(counts.values())


class Parameters(Shape):
    """Parameter counts of one model. `matmul` is N_g: weights a token is multiplied with, head included."""

    total: int
    active: int
    embedding: int
    head: int
    matmul: int
    routed_experts: int


class Architecture(Shape):
    """Shapes of one language model. `norm_width` is 1 for RMSNorm, 2 where norms have a bias."""

    name: str
    hidden: int = Count
    vocab: int = Count
    tied_embeddings: bool
    blocks: tuple[Block, ...] = Field(min_length=1)
    norm_width: Literal[1, 2] = 1
    positions: int = Field(default=0, ge=0)
    mtp_layers: int = Field(default=0, ge=0)

    @property
    def layers(self) -> int:
        return len(self.blocks)

    @cached_property
    def attention(self) -> GroupedQuery | Latent | V4Attention:
        """The first mixer that is attention proper; its heads are what tensor parallelism divides."""
        for block in self.blocks:
            if not isinstance(block.mixer, GatedDeltaNet):
                return block.mixer
        raise ValueError(f"{self.name} has no attention layer")

    @cached_property
    def moe(self) -> MoeMlp | None:
        """The first mixture of experts, None for a dense model."""
        return next((block.mlp for block in self.blocks if isinstance(block.mlp, MoeMlp)), None)

    @cached_property
    def family(self) -> Family:
        """What decides how far a prediction can be trusted."""
        if any(isinstance(block.mixer, V4Attention) for block in self.blocks):
            return "deepseek_v4"
        if any(isinstance(block.mixer, GatedDeltaNet) for block in self.blocks):
            return "hybrid"
        return "moe" if self.moe else "dense"

    @property
    def norms(self) -> int:
        """Norm parameters of one layer."""
        return 2 * self.norm_width * self.hidden

    @cached_property
    def head_mixing(self) -> int:
        """Parameters that join residual streams before the output layer (DeepSeek-V4)."""
        mixer = self.blocks[-1].mixer
        return mixer.head_mixing(self.hidden) if isinstance(mixer, V4Attention) else 0

    @property
    def shape(self) -> ModelShape:
        """What a topology has to divide. MTP layers count only in a run that trains them, so none is given
        here.
        """
        return ModelShape(
            layers=self.layers,
            heads=self.attention.heads,
            kv_heads=self.attention.kv_heads,
            experts=self.moe.experts if self.moe else None,
        )

    @cached_property
    def parameters(self) -> Parameters:
        """Exact counts."""
        h = self.hidden
        embedding = (self.vocab + self.positions) * h
        head = 0 if self.tied_embeddings else self.vocab * h
        kinds = kinds_of(self.blocks)
        fixed = sum(n * (b.mixer.split(h) + b.mixer.replicated(h)) for b, n in kinds)
        fixed += sum(n * (b.mlp.split(h) + b.mlp.replicated(h)) for b, n in kinds)
        fixed += self.layers * self.norms + self.norm_width * h + self.head_mixing
        routed = sum(n * b.mlp.routed(h) for b, n in kinds)
        total = embedding + head + fixed + routed
        return Parameters(
            total=total,
            active=total - routed + sum(n * b.mlp.active_routed(h) for b, n in kinds),
            embedding=embedding,
            head=head,
            matmul=sum(n * (b.mixer.matmul(h) + b.mlp.matmul(h)) for b, n in kinds) + self.vocab * h,
            routed_experts=routed,
        )

    @cached_property
    def mtp_block(self) -> Block:
        """The layer a multi-token-prediction depth repeats: the last one with attention proper."""
        return next(b for b in reversed(self.blocks) if not isinstance(b.mixer, GatedDeltaNet))

    @property
    def mtp_parameters(self) -> int:
        """One MTP depth: its block, the 2h x h projection, and three norms."""
        h = self.hidden
        mixer, mlp = self.mtp_block.mixer, self.mtp_block.mlp
        block = mixer.split(h) + mixer.replicated(h) + mlp.split(h) + mlp.replicated(h) + mlp.routed(h)
        return block + self.norms + 2 * h * h + 3 * self.norm_width * h
