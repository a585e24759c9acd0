"""Learned positions (Gehring et al. 2017, arXiv:1705.03122)."""

from torch import Tensor, nn

from regard.attention.positions import POSITIONS
from regard.attention.positions.base import PositionEmbedding
from regard.errors import RegardError


@POSITIONS.register("learned")
class Learned(PositionEmbedding):
    """A table with one vector for each of the first `length` positions."""

    formula = "a table, one vector a position"
    summary = "a learned vector a position, joined to the embedding"
    paper = "Gehring et al. 2017, arXiv:1705.03122"
    use = "Learned(length, width)(x)"
    order = 2
    embeds = True

    @classmethod
    def create_embedding(cls, width: int, length: int) -> "Learned":
        return cls(length, width)

    def __init__(self, length: int, width: int, *, combine: str = "add") -> None:
        super().__init__(width, combine)
        if length < 1:
            raise RegardError(f"length: {length} is not a number of positions; it must be at least 1.")
        self.table = nn.Embedding(length, width)
        nn.init.normal_(self.table.weight, std=0.02)

    def embed(self, positions: Tensor) -> Tensor:
        length = self.table.num_embeddings
        if positions.numel() and not positions.is_meta and int(positions.max()) >= length:
            raise RegardError(
                f"x: position {int(positions.max())} is beyond the {length} positions that were learned; "
                f"shorten the input, or make Learned(length={int(positions.max()) + 1}, ...)."
            )
        vectors: Tensor = self.table(positions)
        return vectors
