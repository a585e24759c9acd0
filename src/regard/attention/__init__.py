"""The attention family: every score, extent, normalizer and position, through one function and one module.

    score(q, k)  ->  restrict (mask, extent)  ->  normalize  ->  sum(weights * v)

Start at reference.py, which specifies each mechanism in a few lines. `attend` is the function, `Attention` the module
with heads and projections; `plan` returns which kernel would run and why.

Letters used for shapes everywhere: B batch, H query heads, G key-value heads, Tq queries, Tk keys, D width of queries
and keys, Dv of values, A hidden width of an additive score. Masks: True = may attend; floats are added.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.attention.cache import Cache as Cache
    from regard.attention.channels import CBAM as CBAM
    from regard.attention.channels import ECA as ECA
    from regard.attention.channels import ChannelAttention as ChannelAttention
    from regard.attention.channels import SpatialAttention as SpatialAttention
    from regard.attention.channels import SqueezeExcitation as SqueezeExcitation
    from regard.attention.extents import Causal as Causal
    from regard.attention.extents import Global as Global
    from regard.attention.extents import LocalMonotonic as LocalMonotonic
    from regard.attention.extents import LocalPredictive as LocalPredictive
    from regard.attention.extents import Window as Window
    from regard.attention.functional import AttentionOutput as AttentionOutput
    from regard.attention.functional import attend as attend
    from regard.attention.functional import plan as plan
    from regard.attention.functional import weights as weights
    from regard.attention.heads import Attention as Attention
    from regard.attention.normalizers import Draw as Draw
    from regard.attention.normalizers import Entmax as Entmax
    from regard.attention.normalizers import Hard as Hard
    from regard.attention.normalizers import Raw as Raw
    from regard.attention.normalizers import Sigmoid as Sigmoid
    from regard.attention.normalizers import Softmax as Softmax
    from regard.attention.normalizers import Sparsemax as Sparsemax
    from regard.attention.planner import Plan as Plan
    from regard.attention.positions import T5 as T5
    from regard.attention.positions import ALiBi as ALiBi
    from regard.attention.positions import Learned as Learned
    from regard.attention.positions import Rotary as Rotary
    from regard.attention.positions import Shaw as Shaw
    from regard.attention.positions import Sinusoidal as Sinusoidal
    from regard.attention.reinforce import Reinforce as Reinforce
    from regard.attention.scores import Additive as Additive
    from regard.attention.scores import Bilinear as Bilinear
    from regard.attention.scores import Cosine as Cosine
    from regard.attention.scores import Dot as Dot
    from regard.attention.scores import Location as Location
    from regard.attention.scores import ScaledDot as ScaledDot

# The module of each public name. Imported on first use, so that `regard --help` and the catalog need no PyTorch.
# Classes in the folders of an axis are found there.
_MODULES = {
    "cache": ["Cache"],
    "channels.cbam": ["ChannelAttention", "SpatialAttention"],
    "functional": ["AttentionOutput", "attend", "plan", "weights"],
    "heads": ["Attention"],
    "normalizers.base": ["Draw"],
    "planner": ["Plan"],
    "reinforce": ["Reinforce"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    if name == "__all__":
        return __dir__()
    if name[:1].isupper():  # a class; modules of this package are imported as usual
        from regard.attention.catalog import AXES

        for axis in AXES.values():
            if name in axis.class_names():
                return axis.exported(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from regard.attention.catalog import AXES

    return sorted([*_MODULE_OF, *(name for axis in AXES.values() for name in axis.class_names())])
