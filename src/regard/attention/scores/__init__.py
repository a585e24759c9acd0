"""Stage 1, the score: how well does this key fit this query? One file each; base.py says what a score is.

Importing this package imports no PyTorch: a score is imported when it is named.
"""

from typing import TYPE_CHECKING, Any

from regard.attention.axis import Axis

if TYPE_CHECKING:
    from regard.attention.scores.additive import Additive as Additive
    from regard.attention.scores.base import LearnedScore as LearnedScore
    from regard.attention.scores.base import Pairwise as Pairwise
    from regard.attention.scores.base import PairwiseFunction as PairwiseFunction
    from regard.attention.scores.base import Score as Score
    from regard.attention.scores.bilinear import Bilinear as Bilinear
    from regard.attention.scores.cosine import Cosine as Cosine
    from regard.attention.scores.dot import Dot as Dot
    from regard.attention.scores.location import Location as Location
    from regard.attention.scores.scaled_dot import ScaledDot as ScaledDot

SCORES: "Axis[type[Score]]" = Axis("score", __name__, question="how well does this key fit this query?")


def __getattr__(name: str) -> Any:
    return SCORES.exported(name)
