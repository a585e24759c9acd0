"""Labels for the positions of sources and targets, and captured attention from weights with these labels."""

from collections.abc import Sequence

import numpy as np

from regard.alignment.alignment_head import AlignmentHead
from regard.data.media.base import MediaProcessor
from regard.data.placeholders import restore
from regard.data.target_languages import language_of
from regard.data.vocabulary import SourceInput, SourceProcessor, Vocabulary
from regard.interpret.captured_attention import SPACE, Axis, CapturedAttention, Kind, SourceMedia, Weights
from regard.special_tokens import BOS, EOS, MASK_CHARACTER

MASK_LABEL = "___"  # of a masked token


def token_axis(vocabulary: Vocabulary, tokens: Sequence[int], originals: tuple[str, ...] = ()) -> Axis:
    """Tokens as positions. originals: the texts that placeholders among the tokens stand for."""
    labels = [restore(piece, originals) for piece in vocabulary.pieces(tokens)]
    if not vocabulary.has_eos:
        return Axis(tuple(label.removeprefix(SPACE) for label in labels), (False,) * len(labels), "labels")
    last = len(tokens) - 1
    separators = [token == EOS and index < last for index, token in enumerate(tokens)]  # ends of segments, not of all
    labels = [label.replace(MASK_CHARACTER, MASK_LABEL) for label in labels]
    shown = ["|" if separates else label for separates, label in zip(separators, labels, strict=True)]
    languages = [language_of(label.removeprefix(SPACE)) for label in labels]
    # A blank before a language token belongs to it.
    language_tokens = [
        bool(language) or (label == SPACE and bool(following))
        for label, language, following in zip(labels, languages, [*languages[1:], ""], strict=True)
    ]
    special = [
        (token in (BOS, EOS) and not separates) or is_language
        for token, separates, is_language in zip(tokens, separators, language_tokens, strict=True)
    ]
    return Axis(
        tuple(f"<{language}>" if language else label for label, language in zip(shown, languages, strict=True)),
        tuple(special),
    )


def source_axis(
    processor: SourceProcessor, given: SourceInput, count: int, originals: tuple[str, ...]
) -> tuple[Axis, SourceMedia | None]:
    """The positions of a source, and its image or spectrogram if it is not text. count: of positions; 0 if unknown."""
    if not isinstance(processor, MediaProcessor):
        if count and count != len(given):  # its positions are sentences, not tokens
            texts = processor.decode(_segments(given))
            return Axis(tuple(restore(text, originals) for text in texts), (False,) * len(texts), "sentences"), None
        return token_axis(processor, given, originals), None
    positions = processor.positions(np.asarray(given), count)
    axis = Axis(positions.labels, (False,) * len(positions.labels), positions.unit)
    if positions.kind is None or positions.values is None:
        return axis, None
    return axis, SourceMedia(positions.kind, positions.values, positions.seconds)


def _segments(tokens: Sequence[int]) -> list[list[int]]:
    """The segments of a source, each with its end token."""
    segments: list[list[int]] = [[]]
    for token in tokens:
        segments[-1].append(token)
        if token == EOS:
            segments.append([])
    return segments[:-1]


def build_captured_attention(
    vocabularies: tuple[SourceProcessor, Vocabulary],
    tokens: tuple[SourceInput, Sequence[int]],
    weights: dict[Kind, list[Weights]],
    *,
    alignment_head: AlignmentHead | None = None,
    originals: tuple[str, ...] = (),
    attribution: dict[str, Weights] | None = None,
) -> CapturedAttention:
    """Captured attention over source and target tokens, each with its end of sequence."""
    source, target = tokens
    cross = weights.get("cross", [])
    head = (alignment_head or AlignmentHead.default(cross)) if cross else None
    over_source = [*cross, *weights.get("encoder", [])]
    if attribution:  # a model without attention has it, too
        over_source.append(attribution["source"])
    count = over_source[0].shape[-1] if over_source else 0
    positions, source_media = source_axis(vocabularies[0], source, count, originals)
    return CapturedAttention(
        positions,
        token_axis(vocabularies[1], target, originals),
        token_axis(vocabularies[1], [BOS, *target[:-1]], originals),
        weights,
        attribution=attribution or {},
        alignment_weights=head.select(cross) if head else None,
        alignment_head=head,
        source_media=source_media,
    )
