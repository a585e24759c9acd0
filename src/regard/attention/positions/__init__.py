"""Positions: how does attention learn where things are? One file each; base.py says what a position is.

Some go into the embeddings, before attention (sinusoidal, learned); the others act inside it: rotary rotates queries
and keys; ALiBi, T5 and Shaw add a term to the score. Those depend on the distance between two positions only, so what
is learned at one position holds at every other. Importing this package imports no PyTorch.
"""

from typing import TYPE_CHECKING, Any

from regard.attention.axis import Axis

if TYPE_CHECKING:
    from regard.attention.positions.alibi import ALiBi as ALiBi
    from regard.attention.positions.base import Position as Position
    from regard.attention.positions.base import PositionEmbedding as PositionEmbedding
    from regard.attention.positions.learned import Learned as Learned
    from regard.attention.positions.rotary import Rotary as Rotary
    from regard.attention.positions.shaw import Shaw as Shaw
    from regard.attention.positions.sinusoidal import Sinusoidal as Sinusoidal
    from regard.attention.positions.t5 import T5 as T5

POSITIONS: "Axis[type[Position] | type[PositionEmbedding]]" = Axis(
    "position", __name__, question="how does attention learn where things are?"
)


def __getattr__(name: str) -> Any:
    return POSITIONS.exported(name)
