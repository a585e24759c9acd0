"""Token embeddings: the table, its scale, positions, segments, normalization and dropout."""

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.attention.positions.base import position_embedding
from regard.models.attribution_point import AttributionPoint
from regard.models.dropout import Dropout
from regard.special_tokens import EOS

if TYPE_CHECKING:
    from regard.models.settings.components import StemOptions


class Embedding(nn.Module):
    """dropout(norm(scale * table[token] + position)), the norm only if there is one.

    position: the name of one that is joined to embeddings, such as "sinusoidal" or "learned" (for the first
    `max_positions`); others act inside attention. segments: of a text,
    each of which ends with EOS and adds an embedding of its own (Devlin et al. 2018, arXiv:1810.04805). count_back:
    segments are numbered from the last one back, and the EOS of each adds the sum of its tokens, as a vector of the
    whole sentence (Sukhbaatar et al. 2015, arXiv:1503.08895, section 4.1). sentences_only: `read` returns only
    these.
    """

    def __init__(
        self,
        vocabulary: int,
        width: int,
        *,
        scale: bool = False,
        position: str = "none",
        max_positions: int = 1024,
        dropout: float = 0.0,
        segments: int = 1,
        count_back: bool = False,
        sentences_only: bool = False,
        norm: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        self.scale = math.sqrt(width) if scale else 1.0
        self.attribution_point = AttributionPoint()
        self.position = position_embedding(position, width, max_positions)
        self.segment = nn.Parameter(torch.zeros(segments, width)) if segments > 1 else None
        self.count_back, self.sentences_only, self.norm = count_back, sentences_only, norm
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.weight, std=width**-0.5)
        if self.segment is not None:
            nn.init.normal_(self.segment, std=width**-0.5)

    @classmethod
    def from_options(cls, vocabulary: int, options: "StemOptions", **segments: Any) -> "Embedding":
        """The embedding that an encoder or a decoder requires. segments: `segments`, `count_back`, `sentences_only`."""
        return cls(
            vocabulary,
            options.width,
            scale=options.scale,
            position=options.position,
            max_positions=options.max_positions,
            dropout=options.dropout,
            norm=None if options.norm is None else options.norm(),
            **segments,
        )

    def forward(self, tokens: Tensor, *, offset: int = 0, positions: Tensor | None = None) -> Tensor:
        """tokens [B, T], the first at position `offset`, or all at these positions [B, T] -> [B, T, width]."""
        x = nn.functional.embedding(tokens, self.weight)
        if self.scale != 1:
            x = x * self.scale
        x = self.attribution_point(x)
        if self.segment is not None:
            index = self._segment_index(tokens, positions)
            if self.count_back:
                x = x + _sentence_sums(x, tokens)
            x = x + nn.functional.embedding(index, self.segment)
        if self.position is not None:
            x = self.position(x, offset=offset) if positions is None else x + self.position.embed(positions).to(x.dtype)
        dropped: Tensor = self.dropout(x if self.norm is None else self.norm(x))
        return dropped

    def _segment_index(self, tokens: Tensor, positions: Tensor | None) -> Tensor:
        """The segment of each token [B, T]. Texts packed into one row are distinguished by their positions."""
        assert self.segment is not None
        is_end = (tokens == EOS).long()
        index = is_end.cumsum(1) - is_end  # EOS belongs to the segment that it ends
        if positions is not None:
            first = torch.arange(tokens.shape[1], device=tokens.device) - positions
            index = index - index.gather(1, first)
        if self.count_back:
            index = is_end.sum(1, keepdim=True) - 1 - index
        return index.clamp(0, len(self.segment) - 1)

    def read(self, tokens: Tensor, mask: Tensor, positions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """tokens and mask [B, T] -> [B, T, width] and the mask; with sentences_only, the positions of EOS alone."""
        x = self(tokens, positions=positions)
        if not self.sentences_only:
            return x, mask
        is_end = tokens == EOS
        counts = is_end.sum(1)
        max_count = int(counts.max())
        present = torch.arange(max_count, device=x.device) < counts[:, None]
        index = is_end.long().sort(dim=1, descending=True, stable=True).indices[:, :max_count]
        return x.gather(1, index[..., None].expand(-1, -1, x.shape[2])) * present[..., None], present

    def sum_by_position(self, values: Tensor, tokens: Tensor) -> Tensor:
        """Values of tokens [B, T], summed over what `read` returns as one position."""
        if not self.sentences_only:
            return values
        is_end = (tokens == EOS).long()
        sums = values.new_zeros(len(values), int(is_end.sum(1).max()))
        return sums.scatter_add(1, is_end.cumsum(1) - is_end, values)


def _sentence_sums(x: Tensor, tokens: Tensor) -> Tensor:
    """[B, T, E], zero except at each EOS: the sum of the tokens x [B, T, E] of its segment, each weighted by its
    position, differently in each dimension, so that the order is not lost."""
    B, T, E = x.shape
    is_end = tokens == EOS
    segment = is_end.cumsum(1) - is_end.long()
    position = torch.arange(T, device=x.device).expand(B, T)
    last = torch.where(is_end, position, -1).cummax(1).values  # the last EOS up to this position
    first = torch.cat([last.new_full((B, 1), -1), last[:, :-1]], 1) + 1  # where the segment of each position starts
    count = x.new_zeros(B, T + 1).scatter_add(1, segment, (~is_end).to(x.dtype))  # tokens of each segment
    j = ((position - first + 1) / count.gather(1, segment).clamp_min(1))[..., None]
    k = torch.arange(1, E + 1, device=x.device, dtype=x.dtype) / E
    weighted = torch.where(is_end[..., None], 0, x * ((1 - j) - k * (1 - 2 * j)))
    sums = x.new_zeros(B, T + 1, E).scatter_add(1, segment[..., None].expand(B, T, E), weighted)
    return torch.where(is_end[..., None], sums.gather(1, segment[..., None].expand(B, T, E)), 0)
