"""How to search: settings, and constraints on the output for each source. Imports no PyTorch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from regard.errors import RegardError

LENGTH_STEP = 32  # length limits are multiples of this, so that sources of similar length share one
SMALL_VOCABULARY = 1000  # entries, below which the end-of-sequence token is always among the most likely ones


@dataclass(frozen=True)
class Sampling:
    """Tokens sampled by their probabilities.

    temperature: below 1 is more predictable, above 1 more varied. top_k: only among the k most likely tokens (Fan et
    al. 2018, arXiv:1805.04833). top_p: only among the fewest that together have this probability (Holtzman et al. 2019,
    arXiv:1904.09751). The same seed and source give the same sample, whatever else is in the batch.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1


@dataclass(frozen=True)
class SearchConfig:
    """How to search.

    beam: beam size. length_penalty: scores are log p / length^penalty; 0 compares plain sums. coverage_penalty:
    weight of sum log min(attention that a source token got, 1) (Wu et al. 2016, arXiv:1609.08144), which ranks the
    finished hypotheses of models that attend. max_length: output tokens at most, and for each source token at most
    `tokens_per_source_token`. patient: search on after `beam` hypotheses have ended, while an unfinished one is ahead
    of them; in a small vocabulary, bad hypotheses end long before the good one. no_repeat_ngram_size: no run of so many
    tokens occurs twice. beam_groups: of the beam, each of which pays `diversity_penalty` for a token that an earlier
    group has just chosen (Vijayakumar et al. 2016, arXiv:1610.02424). forbidden: words and phrases that are not in the
    output. max_length_ratio: tokens for each source token at most, set explicitly. search: the algorithm's name; chosen
    by the other fields if empty.
    """

    beam: int = 5
    length_penalty: float = 1.0
    coverage_penalty: float = 0.0
    nbest: int = 1
    tokens_per_source_token: float = 2.0
    max_length: int = 256
    patient: bool = True
    no_repeat_ngram_size: int = 0
    beam_groups: int = 1
    diversity_penalty: float = 0.5
    forbidden: tuple[str, ...] = ()
    sampling: Sampling | None = None
    max_length_ratio: float | None = None
    search: str = ""

    def __post_init__(self) -> None:
        if not self.search:
            name = "sampling" if self.sampling is not None else "greedy" if self.beam == 1 else "beam"
            object.__setattr__(self, "search", name)
        if self.search in ("beam", "greedy") and self.nbest > self.beam:
            raise RegardError(f"beam: {self.beam} is too small to return the best {self.nbest}; make it at least that.")
        if self.beam % self.beam_groups:
            raise RegardError(f"beam_groups: {self.beam_groups} groups do not divide a beam of {self.beam}.")

    @property
    def width(self) -> int:
        """Hypotheses of a source that are searched side by side."""
        return self.nbest if self.sampling is not None else self.beam

    @property
    def beyond_beam_search(self) -> str:
        """The first option beyond plain greedy and beam search, as a phrase; empty if there is none."""
        for needed, what in (
            (self.coverage_penalty, "coverage penalty"),
            (self.sampling, "sampling"),
            (self.beam_groups > 1, "diverse beam search"),
            (self.forbidden, "forbidden words"),
            (self.no_repeat_ngram_size, "ban on repeated n-grams"),
            (self.search not in ("beam", "greedy"), f"search {self.search!r}"),
        ):
            if needed:
                return what
        return ""

    def limit(self, source_length: int) -> int:
        """The maximum output length for a source of this length, in tokens, the end of sequence included."""
        if not self.tokens_per_source_token:  # there is no source
            return max(1, self.max_length)
        if self.max_length_ratio is not None:
            return max(1, min(self.max_length, math.ceil(self.max_length_ratio * source_length)))
        expected = int(self.tokens_per_source_token * source_length) + 20
        return max(1, min(self.max_length, -(-expected // LENGTH_STEP) * LENGTH_STEP))


@dataclass(frozen=True)
class Constraints:
    """What the output for one source must satisfy.

    prefix: the tokens it begins with. required: sequences of tokens that it must contain. counts: tokens with how often
    exactly they must occur, such as symbols for placeholders. max_length: in tokens, the end of sequence included.
    """

    prefix: tuple[int, ...] = ()
    required: tuple[tuple[int, ...], ...] = ()
    counts: Mapping[int, int] = field(default_factory=dict)
    max_length: int | None = None

    def __bool__(self) -> bool:
        return bool(self.prefix or self.required or self.counts or self.max_length)
