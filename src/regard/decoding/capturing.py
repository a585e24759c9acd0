"""Attention captured by one forced pass: of translations, and of any pair of texts."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from regard.data.corpus import Pairs
from regard.data.door import HALF, tidy
from regard.data.labels import Labels
from regard.data.media import Medium, Pictures, Recordings, Silence
from regard.data.parts import encoded, framed
from regard.data.placeholders import restore
from regard.data.sides import Given, SourceSide, Vocabulary, in_text
from regard.decoding.aligning import best_choice, word_alignment
from regard.decoding.attributing import attributed
from regard.decoding.bundle import Bundle
from regard.decoding.forced import AT_ONCE, forced
from regard.decoding.languages import first_tokens, language_of
from regard.decoding.lexicon import Lexicon
from regard.decoding.options import Options
from regard.decoding.results import Result
from regard.seeing.captured import SPACE, Axis, Branch, Captured, Choice, Kind, Shown, Weights
from regard.tokens import BEGIN, END, MASK_SIGN

if TYPE_CHECKING:
    from regard.decoding.translator import Translator

GAP = "___"  # how what is to be guessed is shown
JUDGED = 500  # examples that a layer and a head are chosen by


def axis(subwords: Vocabulary, tokens: Sequence[int], originals: tuple[str, ...] = ()) -> Axis:
    """Tokens with their mark, and the placeholders that symbols among them stand for."""
    labels = [restore(piece, originals) for piece in subwords.pieces(tokens)]
    if not subwords.ends:
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
    if isinstance(side, Pictures):
        grid = side.settings.grid
        labels = tuple(f"{at // grid + 1}, {at % grid + 1}" for at in range(count))
        return Axis(labels, (False,) * count, "cells"), Shown("picture", side.shaped(np.asarray(given)))
    if isinstance(side, Silence):
        return Axis((), ()), None
    assert isinstance(side, Recordings)
    frames = side.shaped(np.asarray(given))
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
    choice: Choice | None = None,
    originals: tuple[str, ...] = (),
    attribution: dict[str, Weights] | None = None,
) -> Captured:
    """Of source and target tokens, each with its end."""
    source, target = tokens
    cross = weights.get("cross", [])
    where = (choice or Choice.usual(cross)) if cross else None
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
        aligned=where.of(cross) if where else None,
        choice=where,
        shown=shown,
    )


def attend(
    translator: "Translator",
    source: str,
    target: str | Result | None = None,
    *,
    attribution: bool = False,
    to: str = "",
) -> Captured:
    """What a model attends to over a source and a target: a given one, what a search has found, or a new search's."""
    originals = translator.originals_in(source)
    if not isinstance(target, str):
        if not translator.fits(source):
            raise ValueError(
                f"attend: the source is longer than the {translator.longest - 1:,} subwords a model reads."
            )
        result = target or translator.translate(source, to=to)
        if result.wrong or not (result.tokens or result.text):
            why = result.wrong or ("nothing was written" if source.strip() else "the source is empty")
            raise ValueError(f"attend: there is nothing to see, since {why}.")
        if result.tokens:
            tokens = result.source_tokens, result.tokens
        else:
            target = result.text  # what was translated in parts is looked at as a whole
    if isinstance(target, str):
        tokens = _pair(translator, source, target, originals, to)
        limits = translator.longest, translator.search(Options()).longest
        for name, side, most in zip(("source", "target"), tokens, limits, strict=True):
            if not (len(side) > 1 or not (translator.target_side.ends or name == "source")) or len(side) > most:
                raise ValueError(
                    f"attend: the {name} has {len(side) - 1:,} subwords; this model takes from 1 to {most - 1:,}."
                )
    sides = translator.source_side, translator.target_side
    told = forced(translator.bundle, [tokens[0]], [tokens[1]])[0]
    gradients = attributed(translator.bundle, *tokens) if attribution else None
    return captured(sides, tokens, told.weights, choice=translator.choice, originals=originals, attribution=gradients)


def branches(translator: "Translator", result: Result) -> tuple[Branch, ...]:
    """All outputs of a search, the best first."""
    if not result.tokens:
        return ()
    outputs = [(result.score, result.tokens), *((other.score, other.tokens) for other in result.others)]
    tokens = [each for _, each in outputs]
    told = forced(translator.bundle, [result.source_tokens] * len(tokens), tokens)
    originals = translator.originals_in(result.source)
    found = []
    for (score, said), each in zip(outputs, told, strict=True):
        cross = each.weights.get("cross", [])
        if cross:
            weights = (translator.choice or Choice.usual(cross)).of(cross)
            places = axis(translator.target_side, said, originals)
            found.append(Branch(score, tuple(each.token_scores), places, weights))
    return tuple(found)


def aligned(
    translator: "Translator", pairs: Sequence[tuple[str, str]], done: Callable[[int], None] = lambda count: None
) -> list[list[tuple[int, int]] | None]:
    """Links (source word, target word), from 0, of each pair; words are what blanks separate. None for a pair that the
    model cannot read whole. `done` hears how many more are finished."""
    if not translator.description.model.aligns:
        raise ValueError("align: this model does not read and write word by word; there is nothing to align.")
    found: list[list[tuple[int, int]] | None] = [None] * len(pairs)
    tokens = {}
    limits = translator.longest, translator.search(Options()).longest
    for number, (source, target) in enumerate(pairs):
        if not (HALF.search(source) or HALF.search(target)):
            sides = _pair(translator, source, target, translator.originals_in(source))
            if all(1 <= len(side) <= most for side, most in zip(sides, limits, strict=True)):
                tokens[number] = sides
    done(len(pairs) - len(tokens))
    order = sorted(tokens, key=lambda number: max(map(len, tokens[number])))
    for at in range(0, len(order), AT_ONCE):
        some = order[at : at + AT_ONCE]
        told = forced(translator.bundle, [tokens[n][0] for n in some], [tokens[n][1] for n in some])
        for number, each in zip(some, told, strict=True):
            here, there = tokens[number]
            pieces = in_text(translator.source_side).pieces(here), translator.target_side.pieces(there)
            found[number] = word_alignment(each.weights.get("cross", []), *pieces, translator.choice)
        done(len(some))
    return found


def _pair(
    translator: "Translator", source: str, target: str, originals: tuple[str, ...], to: str = ""
) -> tuple[list[int], list[int]]:
    """Tokens of both, with their ends."""
    language = first_tokens(to, translator.description.target_languages, translator.target_side)
    for name, text in (("source", source), ("target", target)):
        if HALF.search(text):
            raise ValueError(f"attend: the {name} has half a character (a lone surrogate).")
    source = translator.parted(source)
    protected = translator.protection.protect(tidy(source))
    said = translator.protection.protect_like(tidy(target), originals) if originals else None
    texts = (protected.text if protected else tidy(source)), (tidy(target) if said is None else said)
    sides: tuple[Vocabulary, Vocabulary] = in_text(translator.source_side), translator.target_side
    labels = translator.target_side if isinstance(translator.target_side, Labels) else None
    if labels is not None:
        labels.check(texts[1])
    cased = translator.cased(texts[0]), texts[1] if labels is not None else translator.cased(texts[1])
    reads = translator.description.model.source
    (read,) = encoded([cased[0]], reads, sides[0].encode)
    (said_tokens,) = sides[1].encode([cased[1]])
    return framed(read, reads), [*language, *said_tokens, *([END] if translator.target_side.ends else [])]


def chosen(bundle: Bundle, pairs: Pairs, lexicon: Lexicon) -> Choice | None:
    """Where a model's alignment is seen best, by the first examples of these; None if it does not attend."""

    def seen() -> Iterable[tuple[Sequence[int], Sequence[int], Sequence[Weights]]]:
        examples = [pairs.tokens(number) for number in range(min(JUDGED, len(pairs)))]
        for at in range(0, len(examples), AT_ONCE):
            some = examples[at : at + AT_ONCE]
            told = forced(bundle, [source for source, _ in some], [target for _, target in some])
            yield from ((*pair, each.weights.get("cross", [])) for pair, each in zip(some, told, strict=True))

    return best_choice(seen(), lexicon)[0]
