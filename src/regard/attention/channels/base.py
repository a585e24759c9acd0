"""What attention in images is: a module from [B, C, H, W] to the same shape."""

from typing import Any, ClassVar

from torch import Tensor, nn

from regard.errors import RegardError


class ImageAttention(nn.Module):
    """One choice of attention over channels, positions or both."""

    name: ClassVar[str]  # set by registering; the class's own name otherwise
    formula: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    use: ClassVar[str] = ""
    order: ClassVar[int]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = cls.__name__

    @classmethod
    def create(cls, channels: int, reduction: int) -> "ImageAttention":
        """A new one for so many channels. reduction: of the width of its hidden layer, if it has one."""
        return cls(channels)


def hidden_width(channels: int, reduction: int) -> int:
    """Of the network between channels and channels. Raises RegardError for what is no size."""
    for name, size in (("channels", channels), ("reduction", reduction)):
        if size < 1:
            raise RegardError(f"{name}: {size} is not possible; it must be at least 1.")
    return max(1, channels // reduction)


def check_image(x: Tensor, channels: int | None) -> None:
    """Raise RegardError if this is no image batch of so many channels."""
    if x.ndim != 4:
        raise RegardError(f"x: expected an image batch [B, C, H, W], got {tuple(x.shape)}.")
    if channels is not None and x.shape[1] != channels:
        raise RegardError(f"x: {x.shape[1]} channels do not fit a module made for {channels}.")
    if 0 in x.shape[1:]:
        raise RegardError(f"x: an image of shape {tuple(x.shape)} has no positions.")
