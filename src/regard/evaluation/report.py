"""A model judged on a test set: scores, by source length, speed; as data, as a table, as a picture."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.evaluation.metrics import References, Score, corpus_score
from regard.inference.options import Options
from regard.inference.translator import Translator

FEW = 5  # sentences in a bucket, below which its score says nothing


@dataclass(frozen=True)
class Outputs:
    """What a model said to every source, and how fast."""

    texts: list[str]
    seconds: float
    tokens: int  # that it wrote
    long: int  # sources that are longer than the model reads, and were translated in parts
    engine: str  # what ran it
    wrong: int = 0  # sources that could not be read, to which nothing was said
    why: str = ""  # the first of them could not be


@dataclass(frozen=True)
class Bucket:
    """Sources of like length, in words (or characters, where words are not separated)."""

    shortest: int
    longest: int
    count: int
    value: float


def run_model(translator: Translator, sources: Sequence[Any], options: Options, done: Callable[[int], None]) -> Outputs:
    """Translate everything; sources are texts, or files of a model that reads these."""
    began = time.perf_counter()
    results = translator.results(sources, options, done=done)
    tokens = sum(len(result.tokens) for result in results)
    long = sum(result.parts > 1 for result in results)
    wrong = [result for result in results if result.wrong]
    if len(wrong) == len(results):
        raise RegardError(f"{wrong[0].source}: {wrong[0].wrong}.")
    texts = [result.text for result in results]
    why = f"{wrong[0].source}: {wrong[0].wrong}" if wrong else ""
    return Outputs(texts, time.perf_counter() - began, tokens, long, translator.why, len(wrong), why)


def scores(names: Sequence[str], outputs: Sequence[str], references: References, tokenize: str) -> list[Score]:
    """Each of the measures asked for."""
    return [corpus_score(name, outputs, references, tokenize) for name in names]


def lengths(sources: Sequence[str]) -> tuple[str, list[int]]:
    """The sources' lengths in "words", or in "characters" where words are not separated, and which of the two."""
    words = [len(source.split()) for source in sources]
    characters = [len(source) for source in sources]
    alone = max(words, default=0) <= 1 and len(set(characters)) > 1
    return ("characters", characters) if alone else ("words", words)


def by_length(
    name: str, sources: Sequence[str], outputs: Sequence[str], references: References, tokenize: str, buckets: int = 6
) -> list[Bucket]:
    """The score of shorter and longer sources: buckets of about equally many sentences."""
    _, of_each = lengths(sources)
    ranked = sorted(of_each)
    edges = sorted({ranked[max(0, part * len(ranked) // buckets - 1)] for part in range(1, buckets + 1)})
    groups: list[list[int]] = []
    below = 0
    for edge in edges:
        chosen = [number for number, length in enumerate(of_each) if below <= length <= edge]
        below = edge + 1
        if groups and min(len(chosen), len(groups[-1])) < FEW:  # too few to say something: with their neighbours
            groups[-1] += chosen
        elif chosen:
            groups.append(chosen)
    found: list[Bucket] = []
    for chosen in (group for group in groups if len(group) >= FEW):
        some = [outputs[number] for number in chosen]
        theirs = [[each[number] for number in chosen] for each in references]
        value = corpus_score(name, some, theirs, tokenize, short=True).value
        found.append(Bucket(min(of_each[n] for n in chosen), max(of_each[n] for n in chosen), len(chosen), value))
    return found


def confusions(outputs: Sequence[str], references: Sequence[str]) -> list[tuple[str, str, int]]:
    """Which class was taken for which, and how often; the most frequent mistakes first."""
    wrong = Counter((r, o) for o, r in zip(outputs, references, strict=True) if o != r)
    return [(right, said, count) for (right, said), count in wrong.most_common()]


def draw_by_length(name: str, series: dict[str, list[Bucket]], path: Path) -> None:
    """Scores over source length, a line for each model, into a PNG."""
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
    axes.set(xlabel="length of the source", ylabel=name)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path)
