"""What a search is: an algorithm over any decoder, through `start` and `step` alone. Imports no PyTorch.

The algorithms are in `search/`, found by name; `batch_search.py` runs them. A source whose search has finished leaves
the batch. Every algorithm is batch-invariant: the output for a source does not depend on the other sources of a batch.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regard.inference.results import Hypothesis
from regard.inference.search_config import SearchConfig
from regard.registry import Registry

if TYPE_CHECKING:
    from regard.inference.search.constraints import OutputConstraints
    from regard.models.outputs import EncoderOutput
    from regard.models.seq2seq import Seq2Seq

OnToken = Callable[[list[int], list[int]], None]  # rows of the batch, and the token that each has just generated


@dataclass(frozen=True)
class SearchInput:
    """A batch of sources to search outputs for.

    keys: bytes that identify each source, which sampling is seeded by. on_token: called with every token as it is
    generated, by algorithms that never revise one.
    """

    model: "Seq2Seq"
    encoded: "EncoderOutput"
    constraints: "OutputConstraints"
    config: SearchConfig
    keys: Sequence[bytes] = field(default_factory=list)
    on_token: OnToken | None = None


class SearchAlgorithm(ABC):
    """One algorithm.

    streams: it never revises a token, so tokens can be reported as they are generated. automatic: the task or other
    options choose it, never the option `search`. ignores: decoding options that it does not use, so that setting one
    is an error.
    """

    streams: bool = False
    automatic: bool = False
    ignores: tuple[str, ...] = ("temperature", "top_k", "top_p", "seed")

    @abstractmethod
    def search(self, search_input: SearchInput) -> list[list[Hypothesis]]:
        """Hypotheses of each source, in any order."""


HELPERS = ("batch_search", "stepwise", "constraints", "coverage_penalty", "prefill")
SEARCHES: Registry[type[SearchAlgorithm]] = Registry(
    "search", "regard.inference.search", deferred=True, helpers=HELPERS
)


def ignored_options(name: str) -> tuple[str, ...]:
    """The decoding options that a search does not use. Imports no algorithm of the package."""
    if name in SEARCHES.builtin_names():
        constants = SEARCHES.declaration(name).constants
    else:
        constants = {"ignores": SEARCHES.get(name).ignores}
    ignores: tuple[str, ...] = constants.get("ignores", SearchAlgorithm.ignores)
    return ignores


def selectable_searches() -> list[str]:
    """The names that the option `search` takes. Imports no algorithm."""
    automatic = {
        name for name in SEARCHES.builtin_names() if SEARCHES.declaration(name).constants.get("automatic", False)
    }
    return [name for name in SEARCHES if name not in automatic]
