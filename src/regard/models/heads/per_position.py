"""A prediction at every position of the source, as in BERT (Devlin et al. 2018, arXiv:1810.04805).

There is no search: all positions are predicted at once, from the encoder's output alone.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.models.outputs import DecoderOutput, EncoderOutput
from regard.models.transformer_layers import apply_activation

if TYPE_CHECKING:
    from regard.models.settings._per_position import PerPositionHeadSettings


class PerPositionHead(nn.Module):
    """Memory -> features [B, Ts, E] of every position."""

    def __init__(self, settings: "PerPositionHeadSettings", memory_width: int) -> None:
        super().__init__()
        E = settings.embedding_width
        self.activation = settings.activation
        self.inner = nn.Linear(memory_width, E) if settings.dense or memory_width != E else None
        self.norm = nn.LayerNorm(E, eps=settings.norm_epsilon or 1e-5) if settings.dense else None
        if self.inner is not None:
            nn.init.xavier_uniform_(self.inner.weight)
            nn.init.zeros_(self.inner.bias)
        # Next-sentence prediction: the pooler and the classifier of BERT.
        next_sentence = settings.next_sentence_prediction
        self.pooler = nn.Linear(memory_width, memory_width) if next_sentence else None
        self.next_sentence = nn.Linear(memory_width, 2) if next_sentence else None

    def forward(self, targets: Tensor, memory: EncoderOutput, *, need_weights: bool = False) -> DecoderOutput:
        """targets, which are ignored -> features of every position."""
        x = memory.states
        if self.inner is not None:
            x = self.inner(x)
        if self.norm is not None:
            x = self.norm(apply_activation(self.activation, x))
        return DecoderOutput(x)

    def next_sentence_logits(self, states: Tensor) -> Tensor:
        """[N, M] at beginning-of-sequence tokens -> logits [N, 2]: the second segment follows the first, or not."""
        assert self.pooler is not None
        assert self.next_sentence is not None
        logits: Tensor = self.next_sentence(torch.tanh(self.pooler(states)))
        return logits
