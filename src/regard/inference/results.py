"""What is asked of a search, and what comes out. Imports no PyTorch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from regard.errors import RegardError
from regard.views.notebook import CapturedView

STEP = 32  # limits on length are multiples of this, so that sources of like length share one
SMALL = 1000  # entries of a vocabulary in which the end is always among the likeliest words


@dataclass(frozen=True)
class Hypothesis:
    """One finished output: its tokens with the end, log-probability, and the score it is ranked by."""

    tokens: list[int]
    log_probability: float
    score: float


@dataclass(frozen=True)
class Sampling:
    """Words drawn by their probabilities instead of the best taken.

    temperature: below 1 surer, above 1 wilder. top_k: only among the k likeliest (Fan et al. 2018, arXiv:1805.04833).
    top_p: only among the fewest that together have this probability (Holtzman et al. 2019, arXiv:1904.09751). The same
    seed and source give the same draw, in any company.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.temperature < 100:
            raise RegardError(f"temperature: {self.temperature} is not possible; it must be above 0 and below 100.")
        if self.top_k < 0:
            raise RegardError(f"top_k: {self.top_k} is not possible; it must be at least 1, or 0 for all words.")
        if not 0 < self.top_p <= 1:
            raise RegardError(f"top_p: {self.top_p} is not possible; it must be above 0 and at most 1.")


@dataclass(frozen=True)
class Search:
    """How to search.

    beam: hypotheses kept; 1 is greedy. length_penalty: scores are log p / length^penalty; 0 compares plain sums.
    coverage_penalty: weight of sum log min(attention a source word got, 1) (Wu et al. 2016, arXiv:1609.08144), which
    ranks the finished hypotheses of models that attend. longest: tokens at most, for each source token (`per_token`)
    and in all. patient: search on after `beam` hypotheses have ended, while one that goes on is ahead of them; where
    the vocabulary is small, bad ends are found long before the good one. no_repeat: no run of so many tokens comes
    twice. groups: of the beam, each of which pays `diversity` for a word that an earlier group has just said
    (Vijayakumar et al. 2016, arXiv:1610.02424). forbidden: words and phrases that are not said. sampling: draw instead
    of searching for the best. relative: tokens at most for each source token, to the letter. single: one token is
    said, a class, and nothing else here matters but nbest.
    """

    beam: int = 5
    length_penalty: float = 1.0
    coverage_penalty: float = 0.0
    nbest: int = 1
    per_token: float = 2.0
    longest: int = 256
    patient: bool = True
    no_repeat: int = 0
    groups: int = 1
    diversity: float = 0.5
    forbidden: tuple[str, ...] = ()
    sampling: Sampling | None = None
    relative: float | None = None
    single: bool = False

    def __post_init__(self) -> None:
        if self.single:
            return
        if self.sampling is None and (self.beam < 1 or not 1 <= self.nbest <= self.beam):
            raise RegardError(
                f"beam: {self.beam} is not possible with the best {self.nbest} wanted; it must be at least that many."
            )
        if self.nbest < 1:
            raise RegardError(f"nbest: {self.nbest} is not possible; it must be at least 1.")
        if self.no_repeat < 0:
            raise RegardError(
                f"no_repeat: {self.no_repeat} is not possible; it must be at least 1, or 0 for never mind."
            )
        if self.groups < 1 or self.beam % self.groups:
            raise RegardError(f"groups: {self.groups} do not divide the beam of {self.beam}.")

    @property
    def beyond(self) -> str:
        """What it asks for beyond greedy and beam search, in words; empty if nothing."""
        for asked, what in (
            (self.coverage_penalty, "penalty on coverage"),
            (self.sampling, "draws"),
            (self.groups > 1, "diverse beams"),
            (self.forbidden, "forbidden words"),
            (self.no_repeat, "ban on repetition"),
        ):
            if asked:
                return what
        return ""

    def limit(self, source_length: int) -> int:
        """The most tokens for a source so long, the end included."""
        if not self.per_token:  # there is no source to be as long as
            return max(1, self.longest)
        if self.relative is not None:
            return max(1, min(self.longest, math.ceil(self.relative * source_length)))
        wanted = int(self.per_token * source_length) + 20
        return max(1, min(self.longest, -(-wanted // STEP) * STEP))


@dataclass(frozen=True)
class Wish:
    """What one source's output must be like.

    prefix: the tokens it begins with. required: sequences of tokens that must be in it. counted: tokens that must be in
    it exactly so often, such as those that stand for placeholders. most: its tokens at most, the end included.
    """

    prefix: tuple[int, ...] = ()
    required: tuple[tuple[int, ...], ...] = ()
    counted: Mapping[int, int] = field(default_factory=dict)
    most: int | None = None

    def __bool__(self) -> bool:
        return bool(self.prefix or self.required or self.counted or self.most)


@dataclass(frozen=True)
class Other:
    """Another hypothesis."""

    text: str
    score: float
    tokens: list[int]


@dataclass(frozen=True)
class Result:
    """What a model makes of one text."""

    source: str
    text: str
    score: float
    source_tokens: list[int]
    tokens: list[int]
    others: list[Other] = field(default_factory=list)  # the next best, if asked for
    parts: int = 1  # in which it was translated: more where it is longer than the model reads
    token_scores: list[float] | None = None  # log-probability of each token, if asked for
    attention: CapturedView | None = None  # every layer and head, if asked for
    alignment: list[tuple[int, int]] | None = None  # (source word, target word), from 0, if asked for
    missing: list[str] = field(default_factory=list)  # placeholders and terms that could not be kept
    wrong: str = ""  # why there is no translation, in words

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the page of its attention, if that was asked for."""
        return None if self.attention is None else self.attention._repr_html_()
