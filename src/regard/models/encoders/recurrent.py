"""The recurrent encoder: GRU or LSTM layers, in one direction or both.

Bidirectional as in Bahdanau et al. 2014 (arXiv:1409.0473, section 3.2): each annotation is [forward; backward].
Reversed source: Sutskever et al. 2014 (arXiv:1409.3215, section 3.3). The pyramid, in which each layer but the first
joins two positions: Chan et al. 2015 (Listen, attend and spell, arXiv:1508.01211).
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.models.dropout import Dropout
from regard.models.outputs import EncoderOutput
from regard.models.recurrent_layers import Cell, initialize, reverse_sequences

if TYPE_CHECKING:
    from regard.models.settings.encoders.recurrent import RecurrentEncoderSettings
    from regard.models.stems import Stem


class RecurrentEncoder(nn.Module):
    """tokens [B, T] -> EncoderOutput with states [B, T, M], M = D or 2 D."""

    def __init__(self, settings: "RecurrentEncoderSettings", stem: "Stem") -> None:
        super().__init__()
        self.reverse = settings.reverse
        self.pyramid = settings.pyramid
        self.embedding = stem
        directions = 2 if settings.bidirectional else 1
        self.memory_width = directions * settings.width
        # A pyramid's layers join two positions.
        inner_width = self.memory_width * (2 if settings.pyramid else 1)
        widths = [settings.embedding_width] + [inner_width] * (settings.layers - 1)
        self.forward_cells = nn.ModuleList(Cell(settings.cell, width, settings.width) for width in widths)
        backward_widths = widths if settings.bidirectional else []
        self.backward_cells = nn.ModuleList(Cell(settings.cell, width, settings.width) for width in backward_widths)
        self.dropout = Dropout(settings.dropout)
        initialize(self, settings.initialization)

    def forward(self, tokens: Tensor, mask: Tensor, *, need_weights: bool = False) -> EncoderOutput:
        """tokens and mask [B, T] -> EncoderOutput. Padding at the end has no effect. There are no weights."""
        embedded, mask = self.embedding.read(tokens, mask)
        lengths = mask.sum(1)
        x = embedded.transpose(0, 1)  # [T, B, E]
        if self.reverse:
            x = reverse_sequences(x, lengths)
        last_step = (lengths - 1).clamp_min(0), torch.arange(len(mask), device=mask.device)
        memory_like = x[0]  # [B, E]: the batch's size, type and device
        final_states: list[Tensor] = []
        for layer, forward_cell in enumerate(self.forward_cells):
            if layer:
                x = self.dropout(x)
                if self.pyramid:
                    x, mask = _join_neighbors(x, mask)
                    lengths = mask.sum(1)
                    last_step = (lengths - 1).clamp_min(0), last_step[1]
            assert isinstance(forward_cell, Cell)
            outputs = forward_cell.sequence(forward_cell.inputs(x), forward_cell.zero(memory_like))
            final_states = [outputs[last_step]]
            if self.backward_cells:
                backward_cell = self.backward_cells[layer]
                assert isinstance(backward_cell, Cell)
                backward_outputs = backward_cell.sequence(
                    backward_cell.inputs(reverse_sequences(x, lengths)), backward_cell.zero(memory_like)
                )
                final_states.append(backward_outputs[last_step])
                outputs = torch.cat([outputs, reverse_sequences(backward_outputs, lengths)], -1)
            x = outputs
        if self.reverse:
            x = reverse_sequences(x, lengths)
        states = x.transpose(0, 1)  # [B, T, M]
        return EncoderOutput(states=states, mask=mask, pooled=torch.cat(final_states, -1), values=states)


def _join_neighbors(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """[T, B, M] -> [T / 2, B, 2 M], two neighbors joined; padding is zero."""
    x = x * mask.T[..., None]
    if len(x) % 2:
        x = torch.cat([x, torch.zeros_like(x[:1])])
    return torch.cat([x[::2], x[1::2]], -1), mask[:, ::2]
