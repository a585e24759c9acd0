"""Where gradients of the input are taken: the source as vectors, before positions are added."""

from torch import nn


class AttributionPoint(nn.Identity):
    """[B, T, E] -> the same. Every stem has one, so that `interpret/attribution.py` takes gradients of tokens, image
    cells and audio frames in the same way."""
