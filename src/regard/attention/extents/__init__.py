"""Stage 2, the extent: which keys may this query attend to? One file each; base.py says what an extent is.

Importing this package imports no PyTorch: an extent is imported when it is named.
"""

from typing import TYPE_CHECKING, Any

from regard.attention.axis import Axis

if TYPE_CHECKING:
    from regard.attention.extents.base import Extent as Extent
    from regard.attention.extents.base import KeyRange as KeyRange
    from regard.attention.extents.causal import Causal as Causal
    from regard.attention.extents.global_ import Global as Global
    from regard.attention.extents.local_m import LocalMonotonic as LocalMonotonic
    from regard.attention.extents.local_p import LocalPredictive as LocalPredictive
    from regard.attention.extents.window import Window as Window

EXTENTS: "Axis[type[Extent]]" = Axis("extent", __name__, question="which keys may this query attend to?")


def __getattr__(name: str) -> Any:
    return EXTENTS.exported(name)
