"""Stems: a source (tokens, an image or frames) as a sequence of vectors that any encoder takes.

For text the stem is `models/token_embedding.py`. Settings, which build the stem, are in `models/settings/sources/`.
"""

from typing import Protocol

from torch import Tensor


class Stem(Protocol):
    """A module that turns a source into vectors. An `AttributionPoint` in it shows where gradients are taken."""

    def read(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """source [B, ...] and its mask -> vectors [B, T, E] and their mask [B, T]."""
        ...
