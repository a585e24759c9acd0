"""Attention in images: which channels matter, and where. Each maps any [B, C, H, W] to the same shape. One file each.

Each is its paper's equations. Importing this package imports no PyTorch.
"""

from typing import TYPE_CHECKING, Any

from regard.attention.axis import Axis

if TYPE_CHECKING:
    from regard.attention.channels.base import ImageAttention as ImageAttention
    from regard.attention.channels.cbam import CBAM as CBAM
    from regard.attention.channels.cbam import ChannelAttention as ChannelAttention
    from regard.attention.channels.cbam import SpatialAttention as SpatialAttention
    from regard.attention.channels.eca import ECA as ECA
    from regard.attention.channels.squeeze_excitation import SqueezeExcitation as SqueezeExcitation

CHANNELS: "Axis[type[ImageAttention]]" = Axis(
    "channel-attention", __name__, question="the same idea over the channels and positions of [B, C, H, W]"
)


def __getattr__(name: str) -> Any:
    return CHANNELS.exported(name)
