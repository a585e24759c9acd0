"""Classification: the encoder's output pooled into one vector, by attention from a learned query, and a layer on it.

Attention pooling: Yang et al. 2016 (Hierarchical attention networks); the query is their context vector. Any score of
the family can be used.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.attention import Attention, Hard
from regard.attention.normalizers import Normalizer
from regard.attention.scores import SCORES
from regard.models.dropout import Dropout
from regard.models.outputs import DecoderOutput, EncoderOutput

if TYPE_CHECKING:
    from regard.models.settings.decoders.pooling import PoolingHeadSettings


@dataclass(frozen=True)
class PoolingState:
    """The pooled features of a source."""

    features: Tensor  # [B, E]

    def select(self, index: Tensor, *, same_sources: bool = False) -> "PoolingState":
        """The batch entries of this index."""
        return PoolingState(self.features.index_select(0, index))


class PoolingHead(nn.Module):
    """Memory -> features [B, 1, E] of the class."""

    def __init__(self, settings: "PoolingHeadSettings", memory_width: int) -> None:
        super().__init__()
        self.pool, self.encoder_state, self.activation = settings.pool, settings.encoder_state, settings.activation
        M = memory_width
        self.attention: Attention | None = None
        if settings.pool == "attention":
            normalize: str | Normalizer = Hard("gumbel") if settings.normalize == "hard" else settings.normalize
            self.query = nn.Parameter(torch.empty(settings.width))
            self.attention = Attention(
                settings.width,
                heads=settings.heads,
                key_width=M,
                score=settings.score,
                normalize=normalize,
                project="vo" if SCORES.get(settings.score).projects else "kvo",
                output_width=M,
            )
            nn.init.normal_(self.query)
        input_width = M * ((settings.pool != "none") + settings.encoder_state)
        self.inner = nn.Linear(input_width, settings.embedding_width)
        self.dropout = Dropout(settings.dropout)
        nn.init.xavier_uniform_(self.inner.weight)
        nn.init.zeros_(self.inner.bias)

    def forward(self, targets: Tensor, memory: EncoderOutput, *, need_weights: bool = False) -> DecoderOutput:
        """targets [B, 1], which are ignored -> features of the class."""
        pooled, weights = [], None
        if self.attention is not None:
            query = self.query.expand(len(memory.states), 1, -1)
            attended = self.attention(
                query, memory.states, memory.values, mask=memory.attention_mask, need_weights=need_weights
            )
            pooled.append(attended.output[:, 0])
            weights = attended.weights
        elif self.pool == "mean":
            share = memory.mask.to(memory.values.dtype)
            pooled.append(torch.einsum("btm,bt->bm", memory.values, share) / share.sum(1, keepdim=True).clamp_min(1))
        elif self.pool == "first":
            pooled.append(memory.values[:, 0])
        elif self.pool == "max":
            pooled.append(memory.values.masked_fill(~memory.mask[..., None], -torch.inf).amax(1))
        if self.encoder_state:
            pooled.append(memory.pooled)
        inner = self.inner(self.dropout(torch.cat(pooled, -1)))
        features = self.dropout(torch.tanh(inner) if self.activation == "tanh" else torch.relu(inner))
        return DecoderOutput(features[:, None], [weights] if weights is not None else [])

    def start(self, memory: EncoderOutput) -> PoolingState:
        """Compute the features; there is only one step."""
        return PoolingState(self(torch.empty(0), memory).features[:, 0])

    def step(self, tokens: Tensor, state: PoolingState) -> tuple[Tensor, PoolingState]:
        """Features of the class."""
        return state.features, state
