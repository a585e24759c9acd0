"""Stage 3, the normalizer: how do scores become weights? One file each; base.py says what a normalizer is.

Importing this package imports no PyTorch: a normalizer is imported when it is named.
"""

from typing import TYPE_CHECKING, Any

from regard.attention.axis import Axis

if TYPE_CHECKING:
    from regard.attention.normalizers.base import Draw as Draw
    from regard.attention.normalizers.base import Normalizer as Normalizer
    from regard.attention.normalizers.entmax import Entmax as Entmax
    from regard.attention.normalizers.hard import Hard as Hard
    from regard.attention.normalizers.none import Raw as Raw
    from regard.attention.normalizers.sigmoid import Sigmoid as Sigmoid
    from regard.attention.normalizers.softmax import Softmax as Softmax
    from regard.attention.normalizers.sparsemax import Sparsemax as Sparsemax

NORMALIZERS: "Axis[type[Normalizer]]" = Axis(
    "normalizer", __name__, question="how do scores become weights?", keyword="normalize"
)


def __getattr__(name: str) -> Any:
    return NORMALIZERS.exported(name)
