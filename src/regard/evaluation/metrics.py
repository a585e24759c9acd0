"""Scores of outputs against references: BLEU, chrF and TER by sacrebleu, exact match, error rates, ROUGE, CIDEr-D.

Papineni et al. 2002; Popović 2015; Snover et al. 2006; Post 2018 (arXiv:1804.08771); Lin 2004.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from regard.errors import RegardError
from regard.evaluation.cider import cider
from regard.evaluation.tagging_f1 import name_f1, right_tags

BY_SACREBLEU = ("bleu", "bleu1", "bleu2", "bleu3", "chrf", "ter")
References = Sequence[Sequence[str]]  # one list of all sentences for each set of references


@dataclass(frozen=True)
class Score:
    """A number, and how it was computed."""

    name: str
    value: float
    signature: str = ""
    higher_is_better: bool = True


def _sacrebleu(name: str, tokenize: str | None, short: bool = False) -> Any:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if name.startswith("bleu"):
        # force: text that is tokenised already is scored as it is, without a warning for every sentence
        order = int(name.removeprefix("bleu") or 4)
        return BLEU(tokenize=tokenize, force=True, effective_order=short, max_ngram_order=order)
    return CHRF() if name == "chrf" else TER()


def corpus_score(
    name: str, outputs: Sequence[str], references: References, tokenize: str | None = None, *, short: bool = False
) -> Score:
    """The score of this name over all sentences. `tokenize` is BLEU's: none, 13a, zh, char, ...

    `short`: BLEU leaves out the lengths of word groups that no output has (its effective order), for few or short
    sentences.
    """
    if not outputs:
        raise RegardError("there is nothing to score.")
    for number, each in enumerate(references, 1):
        if len(each) != len(outputs):
            raise RegardError(f"reference {number} has {len(each):,} sentences and the output {len(outputs):,}.")
    if name in BY_SACREBLEU:
        metric = _sacrebleu(name, tokenize, short)
        result = metric.corpus_score(list(outputs), [list(each) for each in references])
        return Score(name, float(result.score), str(metric.get_signature()), name != "ter")
    if name == "cider":
        own = cider(outputs, references)
        return Score(name, 100 * sum(own) / len(own), "CIDEr-D, times 100; words between blanks")
    if name in BY_SETS:
        of_all, about = BY_SETS[name]
        return Score(name, 100 * of_all(outputs, references[0]), about)
    function, higher = PER_SENTENCE[name]
    if name in ("cer", "wer"):
        return Score(name, _error_rate(outputs, references, name == "wer"), "edits / reference length", False)
    per_sentence = [
        max(function(o, r) for r in rs) for o, rs in zip(outputs, zip(*references, strict=True), strict=True)
    ]
    return Score(name, 100 * sum(per_sentence) / len(per_sentence), "mean over sentences", higher)


def edits(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Insertions, deletions and substitutions that turn one into the other (Levenshtein 1966)."""
    if len(a) < len(b):
        a, b = b, a
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1]


def _error_rate(outputs: Sequence[str], references: References, words: bool) -> float:
    """Edits against the nearest reference, over its length, of all sentences together, in percent."""
    counts = [
        nearest(output, several, words=words)
        for output, several in zip(outputs, zip(*references, strict=True), strict=True)
    ]
    return 100 * sum(pair[0] for pair in counts) / max(1, sum(pair[1] for pair in counts))


def nearest(output: str, references: Sequence[str], *, words: bool) -> tuple[int, int]:
    """Edits to the nearest of several references, and that one's length, in words or in characters."""
    cut: Callable[[str], Sequence[str]] = str.split if words else str
    return min(((edits(cut(output), cut(each)), len(cut(each))) for each in references), key=lambda pair: pair[0])


def exact(output: str, reference: str) -> float:
    """1 if they are equal but for white space at the ends."""
    return float(output.strip() == reference.strip())


def _overlap(a: Counter[Any], b: Counter[Any]) -> float:
    """F1 of two bags."""
    common = sum((a & b).values())
    return 2 * common / (sum(a.values()) + sum(b.values())) if common else 0.0


def macro_f1(outputs: Sequence[str], references: Sequence[str]) -> float:
    """The mean of each class's F1, over the classes that are in the references."""
    said, right = Counter(outputs), Counter(references)
    hits = Counter(o for o, r in zip(outputs, references, strict=True) if o == r)
    return sum(2 * hits[label] / (said[label] + right[label]) for label in right) / len(right)


def rouge_n(output: str, reference: str, n: int) -> float:
    """F1 of n-grams of lower-cased words."""
    bags = []
    for text in (output, reference):
        words = text.lower().split()
        bags.append(Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)))
    return _overlap(*bags)


def rouge_l(output: str, reference: str) -> float:
    """F1 of the longest common subsequence of lower-cased words."""
    a, b = output.lower().split(), reference.lower().split()
    row = [0] * (len(b) + 1)
    for x in a:
        corner = 0
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], corner + 1 if x == y else max(row[j], row[j - 1])
    return 2 * row[-1] / (len(a) + len(b)) if row[-1] else 0.0


def _answer(text: str) -> list[str]:
    """The words of an answer, as SQuAD compares them: without case, punctuation and articles."""
    kept = "".join(letter for letter in text.lower() if unicodedata.category(letter)[0] not in "PS")
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def span_f1(output: str, reference: str) -> float:
    """F1 of an answer's words (Rajpurkar et al. 2016, arXiv:1606.05250); without any, whether both are."""
    said, right = _answer(output), _answer(reference)
    return _overlap(Counter(said), Counter(right)) if said and right else float(said == right)


PER_SENTENCE: dict[str, tuple[Callable[[str, str], float], bool]] = {
    "exact": (exact, True),
    "cer": (lambda o, r: edits(o, r) / max(1, len(r)), False),
    "wer": (lambda o, r: edits(o.split(), r.split()) / max(1, len(r.split())), False),
    "rouge1": (lambda o, r: rouge_n(o, r, 1), True),
    "rouge2": (lambda o, r: rouge_n(o, r, 2), True),
    "rougeL": (rouge_l, True),
    "span_exact": (lambda o, r: float(_answer(o) == _answer(r)), True),
    "span_f1": (span_f1, True),
}
# Of a whole set, each output against one reference.
BY_SETS: dict[str, tuple[Callable[[Sequence[str], Sequence[str]], float], str]] = {
    "f1": (macro_f1, "mean over classes"),
    "tags": (right_tags, "percent of all tags"),
    "names": (name_f1, "F1 of whole names"),
}
NAMES = (*BY_SACREBLEU, *PER_SENTENCE, "cider", *BY_SETS)
