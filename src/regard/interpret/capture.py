"""Captured attention from the weights of one forced pass."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from regard.alignment.aligner import find_alignment_head
from regard.alignment.alignment_head import AlignmentHead
from regard.alignment.lexicon import Lexicon
from regard.data.media import AudioMedium, ImageMedium, Medium, NoMedium
from regard.data.pairs import PairDataset
from regard.data.placeholders import restore
from regard.data.target_languages import language_of
from regard.data.vocabulary import Given, SourceSide, Vocabulary
from regard.interpret.captured import SPACE, Axis, Captured, Kind, Shown, Weights
from regard.interpret.forced_pass import AT_ONCE, forced
from regard.runs.bundle import Bundle
from regard.special_tokens import BEGIN, END, MASK_SIGN

if TYPE_CHECKING:
    pass

GAP = "___"  # how what is to be guessed is shown
JUDGED = 500  # examples that a layer and a head are chosen by


def axis(subwords: Vocabulary, tokens: Sequence[int], originals: tuple[str, ...] = ()) -> Axis:
    """Tokens with their mark, and the placeholders that symbols among them stand for."""
    labels = [restore(piece, originals) for piece in subwords.pieces(tokens)]
    if not subwords.has_eos:
        return Axis(tuple(label.removeprefix(SPACE) for label in labels), (False,) * len(labels), "labels")
    inside = len(tokens) - 1
    between = [token == END and at < inside for at, token in enumerate(tokens)]  # the end of a part, not of all
    labels = [label.replace(MASK_SIGN, GAP) for label in labels]
    shown = ["|" if divides else label for divides, label in zip(between, labels, strict=True)]
    languages = [language_of(label.removeprefix(SPACE)) for label in labels]
    # A blank before a language's sign is part of it.
    signs = [
        bool(said) or (label == SPACE and bool(then))
        for label, said, then in zip(labels, languages, [*languages[1:], ""], strict=True)
    ]
    marks = [
        (token in (BEGIN, END) and not divides) or sign
        for token, divides, sign in zip(tokens, between, signs, strict=True)
    ]
    return Axis(
        tuple(f"<{said}>" if said else label for label, said in zip(shown, languages, strict=True)), tuple(marks)
    )


def source_axis(side: SourceSide, given: Given, count: int, originals: tuple[str, ...]) -> tuple[Axis, Shown | None]:
    """The places of a source, so many if that is known, and what is shown of one that is no text."""
    if not isinstance(side, Medium):
        if count and count != len(given):  # sentences are its places, not words
            texts = side.decode(_ended(given))
            return Axis(tuple(restore(text, originals) for text in texts), (False,) * len(texts), "sentences"), None
        return axis(side, given, originals), None
    if isinstance(side, ImageMedium):
        grid = side.settings.grid
        labels = tuple(f"{at // grid + 1}, {at % grid + 1}" for at in range(count))
        return Axis(labels, (False,) * count, "cells"), Shown("picture", side.reshape(np.asarray(given)))
    if isinstance(side, NoMedium):
        return Axis((), ()), None
    assert isinstance(side, AudioMedium)
    frames = side.reshape(np.asarray(given))
    seconds = len(frames) * side.settings.hop / max(1, count)
    labels = tuple(f"{at * seconds:.2f} s" for at in range(count))
    shades = ((np.clip(frames.astype(np.float32), -2, 3) + 2) * 51).astype(np.uint8)
    return Axis(labels, (False,) * count, "frames"), Shown("spectrogram", shades, seconds * count)


def _ended(tokens: Sequence[int]) -> list[list[int]]:
    """The parts of a source, each up to its end."""
    parts: list[list[int]] = [[]]
    for token in tokens:
        parts[-1].append(token)
        if token == END:
            parts.append([])
    return parts[:-1]


def captured(
    sides: tuple[SourceSide, Vocabulary],
    tokens: tuple[Given, Sequence[int]],
    weights: dict[Kind, list[Weights]],
    *,
    choice: AlignmentHead | None = None,
    originals: tuple[str, ...] = (),
    attribution: dict[str, Weights] | None = None,
) -> Captured:
    """Of source and target tokens, each with its end."""
    source, target = tokens
    cross = weights.get("cross", [])
    where = (choice or AlignmentHead.default(cross)) if cross else None
    over_source = [*cross, *weights.get("encoder", [])]
    if attribution:  # of a model that does not attend, too
        over_source.append(attribution["source"])
    count = over_source[0].shape[-1] if over_source else 0
    places, shown = source_axis(sides[0], source, count, originals)
    return Captured(
        places,
        axis(sides[1], target, originals),
        axis(sides[1], [BEGIN, *target[:-1]], originals),
        weights,
        attribution=attribution or {},
        aligned=where.select(cross) if where else None,
        choice=where,
        shown=shown,
    )


def chosen(bundle: Bundle, pairs: PairDataset, lexicon: Lexicon) -> AlignmentHead | None:
    """Where a model's alignment is seen best, by the first examples of these; None if it does not attend."""

    def seen() -> Iterable[tuple[Sequence[int], Sequence[int], Sequence[Weights]]]:
        examples = [pairs.tokens(number) for number in range(min(JUDGED, len(pairs)))]
        for at in range(0, len(examples), AT_ONCE):
            some = examples[at : at + AT_ONCE]
            told = forced(bundle, [source for source, _ in some], [target for _, target in some])
            yield from ((*pair, each.weights.get("cross", [])) for pair, each in zip(some, told, strict=True))

    return find_alignment_head(seen(), lexicon)[0]
