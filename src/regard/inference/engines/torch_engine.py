"""Every model and every search, in PyTorch."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from regard.alignment.shortlist import Shortlist
from regard.data.batching import given
from regard.data.vocabulary import Given
from regard.inference.engines.int8_quantization import quantize_model
from regard.inference.engines.shortlisted_model import Narrowed
from regard.inference.results import Hypothesis, Search, Wish
from regard.inference.search import search
from regard.inference.search.greedy import Heard
from regard.runs.bundle import Bundle


class TorchEngine:
    """A model in PyTorch, on any device."""

    name = "torch"
    at_once = 8192

    def __init__(self, bundle: Bundle, shortlist: Shortlist | None = None, *, low: bool = False) -> None:
        """low: linear layers in int8."""
        self.bundle, self._shortlist = bundle, shortlist
        self._model = quantize_model(bundle.model) if low else bundle.model
        self._pieces = bundle.target_side.pieces(range(len(bundle.target_side)))

    def refuses(self, how: Search) -> str:
        """Nothing."""
        return ""

    def search(
        self,
        sources: Sequence[Given],
        how: Search,
        wishes: Sequence[Wish] | None = None,
        heard: Heard | None = None,
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source. heard: is told every token as it is said."""
        device = next(self.bundle.model.parameters()).device
        source, mask = (each.to(device) for each in given(self.bundle.source_side, sources))
        if self._shortlist is None or any(wishes or ()) or how.forbidden:
            return search(self._model, source, mask, how, wishes, self._pieces, heard)
        # Each source with its own words: those of its company would change what it gets.
        own = [self._shortlist.of(each) for each in sources]
        words = np.unique(np.concatenate(own))
        allowed = torch.from_numpy(np.stack([np.isin(words, each) for each in own])).to(device)
        narrow: Any = Narrowed(self._model, torch.from_numpy(words).long().to(device), allowed)
        found = search(narrow, source, mask, how)
        return [[replace(h, tokens=[int(words[token]) for token in h.tokens]) for h in each] for each in found]
