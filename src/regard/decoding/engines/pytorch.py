"""Every model and every search, in PyTorch."""

from collections.abc import Sequence

from regard.data.batches import padded
from regard.decoding.bundle import Bundle
from regard.decoding.results import Hypothesis, Search, Wish
from regard.decoding.searches import search
from regard.tokens import PAD


class TorchEngine:
    """A model in PyTorch, on any device."""

    name = "torch"
    at_once = 8192

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self._pieces = bundle.target_subwords.pieces(range(len(bundle.target_subwords)))

    def refuses(self, how: Search) -> str:
        """Nothing."""
        return ""

    def search(
        self, sources: Sequence[Sequence[int]], how: Search, wishes: Sequence[Wish] | None = None
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source."""
        device = next(self.bundle.model.parameters()).device
        source = padded([list(each) for each in sources]).to(device)
        return search(self.bundle.model, source, source != PAD, how, wishes, self._pieces)
