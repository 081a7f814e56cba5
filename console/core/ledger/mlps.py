"""The feed-forward halves a layer can have: dense, and mixture of experts.

They answer the questions of `mixers`, with routed experts apart: those are cut by EP and ETP, not by TP, and
their optimizer state is sharded over the expert data-parallel ranks.
"""

from typing import Literal

from pydantic import Field

from console.core.ledger.mixers import Count, Linear, Shape


class DenseMlp(Shape):
    """Two or, when gated (SwiGLU), three matrices of hidden x ffn."""

    kind: Literal["dense"] = "dense"
    ffn: int = Count
    gated: bool = True

    def matmul(self, hidden: int) -> int:
        return (3 if self.gated else 2) * hidden * self.ffn

    def split(self, hidden: int) -> int:
        return self.matmul(hidden)

    def replicated(self, hidden: int) -> int:
        return 0

    def routed(self, hidden: int) -> int:
        return 0

    def active_routed(self, hidden: int) -> int:
        return 0

    def saved(self, hidden: int) -> int:
        """Gate and up 4f, their product 2f; a GELU MLP keeps 4f."""
        return (6 if self.gated else 4) * self.ffn

    def saved_routed(self, hidden: int) -> int:
        return 0

    @property
    def gate_up_gradient(self) -> int:
        """Bytes per token of the gradient of the gate and up output."""
        return 4 * self.ffn if self.gated else 2 * self.ffn

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        return (
            Linear("linear_fc1", hidden, (2 if self.gated else 1) * self.ffn, column=True),
            Linear("linear_fc2", self.ffn, hidden, column=False),
        )


class MoeMlp(Shape):
    """Routed SwiGLU experts, top-k per token, with optional shared experts (`shared_ffn` is their joint
    width).
    """

    kind: Literal["moe"] = "moe"
    experts: int = Count
    top_k: int = Count
    ffn: int = Count
    shared_ffn: int = Field(default=0, ge=0)
    shared_gate: bool = False

    def matmul(self, hidden: int) -> int:
        """Weights one token meets, without the router, which Megatron does not count."""
        return 3 * hidden * (self.top_k * self.ffn + self.shared_ffn)

    def split(self, hidden: int) -> int:
        return 3 * hidden * self.shared_ffn

    def replicated(self, hidden: int) -> int:
        return hidden * self.experts + (hidden if self.shared_gate else 0)

    def routed(self, hidden: int) -> int:
        return self.experts * self.expert(hidden)

    def active_routed(self, hidden: int) -> int:
        return self.top_k * self.expert(hidden)

    def expert(self, hidden: int) -> int:
        """Parameters of one expert."""
        return 3 * hidden * self.ffn

    def saved(self, hidden: int) -> int:
        return 6 * self.shared_ffn

    def saved_routed(self, hidden: int) -> int:
        """Dispatched input 2h and 6f for each of the top-k copies, dropless and balanced."""
        return self.top_k * (2 * hidden + 6 * self.ffn)

    @property
    def gate_up_gradient(self) -> int:
        return 4 * (self.top_k * self.ffn + self.shared_ffn)

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        """Shared experts only; the routed ones are `expert_linears`."""
        if not self.shared_ffn:
            return ()
        return (
            Linear("linear_fc1", hidden, 2 * self.shared_ffn, column=True),
            Linear("linear_fc2", self.shared_ffn, hidden, column=False),
        )

    def expert_linears(self, hidden: int) -> tuple[Linear, ...]:
        return (
            Linear("linear_fc1", hidden, 2 * self.ffn, column=True),
            Linear("linear_fc2", self.ffn, hidden, column=False),
        )
