"""What runs a search: PyTorch for every model; for Transformers on the processor our own C, or CTranslate2.

Imports none of them.
"""

import os
from collections.abc import Sequence
from typing import Protocol

from regard.data.vocabulary import Given
from regard.inference.results import Hypothesis, Search, Wish

NAMES = ("auto", "native", "ctranslate2", "torch")


def cores() -> int:
    """Processor cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # which not every system has
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


class Engine(Protocol):
    """A model ready to search."""

    name: str
    at_once: int  # source tokens, padding and beams counted, that are best searched together

    def refuses(self, how: Search) -> str:
        """Why it cannot search like this, in words; empty if it can."""
        ...

    def search(
        self, sources: Sequence[Given], how: Search, wishes: Sequence[Wish] | None = None
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source (tokens with the end, or an array), best first, `how.nbest` or fewer.

        wishes: what each output must be like; only PyTorch's engine is asked to grant them.
        """
        ...
