"""The token mixers a layer can have: grouped-query attention, latent attention, gated delta net.

Every mixer answers the same questions for one layer of hidden size h:

- `split(h)` and `replicated(h)`: parameters that tensor parallelism cuts, and those it copies to every rank;
- `matmul(h)`: weights a token is multiplied with (N_g), which leaves out biases, norms and convolutions;
- `core_flops(span)`: forward and backward FLOPs per token without weights, causal half of the attention span;
- `saved(h)`: bytes per token kept for backward in BF16 under flash attention, without the layer's norms;
- `linears(h)`: the linear layers by their Megatron names, for LoRA.

FLOPs follow Megatron-LM `num_floating_point_operations`; bytes follow the tensors each operator keeps.
"""

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

Count = Field(ge=1, le=10**9)
STATE_CHUNK = 64


class Linear(NamedTuple):
    """One linear layer as Megatron fuses it. `column` tells which side tensor parallelism cuts."""

    name: str
    inputs: int
    outputs: int
    column: bool


class Shape(BaseModel):
    """Base of all frozen shapes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class GroupedQuery(Shape):
    """Multi-head and grouped-query attention; q = heads * head_dim need not equal h."""

    kind: Literal["gqa"] = "gqa"
    heads: int = Count
    kv_heads: int = Count
    head_dim: int = Count
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: bool = False
    output_gate: bool = False

    @property
    def q(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv(self) -> int:
        return self.kv_heads * self.head_dim

    @property
    def _projected(self) -> int:
        return self.q * (2 if self.output_gate else 1) + 2 * self.kv

    def matmul(self, hidden: int) -> int:
        return hidden * (self._projected + self.q)

    def split(self, hidden: int) -> int:
        return self.matmul(hidden) + (self._projected if self.qkv_bias else 0)

    def replicated(self, hidden: int) -> int:
        return (2 * self.head_dim if self.qk_norm else 0) + (hidden if self.out_bias else 0)

    def core_flops(self, span: float) -> float:
        return 6 * self.q * span

    def saved(self, hidden: int) -> int:
        """Q and output 4q, K and V 4kv, log-sum-exp 4 per head; norm inputs 2q + 2kv; gate and product 4q."""
        norms = 2 * (self.q + self.kv) if self.qk_norm else 0
        gate = 4 * self.q if self.output_gate else 0
        return 4 * self.q + 4 * self.kv + 4 * self.heads + norms + gate

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        return (
            Linear("linear_qkv", hidden, self._projected, column=True),
            Linear("linear_proj", self.q, hidden, column=False),
        )


class Latent(Shape):
    """Multi-head latent attention of DeepSeek-V2 and V3; `q_rank` None means a direct query projection."""

    kind: Literal["mla"] = "mla"
    heads: int = Count
    q_rank: int | None = None
    kv_rank: int = Count
    nope_dim: int = Count
    rope_dim: int = Count
    value_dim: int = Count

    @property
    def kv_heads(self) -> int:
        """Every head has its own expanded key and value."""
        return self.heads

    @property
    def _qk(self) -> int:
        return self.heads * (self.nope_dim + self.rope_dim)

    @property
    def _down(self) -> int:
        return (self.q_rank or 0) + self.kv_rank + self.rope_dim

    def _up(self, hidden: int) -> int:
        query = (self.q_rank or hidden) * self._qk
        return query + self.kv_rank * self.heads * (self.nope_dim + self.value_dim)

    def matmul(self, hidden: int) -> int:
        return hidden * self._down + self._up(hidden) + self.heads * self.value_dim * hidden

    def split(self, hidden: int) -> int:
        return self._up(hidden) + self.heads * self.value_dim * hidden

    def replicated(self, hidden: int) -> int:
        """Down projections and latent norms stand on every tensor rank."""
        return hidden * self._down + (self.q_rank or 0) + self.kv_rank

    def core_flops(self, span: float) -> float:
        return 3 * (self._qk + self.heads * self.value_dim) * span

    def saved(self, hidden: int) -> int:
        """Latents before and after their norms, expanded Q and K, V and output, log-sum-exp."""
        latents = 4 * (self.q_rank or 0) + 4 * self.kv_rank + 2 * self.rope_dim
        return latents + self.expanded + 2 * self.heads * self.value_dim + 4 * self.heads

    @property
    def expanded(self) -> int:
        """Bytes per token of expanded Q, K and V, which recomputing the up projections spares."""
        return 4 * self._qk + 2 * self.heads * self.value_dim

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        query = (
            (
                Linear("linear_q_down_proj", hidden, self.q_rank, column=True),
                Linear("linear_q_up_proj", self.q_rank, self._qk, column=True),
            )
            if self.q_rank
            else (Linear("linear_q_proj", hidden, self._qk, column=True),)
        )
        expanded = self.heads * (self.nope_dim + self.value_dim)
        return (
            *query,
            Linear("linear_kv_down_proj", hidden, self.kv_rank + self.rope_dim, column=True),
            Linear("linear_kv_up_proj", self.kv_rank, expanded, column=True),
            Linear("linear_proj", self.heads * self.value_dim, hidden, column=False),
        )


class GatedDeltaNet(Shape):
    """Linear attention with a gated delta rule (Qwen3-Next, Qwen3.5, Qwen3.6)."""

    kind: Literal["gdn"] = "gdn"
    key_heads: int = Count
    value_heads: int = Count
    key_dim: int = Count
    value_dim: int = Count
    conv: int = Count

    @property
    def heads(self) -> int:
        return self.value_heads

    @property
    def kv_heads(self) -> int:
        return self.key_heads

    @property
    def _keys(self) -> int:
        return self.key_heads * self.key_dim

    @property
    def _values(self) -> int:
        return self.value_heads * self.value_dim

    @property
    def _mixed(self) -> int:
        return 2 * self._keys + self._values

    @property
    def _projected(self) -> int:
        return self._mixed + self._values + 2 * self.value_heads

    def matmul(self, hidden: int) -> int:
        return hidden * (self._projected + self._values)

    def split(self, hidden: int) -> int:
        """Projections, convolution, and one decay and one time-step bias per value head."""
        return self.matmul(hidden) + self.conv * self._mixed + 2 * self.value_heads

    def replicated(self, hidden: int) -> int:
        return self.value_dim

    def core_flops(self, span: float) -> float:
        """Convolution and recurrence: 6 * (conv * mixed + 4 * value_heads * value_dim^2)."""
        return 6 * (self.conv * self._mixed + 4 * self.value_heads * self.value_dim**2)

    def saved(self, hidden: int) -> int:
        """Mixed q, k, v before and after the convolution, gate, output, its norm, and one state per chunk.

        Derived from the operator; no published row tests it.
        """
        states = 2 * self.value_heads * self.key_dim * self.value_dim // STATE_CHUNK
        return 4 * self._mixed + 6 * self._values + 4 * self.value_heads + states

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        return (
            Linear("in_proj", hidden, self._projected, column=True),
            Linear("out_proj", self._values, hidden, column=False),
        )
