"""Glossaries: finding their terms in a source text, and replacing the model's translations of them.

A model that has never seen a term translates it by other words. Word alignment by attention finds these words, and the
glossary's translation replaces them. Imports no PyTorch.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from regard.alignment.alignment_head import Weights
from regard.data.input_validation import normalize_whitespace
from regard.data.tokenizers.tokenizer import SPACE
from regard.data.word_links import word_indices
from regard.errors import RegardError

BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True)
class TermMatch:
    """A term of the glossary in a text, and its translation."""

    start: int  # character offsets in the text
    end: int
    target: str


def read_glossary(path: Path) -> dict[str, str]:
    """Terms and their translations, from a table. Raises RegardError if the file is not one of these."""
    from regard.data.example import Layout
    from regard.data.readers import read_pairs

    if path.suffix.lower() not in (".tsv", ".csv", ".jsonl"):
        raise RegardError(f"--glossary: {path} must be a .tsv, .csv or .jsonl of terms: source and target.")
    terms: dict[str, str] = {}
    for example in read_pairs(path, Layout()):
        if example.problem or not example.source.strip() or not example.target.strip():
            raise RegardError(
                f"{path}, line {example.line}: {example.problem or 'a side is empty'}; a line has two terms."
            )
        terms[example.source.strip()] = example.target.strip()
    return terms


def find_terms(text: str, glossary: Mapping[str, str]) -> list[TermMatch]:
    """All matches of terms, in order; of overlapping ones the longest. Case is ignored. Terms match only as whole words
    in scripts that separate words."""
    found: list[TermMatch] = []
    rest = text
    for term in sorted(glossary, key=len, reverse=True):
        plain = normalize_whitespace(term)
        if not plain:
            continue
        before = r"(?<!\w)" if _is_word_delimited(plain[0]) else ""
        after = r"(?!\w)" if _is_word_delimited(plain[-1]) else ""
        for match in re.finditer(before + re.escape(plain) + after, rest, re.IGNORECASE):
            found.append(TermMatch(match.start(), match.end(), glossary[term]))
            rest = rest[: match.start()] + "\n" * (match.end() - match.start()) + rest[match.end() :]
    return sorted(found, key=lambda match: match.start)


def _is_word_delimited(letter: str) -> bool:
    """Whether the letter's script separates words: only scripts with case and digits surely do."""
    return letter.isdigit() or letter.upper() != letter.lower()


def required_counts(terms: Sequence[TermMatch]) -> dict[str, int]:
    """How often the output must have each translation."""
    targets = [term.target for term in terms]
    return {target: targets.count(target) for target in targets}


def replace_aligned_terms(
    tokens: Sequence[int],
    weights: Weights,
    pieces: tuple[Sequence[str], Sequence[str]],
    glossary: Mapping[str, str],
    translations: Mapping[str, Sequence[int]],
) -> list[int] | None:
    """Target tokens with the glossary's translation of every term instead of the model's; None if one is not found.

    tokens: of the target. weights [Tt, Ts]: of the alignment head. pieces: of source and target. All have the
    end-of-sequence token. translations: the tokens of each of the glossary's targets.
    """
    source, target = pieces[0][:-1], pieces[1][:-1]
    text, piece_of_character = _text_of_pieces(source)
    terms = find_terms(text, glossary)
    if not terms or any(BYTE_PIECE.fullmatch(piece) for piece in source) or not target:
        return None
    columns, rows = np.array(word_indices(source)), np.array(word_indices(target))
    by_word = np.zeros((rows[-1] + 1, columns[-1] + 1))
    # Punctuation attends to punctuation, which says nothing about the words beside it.
    is_query, is_key = (np.array([not _is_punctuation(piece) for piece in side]) for side in (target, source))
    word_weights = weights[: len(target), : len(source)] * is_query[:, None] * is_key[None]
    np.add.at(by_word, (rows[:, None], columns[None, :]), word_weights)
    output = list(tokens)
    spans: list[tuple[int, int, str]] = []
    for term in terms:
        source_words = {int(columns[at]) for at in set(piece_of_character[term.start : term.end])}
        span = _aligned_span(by_word, source_words, rows, target)
        if span is None:
            return None
        spans.append((*span, term.target))
    spans.sort()
    if any(first[1] > second[0] for first, second in pairwise(spans)):
        return None  # two terms are aligned to the same words
    for start, end, translation in reversed(spans):
        output[start:end] = translations[translation]
    return output


def _text_of_pieces(pieces: Sequence[str]) -> tuple[str, list[int]]:
    """The text, and the index of the piece that each of its characters belongs to."""
    letters = [(letter, at) for at, piece in enumerate(pieces) for letter in piece.replace(SPACE, " ")]
    return "".join(letter for letter, _ in letters), [at for _, at in letters]


def _aligned_span(
    by_word: Weights, source_words: set[int], rows: Weights, target: Sequence[str]
) -> tuple[int, int] | None:
    """The start and end of the target pieces that are aligned to these source words; None if there are none.

    by_word: weights [target words, source words]. rows: the target word of each target piece.
    """
    weight = by_word[:, sorted(source_words)].sum(1)
    aligned = [word for word in range(len(by_word)) if int(by_word[word].argmax()) in source_words]
    if not aligned:
        return None
    first = last = max(aligned, key=lambda word: weight[word])
    while first - 1 in aligned:
        first -= 1
    while last + 1 in aligned:
        last += 1
    positions = [position for position in range(len(target)) if first <= rows[position] <= last]
    # Punctuation at the edges belongs to the sentence, not to the term.
    while len(positions) > 1 and _is_punctuation(target[positions[-1]]):
        positions.pop()
    while len(positions) > 1 and _is_punctuation(target[positions[0]]):
        positions.pop(0)
    return positions[0], positions[-1] + 1


def _is_punctuation(piece: str) -> bool:
    return all(unicodedata.category(letter)[0] == "P" for letter in piece.replace(SPACE, "") or "x")
