"""What a model attends to over a source and a target, and the word alignments of pairs, by one forced pass."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from regard.alignment.aligner import word_alignment
from regard.alignment.alignment_head import AlignmentHead
from regard.data.input_validation import LONE_SURROGATE, normalize_whitespace
from regard.data.labels import Labels
from regard.data.segments import encoded, framed
from regard.data.target_languages import language_tokens
from regard.data.vocabulary import Vocabulary, in_text
from regard.errors import RegardError
from regard.inference.options import Options
from regard.inference.results import Result
from regard.interpret.attribution import attributed
from regard.interpret.capture import axis, captured
from regard.interpret.captured import Branch
from regard.interpret.forced_pass import AT_ONCE, forced
from regard.special_tokens import END
from regard.views.notebook import CapturedView

if TYPE_CHECKING:
    from regard.inference.translator import Translator


def captured_view(*given: Any, **more: Any) -> CapturedView:
    """Captured attention, as `regard.interpret.capture.captured` builds it, that a notebook shows."""
    return CapturedView.of(captured(*given, **more))


def attend(
    translator: "Translator",
    source: str,
    target: str | Result | None = None,
    *,
    attribution: bool = False,
    to: str = "",
) -> CapturedView:
    """What a model attends to over a source and a target: a given one, what a search has found, or a new search's."""
    originals = translator.originals_in(source)
    if not isinstance(target, str):
        if not translator.fits(source):
            raise RegardError(
                f"attend: the source is longer than the {translator.longest - 1:,} subwords a model reads."
            )
        result = target or translator.translate(source, to=to)
        if result.wrong or not (result.tokens or result.text):
            why = result.wrong or ("nothing was written" if source.strip() else "the source is empty")
            raise RegardError(f"attend: there is nothing to see, since {why}.")
        if result.tokens:
            tokens = result.source_tokens, result.tokens
        else:
            target = result.text  # what was translated in parts is looked at as a whole
    if isinstance(target, str):
        tokens = _pair(translator, source, target, originals, to)
        limits = translator.longest, translator.search(Options()).longest
        for name, side, most in zip(("source", "target"), tokens, limits, strict=True):
            if not (len(side) > 1 or not (translator.target_side.ends or name == "source")) or len(side) > most:
                raise RegardError(
                    f"attend: the {name} has {len(side) - 1:,} subwords; this model takes from 1 to {most - 1:,}."
                )
    sides = translator.source_side, translator.target_side
    told = forced(translator.bundle, [tokens[0]], [tokens[1]])[0]
    gradients = attributed(translator.bundle, *tokens) if attribution else None
    return captured_view(
        sides, tokens, told.weights, choice=translator.choice, originals=originals, attribution=gradients
    )


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
            weights = (translator.choice or AlignmentHead.default(cross)).of(cross)
            places = axis(translator.target_side, said, originals)
            found.append(Branch(score, tuple(each.token_scores), places, weights))
    return tuple(found)


def aligned(
    translator: "Translator", pairs: Sequence[tuple[str, str]], done: Callable[[int], None] = lambda count: None
) -> list[list[tuple[int, int]] | None]:
    """Links (source word, target word), from 0, of each pair; words are what blanks separate. None for a pair that the
    model cannot read whole. `done` hears how many more are finished."""
    if not translator.description.model.aligns:
        raise RegardError("align: this model does not read and write word by word; there is nothing to align.")
    found: list[list[tuple[int, int]] | None] = [None] * len(pairs)
    tokens = {}
    limits = translator.longest, translator.search(Options()).longest
    for number, (source, target) in enumerate(pairs):
        if not (LONE_SURROGATE.search(source) or LONE_SURROGATE.search(target)):
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
    language = language_tokens(to, translator.description.target_languages, translator.target_side)
    for name, text in (("source", source), ("target", target)):
        if LONE_SURROGATE.search(text):
            raise RegardError(f"attend: the {name} has half a character (a lone surrogate).")
    source = translator.parted(source)
    protected = translator.protection.protect(normalize_whitespace(source))
    said = translator.protection.protect_target(normalize_whitespace(target), originals) if originals else None
    texts = (
        (protected.text if protected else normalize_whitespace(source)),
        (normalize_whitespace(target) if said is None else said),
    )
    sides: tuple[Vocabulary, Vocabulary] = in_text(translator.source_side), translator.target_side
    labels = translator.target_side if isinstance(translator.target_side, Labels) else None
    if labels is not None:
        labels.check(texts[1])
    cased = translator.cased(texts[0]), texts[1] if labels is not None else translator.cased(texts[1])
    reads = translator.description.model.source
    (read,) = encoded([cased[0]], reads, sides[0].encode)
    (said_tokens,) = sides[1].encode([cased[1]])
    return framed(read, reads), [*language, *said_tokens, *([END] if translator.target_side.ends else [])]
