"""What search and prediction return. Imports no PyTorch."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.data.series.forecast import SeriesForecast
from regard.views.notebook import AttentionView


@dataclass(frozen=True)
class Hypothesis:
    """One finished output: its tokens with the end of sequence, log-probability, and the score it is ranked by."""

    tokens: list[int]
    log_probability: float
    score: float


@dataclass(frozen=True)
class Alternative:
    """A hypothesis that was not ranked first."""

    text: str
    score: float
    tokens: list[int]


@dataclass(frozen=True)
class Result:
    """What a model predicts for one input."""

    source: str
    text: str
    score: float
    source_tokens: list[int]
    tokens: list[int]
    alternatives: list[Alternative] = field(default_factory=list)  # the next best, on request
    chunk_count: int = 1  # chunks that it was translated in, more than one if it was split
    token_scores: list[float] | None = None  # log-probability of each token, on request
    attention: AttentionView | None = None  # every layer and head, on request
    alignment: list[tuple[int, int]] | None = None  # (source word, target word), from 0, on request
    missing: list[str] = field(default_factory=list)  # placeholders and terms that could not be kept
    forecast: "list[SeriesForecast] | None" = None  # of each series, of a model that forecasts
    vector: NDArray[np.float32] | None = None  # [width], of a model that embeds texts
    notes: list[str] = field(default_factory=list)  # what was changed or assumed in reading the input
    error: str = ""  # why there is no output, as a clause

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the page of its attention, if it was requested."""
        return None if self.attention is None else self.attention._repr_html_()
