"""The attention of DeepSeek-V4: one wide key-value head, low-rank query and output, compressed long range.

A layer is one of three by its compress ratio: 0 sliding window only, 4 window plus top-k selected compressed
keys found by an indexer, 128 window plus all heavily compressed keys. Parameter shapes are those of
transformers' `DeepseekV4ForCausalLM`; FLOPs those of Megatron-Bridge `flop_utils.py`. Hyper-connections keep
`streams` copies of the residual and are counted with the layer.
"""

from typing import Literal

from console.core.ledger.mixers import Count, Linear, Shape


class V4Attention(Shape):
    """One DeepSeek-V4 attention layer with its compressor, indexer and hyper-connections."""

    kind: Literal["dsv4"] = "dsv4"
    heads: int = Count
    head_dim: int = Count
    rope_dim: int = Count
    q_rank: int = Count
    out_rank: int = Count
    out_groups: int = Count
    window: int = Count
    ratio: Literal[0, 4, 128]
    index_heads: int = Count
    index_dim: int = Count
    index_top_k: int = Count
    streams: int = Count

    @property
    def kv_heads(self) -> int:
        return 1

    @property
    def _q(self) -> int:
        return self.heads * self.head_dim

    @property
    def _latent_out(self) -> int:
        return self.out_groups * self.out_rank

    @property
    def _compressed_width(self) -> int:
        """Output width of the compressor's two projections: doubled where windows overlap (ratio 4)."""
        return {0: 0, 4: 2 * self.head_dim, 128: self.head_dim}[self.ratio]

    def _index_matmul(self, hidden: int) -> int:
        if self.ratio != 4:
            return 0
        queries = self.q_rank * self.index_heads * self.index_dim
        return queries + hidden * (4 * self.index_dim + self.index_heads)

    def matmul(self, hidden: int) -> int:
        query = self.q_rank * (hidden + self._q)
        output = self._q * self.out_rank + self._latent_out * hidden
        compressor = 2 * hidden * self._compressed_width
        return query + hidden * self.head_dim + output + compressor + self._index_matmul(hidden)

    def split(self, hidden: int) -> int:
        """Nothing: training of this attention supports tp 1 only."""
        return 0

    def replicated(self, hidden: int) -> int:
        norms = self.q_rank + self.head_dim + self.heads
        compressor = self.ratio * self._compressed_width + (self.head_dim if self.ratio else 0)
        indexer = 4 * 2 * self.index_dim + self.index_dim if self.ratio == 4 else 0
        return self.matmul(hidden) + norms + compressor + indexer + 2 * self._mixing(hidden)

    def _mixing(self, hidden: int) -> int:
        """One hyper-connection: it reads all streams and yields streams * (streams + 2) weights, and 3
        scales.
        """
        outputs = self.streams * (self.streams + 2)
        return outputs * self.streams * hidden + outputs + 3

    def head_mixing(self, hidden: int) -> int:
        """The hyper-connection that joins the streams before the output layer."""
        return self.streams * self.streams * hidden + self.streams + 1

    def core_flops(self, span: float) -> float:
        """Two products per attended key, window and compressed; the indexer scores every fourth key."""
        keys, scores = float(self.window), 0.0
        if self.ratio == 128:
            keys += span / 128 / 2
        elif self.ratio == 4:
            selected = min(self.index_top_k, span / 4)
            keys += selected * (1 - 2 * selected / span)
            scores = self.index_heads * self.index_dim * span / 4
        return 6 * (2 * self._q * keys + scores)

    def saved(self, hidden: int) -> int:
        """Latents with their norms, Q, output, grouped latent output, one key-value, residual streams.

        Derived from the operator; no published row tests it.
        """
        attention = 4 * self.q_rank + 4 * self._q + 4 * self.head_dim + 4 * self.heads + 2 * self._latent_out
        return attention + 4 * self._compressed_width + 4 * self.streams * hidden

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        return (
            Linear("linear_q_down_proj", hidden, self.q_rank, column=True),
            Linear("linear_q_up_proj", self.q_rank, self._q, column=True),
            Linear("linear_kv_proj", hidden, self.head_dim, column=True),
            Linear("linear_proj", self._latent_out, hidden, column=False),
        )
