"""Engines: what runs a search. PyTorch for every model, the native C library and CTranslate2 for some, on the CPU.

Imports none of them.
"""

import os
from collections.abc import Sequence
from typing import Protocol

from regard.data.vocabulary import Given
from regard.inference.results import Constraints, Hypothesis, SearchConfig

NAMES = ("auto", "native", "ctranslate2", "torch")


def cores() -> int:
    """CPU cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # which not every system has
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


class Engine(Protocol):
    """A model ready to search."""

    name: str
    batch_tokens: int  # source tokens, padding and beams counted, that are best searched together

    def unsupported_reason(self, config: SearchConfig) -> str:
        """Why it cannot search like this, in words; empty if it can."""
        ...

    def search(
        self, sources: Sequence[Given], config: SearchConfig, constraints: Sequence[Constraints] | None = None
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source (tokens with the end of sequence, or an array), best first.

        constraints: what each output must satisfy; only PyTorch's engine is given any.
        """
        ...
