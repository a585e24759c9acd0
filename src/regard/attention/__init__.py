"""The attention family: every score, extent, normalizer and position, through one function and one module.

    score(q, k)  ->  restrict (mask, extent)  ->  normalize  ->  sum(weights * v)

Start at reference.py, which says each mechanism in a few lines. `attend` is the function, `Attention` the module with
heads and projections, `plan` says which kernel would run and why.

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
    from regard.attention.functional import Attended as Attended
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
    from regard.attention.positions import Learned as Learned
    from regard.attention.positions import Sinusoidal as Sinusoidal
    from regard.attention.reinforce import Reinforce as Reinforce
    from regard.attention.relative_positions import T5 as T5
    from regard.attention.relative_positions import ALiBi as ALiBi
    from regard.attention.relative_positions import Rotary as Rotary
    from regard.attention.relative_positions import Shaw as Shaw
    from regard.attention.scores import Additive as Additive
    from regard.attention.scores import Bilinear as Bilinear
    from regard.attention.scores import Cosine as Cosine
    from regard.attention.scores import Dot as Dot
    from regard.attention.scores import Location as Location
    from regard.attention.scores import ScaledDot as ScaledDot

# Where each public name lives. Looked up on first use, so that `regard --help` and the catalog need no PyTorch.
_HOMES = {
    "cache": ["Cache"],
    "channels": ["CBAM", "ECA", "ChannelAttention", "SpatialAttention", "SqueezeExcitation"],
    "extents": ["Causal", "Global", "LocalMonotonic", "LocalPredictive", "Window"],
    "functional": ["Attended", "attend", "plan", "weights"],
    "heads": ["Attention"],
    "normalizers": ["Draw", "Entmax", "Hard", "Raw", "Sigmoid", "Softmax", "Sparsemax"],
    "planner": ["Plan"],
    "positions": ["Learned", "Sinusoidal"],
    "reinforce": ["Reinforce"],
    "relative_positions": ["ALiBi", "Rotary", "Shaw", "T5"],
    "scores": ["Additive", "Bilinear", "Cosine", "Dot", "Location", "ScaledDot"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
