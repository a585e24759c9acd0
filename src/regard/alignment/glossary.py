"""A glossary: which of its terms a text has, and their translations put where the model's own words for them stand.

A model that has never seen a term translates it by other words. Attention says which: those are taken out, and the
glossary's are put in their place. Imports no PyTorch.
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

BYTE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True)
class Term:
    """What a text says somewhere, and what must be said of it."""

    start: int  # characters of the text
    end: int
    target: str


def read_glossary(path: Path) -> dict[str, str]:
    """The terms of a table and their translations. Raises RegardError for what is no such table."""
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


def terms_in(text: str, glossary: Mapping[str, str]) -> list[Term]:
    """Every place of a term, in order: of overlapping ones the longest, whatever their case, as whole words where words
    are separated."""
    found: list[Term] = []
    rest = text
    for term in sorted(glossary, key=len, reverse=True):
        plain = normalize_whitespace(term)
        if not plain:
            continue
        before = r"(?<!\w)" if _separated(plain[0]) else ""
        after = r"(?!\w)" if _separated(plain[-1]) else ""
        for match in re.finditer(before + re.escape(plain) + after, rest, re.IGNORECASE):
            found.append(Term(match.start(), match.end(), glossary[term]))
            rest = rest[: match.start()] + "\n" * (match.end() - match.start()) + rest[match.end() :]
    return sorted(found, key=lambda each: each.start)


def _separated(letter: str) -> bool:
    return letter.isdigit() or letter.upper() != letter.lower()


def counts(terms: Sequence[Term]) -> dict[str, int]:
    """How often each target must be said."""
    wanted = [term.target for term in terms]
    return {target: wanted.count(target) for target in wanted}


def spliced(
    tokens: Sequence[int],
    aligned: Weights,
    pieces: tuple[Sequence[str], Sequence[str]],
    glossary: Mapping[str, str],
    translations: Mapping[str, Sequence[int]],
) -> list[int] | None:
    """Target tokens with every term's translation in place of the model's own; None where that cannot be told.

    tokens: of the target. aligned: [target, source] weights. pieces: of source and target. All with their ends.
    translations: the tokens of each of the glossary's targets.
    """
    source, target = pieces[0][:-1], pieces[1][:-1]
    text, owner = _text(source)
    terms = terms_in(text, glossary)
    if not terms or any(BYTE.fullmatch(piece) for piece in source) or not target:
        return None
    columns, rows = np.array(word_indices(source)), np.array(word_indices(target))
    by_word = np.zeros((rows[-1] + 1, columns[-1] + 1))
    # A comma looks at a comma, which says nothing of the words they stand behind.
    looks, seen = (np.array([not _is_punctuation(piece) for piece in side]) for side in (target, source))
    weights = aligned[: len(target), : len(source)] * looks[:, None] * seen[None]
    np.add.at(by_word, (rows[:, None], columns[None, :]), weights)
    found = list(tokens)
    places: list[tuple[int, int, str]] = []
    for term in terms:
        own = {int(columns[at]) for at in set(owner[term.start : term.end])}
        place = _place(by_word, own, rows, target)
        if place is None:
            return None
        places.append((*place, term.target))
    places.sort()
    if any(first[1] > second[0] for first, second in pairwise(places)):
        return None  # two terms have one translation: nobody knows which word is whose
    for start, end, said in reversed(places):
        found[start:end] = translations[said]
    return found


def _text(pieces: Sequence[str]) -> tuple[str, list[int]]:
    """What pieces say, and the piece that each character is of."""
    letters = [(letter, at) for at, piece in enumerate(pieces) for letter in piece.replace(SPACE, " ")]
    return "".join(letter for letter, _ in letters), [at for _, at in letters]


def _place(by_word: Weights, own: set[int], rows: Weights, target: Sequence[str]) -> tuple[int, int] | None:
    """From which target piece to which the model speaks of these source words; None if it does not."""
    weight = by_word[:, sorted(own)].sum(1)
    of_it = [word for word in range(len(by_word)) if int(by_word[word].argmax()) in own]
    if not of_it:
        return None
    best = max(of_it, key=lambda word: weight[word])
    first = last = best
    while first - 1 in of_it:
        first -= 1
    while last + 1 in of_it:
        last += 1
    at = [place for place in range(len(target)) if first <= rows[place] <= last]
    # Punctuation at its edges belongs to the sentence, not to the term.
    while len(at) > 1 and _is_punctuation(target[at[-1]]):
        at.pop()
    while len(at) > 1 and _is_punctuation(target[at[0]]):
        at.pop(0)
    return at[0], at[-1] + 1


def _is_punctuation(piece: str) -> bool:
    return all(unicodedata.category(letter)[0] == "P" for letter in piece.replace(SPACE, "") or "x")
