"""The point at which what is read has become vectors, one for each place, and nothing yet says where it stands."""

from torch import nn


class AttributionPoint(nn.Identity):
    """[B, T, E] as they are. Every stem has one, so that what a model does with a word, a cell or a moment can be asked
    in the same way of all: here is where gradients are taken (`interpret/attribution.py`)."""
