"""Tokens to vectors: the table, its scale, the places, and dropout."""

import math

import torch
from torch import Tensor, nn

from regard.attention import Learned, Sinusoidal
from regard.models.attribution_point import AttributionPoint
from regard.models.dropout import Dropout
from regard.special_tokens import END


class Embedding(nn.Module):
    """dropout(norm(scale * table[token] + place)), the norm only where there is one.

    `position` is "sinusoidal", "learned" (for the first `positions` places), or anything else for none. `segments`:
    parts of a text, each of which has an END and adds a vector of its own (Devlin et al. 2018, arXiv:1810.04805); with
    `recent` they are counted from the last one back, and the END of each adds the sum of its words, so that it stands
    for the whole sentence (Sukhbaatar et al. 2015, arXiv:1503.08895, section 4.1). `whole`: only these are read.
    """

    def __init__(
        self,
        vocabulary: int,
        width: int,
        *,
        scale: bool = False,
        position: str = "none",
        positions: int = 1024,
        dropout: float = 0.0,
        segments: int = 1,
        recent: bool = False,
        whole: bool = False,
        norm: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        self.scale = math.sqrt(width) if scale else 1.0
        self.attribution_point = AttributionPoint()
        self.place: Sinusoidal | Learned | None = None
        if position == "sinusoidal":
            self.place = Sinusoidal(width)
        elif position == "learned":
            self.place = Learned(positions, width)
        self.segment = nn.Parameter(torch.zeros(segments, width)) if segments > 1 else None
        self.recent, self.whole, self.norm = recent, whole, norm
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.weight, std=width**-0.5)
        if self.segment is not None:
            nn.init.normal_(self.segment, std=width**-0.5)

    def forward(self, tokens: Tensor, *, offset: int = 0, places: Tensor | None = None) -> Tensor:
        """tokens [B, T], the first at place `offset`, or at these places [B, T] -> [B, T, width]."""
        x = nn.functional.embedding(tokens, self.weight)
        if self.scale != 1:
            x = x * self.scale
        x = self.attribution_point(x)
        if self.segment is not None:
            parts = self._parts(tokens, places)
            if self.recent:
                x = x + _summed(x, tokens)
            x = x + nn.functional.embedding(parts, self.segment)
        if self.place is not None:
            x = self.place(x, offset=offset) if places is None else x + self.place.embed(places).to(x.dtype)
        dropped: Tensor = self.dropout(x if self.norm is None else self.norm(x))
        return dropped

    def _parts(self, tokens: Tensor, places: Tensor | None) -> Tensor:
        """Which vector each token [B, T] adds. Texts that share a row are told apart by their places."""
        assert self.segment is not None
        ends = (tokens == END).long()
        parts = ends.cumsum(1) - ends  # an end is of the part that it ends
        if places is not None:
            first = torch.arange(tokens.shape[1], device=tokens.device) - places
            parts = parts - parts.gather(1, first)
        if self.recent:
            parts = ends.sum(1, keepdim=True) - 1 - parts
        return parts.clamp(0, len(self.segment) - 1)

    def read(self, tokens: Tensor, mask: Tensor, places: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """tokens and mask [B, T] -> [B, T, width], and the mask as it is: what every stem has. Where only whole
        sentences are read, their ends alone."""
        x = self(tokens, places=places)
        if not self.whole:
            return x, mask
        ends = tokens == END
        counts = ends.sum(1)
        most = int(counts.max())
        there = torch.arange(most, device=x.device) < counts[:, None]
        index = ends.long().sort(dim=1, descending=True, stable=True).indices[:, :most]
        return x.gather(1, index[..., None].expand(-1, -1, x.shape[2])) * there[..., None], there

    def added(self, values: Tensor, tokens: Tensor) -> Tensor:
        """A number of each token [B, T], added up over what is read as one: [B, T], or of whole sentences fewer."""
        if not self.whole:
            return values
        ends = (tokens == END).long()
        sums = values.new_zeros(len(values), int(ends.sum(1).max()))
        return sums.scatter_add(1, ends.cumsum(1) - ends, values)


def _summed(x: Tensor, tokens: Tensor) -> Tensor:
    """[B, T, E], zero but at each END: the sum of the words x [B, T, E] of the part that it ends, each weighted by its
    place in a way that differs from number to number, so that the order is not lost."""
    B, T, E = x.shape
    ends = tokens == END
    part = ends.cumsum(1) - ends.long()
    there = torch.arange(T, device=x.device).expand(B, T)
    last = torch.where(ends, there, -1).cummax(1).values  # the newest end, this place included
    first = torch.cat([last.new_full((B, 1), -1), last[:, :-1]], 1) + 1  # where the part of each place begins
    count = x.new_zeros(B, T + 1).scatter_add(1, part, (~ends).to(x.dtype))  # words of each part
    j = ((there - first + 1) / count.gather(1, part).clamp_min(1))[..., None]
    k = torch.arange(1, E + 1, device=x.device, dtype=x.dtype) / E
    words = torch.where(ends[..., None], 0, x * ((1 - j) - k * (1 - 2 * j)))
    sums = x.new_zeros(B, T + 1, E).scatter_add(1, part[..., None].expand(B, T, E), words)
    return torch.where(ends[..., None], sums.gather(1, part[..., None].expand(B, T, E)), 0)
