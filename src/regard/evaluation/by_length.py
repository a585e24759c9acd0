"""Scores by source length: as numbers, and as a plot."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.evaluation.bleu_tokenizers import HAN, KANA, SOUTHEAST_ASIAN, is_written_without_spaces
from regard.evaluation.metrics import References, corpus_score

MIN_BUCKET_SIZE = 5  # sentences; the score of fewer is too noisy

# A character of a script without spaces is a word here; elsewhere, what white space separates is.
_UNSPACED = "".join(script.pattern[1:-1] for script in (HAN, KANA, SOUTHEAST_ASIAN))
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")


@dataclass(frozen=True)
class Bucket:
    """Sources of similar length, and the score of their outputs."""

    shortest: int
    longest: int
    count: int
    value: float


def source_lengths(sources: Sequence[str]) -> tuple[str, list[int]]:
    """The unit, "words" or "characters", and each source's length in it.

    Characters are counted where the script does not separate words, or where every source is a single word. In other
    texts, a character of a script without spaces counts as a word.
    """
    words = [len(_WORD.findall(source)) for source in sources]
    characters = [sum(not character.isspace() for character in source) for source in sources]
    single_words = max((len(source.split()) for source in sources), default=0) <= 1 and len(set(characters)) > 1
    if single_words or is_written_without_spaces(sources):
        return "characters", characters
    return "words", words


def score_by_length(
    metric: str,
    sources: Sequence[str],
    outputs: Sequence[str],
    references: References,
    tokenize: str | None,
    buckets: int = 6,
) -> list[Bucket]:
    """The score of shorter and longer sources, in buckets of about equally many sentences."""
    _, lengths = source_lengths(sources)
    found: list[Bucket] = []
    for chosen in _group_by_length(lengths, buckets):
        bucket_outputs = [outputs[number] for number in chosen]
        bucket_references = [[each[number] for number in chosen] for each in references]
        value = corpus_score(metric, bucket_outputs, bucket_references, tokenize).value
        found.append(Bucket(min(lengths[n] for n in chosen), max(lengths[n] for n in chosen), len(chosen), value))
    return found


def _group_by_length(lengths: Sequence[int], buckets: int) -> list[list[int]]:
    """Indices of sources of similar length; groups that are too small are merged with their neighbors."""
    ranked = sorted(lengths)
    edges = sorted({ranked[max(0, number * len(ranked) // buckets - 1)] for number in range(1, buckets + 1)})
    groups: list[list[int]] = []
    lowest = 0
    for edge in edges:
        chosen = [number for number, length in enumerate(lengths) if lowest <= length <= edge]
        lowest = edge + 1
        if groups and min(len(chosen), len(groups[-1])) < MIN_BUCKET_SIZE:
            groups[-1] += chosen
        elif chosen:
            groups.append(chosen)
    return [group for group in groups if len(group) >= MIN_BUCKET_SIZE]


def plot_by_length(metric: str, series: Mapping[str, Sequence[Bucket]], path: Path) -> None:
    """Write a PNG with the scores over source length, a line for each system."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    styles: list[dict[str, Any]] = [
        {"color": "#0b62a3", "marker": "o"},
        {"color": "#c05a00", "marker": "s", "ls": "--"},
    ]
    for (label, buckets), style in zip(series.items(), styles, strict=False):
        middle = [(bucket.shortest + bucket.longest) / 2 for bucket in buckets]
        axes.plot(middle, [bucket.value for bucket in buckets], label=label, **style)
    axes.set(xlabel="length of the source", ylabel=metric)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path)
