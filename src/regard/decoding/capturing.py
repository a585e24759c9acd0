"""Attention captured by one forced pass: of translations, and of any pair of texts."""

from collections.abc import Iterable, Sequence

from regard.data.corpus import Pairs
from regard.data.placeholders import restore
from regard.data.subwords import Subwords
from regard.decoding.aligning import best_choice
from regard.decoding.bundle import Bundle
from regard.decoding.forced import AT_ONCE, forced
from regard.decoding.lexicon import Lexicon
from regard.seeing.captured import Axis, Captured, Choice, Kind, Weights
from regard.tokens import BEGIN, END

JUDGED = 500  # examples that a layer and a head are chosen by


def axis(subwords: Subwords, tokens: Sequence[int], originals: tuple[str, ...] = ()) -> Axis:
    """Tokens with their mark, and the placeholders that symbols among them stand for."""
    labels = [restore(piece, originals) for piece in subwords.pieces(tokens)]
    return Axis(tuple(labels), tuple(token in (BEGIN, END) for token in tokens))


def captured(
    sides: tuple[Subwords, Subwords],
    tokens: tuple[Sequence[int], Sequence[int]],
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
    return Captured(
        axis(sides[0], source, originals),
        axis(sides[1], target, originals),
        axis(sides[1], [BEGIN, *target[:-1]], originals),
        weights,
        attribution=attribution or {},
        aligned=where.of(cross) if where else None,
        choice=where,
    )


def chosen(bundle: Bundle, pairs: Pairs, lexicon: Lexicon) -> Choice | None:
    """Where a model's alignment is seen best, by the first examples of these; None if it does not attend."""

    def seen() -> Iterable[tuple[Sequence[int], Sequence[int], Sequence[Weights]]]:
        examples = [pairs.tokens(number) for number in range(min(JUDGED, len(pairs)))]
        for at in range(0, len(examples), AT_ONCE):
            some = examples[at : at + AT_ONCE]
            told = forced(bundle, [source for source, _ in some], [target for _, target in some])
            yield from ((*pair, each.weights.get("cross", [])) for pair, each in zip(some, told, strict=True))

    return best_choice(seen(), lexicon)[0]
