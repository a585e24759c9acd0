"""Texts in, results out: cut into subwords, sorted into batches of like length, searched, put back in order."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, overload

from regard.data.door import HALF, tidy
from regard.data.subwords import Subwords
from regard.decoding.aligning import word_alignment
from regard.decoding.engines import Engine
from regard.decoding.folder import Description
from regard.decoding.options import Options
from regard.decoding.results import Hypothesis, Other, Result, Search, Wish
from regard.tokens import END

if TYPE_CHECKING:
    from regard.decoding.bundle import Bundle

MOST = 256  # sentences searched together
WINDOW = 4096  # texts of a stream that are sorted together


def _nobody(count: int) -> None:
    """Hears how many more are finished, and does nothing."""


@dataclass(frozen=True)
class _Source:
    """A text on its way."""

    text: str
    tokens: list[int]
    left_out: int
    wish: Wish
    wrong: str = ""


class Translator:
    """A model with its text: what `regard.load` gives.

    Two engines may be at work: the fast one for what it can do, PyTorch's for everything else. `bundle` opens the model
    in PyTorch when it is needed, which may be never. `why`: which engine it is, and why, in words.
    """

    def __init__(
        self,
        description: Description,
        source_subwords: Subwords,
        target_subwords: Subwords,
        engine: Engine,
        bundle: "Callable[[], Bundle]",
        why: str = "",
    ) -> None:
        self.description, self.source_subwords, self.target_subwords = description, source_subwords, target_subwords
        self.engine, self.why = engine, why
        self._open_bundle = bundle

    @cached_property
    def bundle(self) -> "Bundle":
        """The model in PyTorch."""
        return self._open_bundle()

    @cached_property
    def _every_search(self) -> Engine:
        """The engine that refuses nothing."""
        if self.engine.name == "torch":
            return self.engine
        from regard.decoding.engines.pytorch import TorchEngine

        return TorchEngine(self.bundle)

    @overload
    def translate(self, texts: str, options: Options | None = None, **more: Any) -> Result: ...
    @overload
    def translate(self, texts: Sequence[str], options: Options | None = None, **more: Any) -> list[Result]: ...
    @overload
    def translate(self, texts: Iterable[str], options: Options | None = None, **more: Any) -> Iterator[Result]: ...

    def translate(
        self, texts: str | Sequence[str] | Iterable[str], options: Options | None = None, **more: Any
    ) -> Result | list[Result] | Iterator[Result]:
        """One text -> its result; a list -> a list; anything else -> results one by one, in order, however many.

        Options by name, such as `beam=1` or `nbest=3`, or as one value.
        """
        chosen = Options.of(more) if options is None else replace(options, **more)
        if isinstance(texts, str):
            return self.results([texts], chosen)[0]
        if isinstance(texts, Sequence):
            return self.results(texts, chosen)
        return self._stream(iter(texts), chosen)

    def _stream(self, texts: Iterator[str], options: Options) -> Iterator[Result]:
        while some := list(islice(texts, WINDOW)):
            yield from self.results(some, options)

    def results(self, texts: Sequence[str], options: Options, *, done: Callable[[int], None] = _nobody) -> list[Result]:
        """A result for each text, in order. `done` hears how many more are finished."""
        how = self.search(options)
        sources = [self._source(text, tokens, options) for text, tokens in self._cut(texts)]
        results = {
            number: Result(source.text, "", 0.0, [], [], wrong=source.wrong)
            for number, source in enumerate(sources)
            if source.wrong or len(source.tokens) < 2
        }
        done(len(results))
        refused = self.engine.refuses(how)
        waiting = [number for number in range(len(sources)) if number not in results]
        special = {number for number in waiting if refused or sources[number].wish}
        for engine, numbers in (
            (self.engine, [number for number in waiting if number not in special]),
            (None, sorted(special)),
        ):
            if numbers:
                results |= self._searched(engine or self._every_search, sources, numbers, how, done)
        in_order = [results[number] for number in range(len(texts))]
        if options.scores or options.attention or options.alignment:
            in_order = self._told(in_order, options)
        return in_order

    def search(self, options: Options) -> Search:
        """A search with the limits that suit this model."""
        about = self.description
        longest = min(about.longest, about.model.decoder.most_tokens or about.longest)
        return options.search(per_token=about.per_token, longest=longest, vocabulary=len(self.target_subwords))

    def _cut(self, texts: Sequence[str]) -> Iterator[tuple[str, list[int]]]:
        lower = self.description.lowercase
        whole = ["" if HALF.search(text) else tidy(text.lower() if lower else text) for text in texts]
        yield from zip(texts, self.source_subwords.encode(whole), strict=True)

    def _source(self, text: str, tokens: list[int], options: Options) -> _Source:
        about = self.description
        longest = min(about.longest, about.model.encoder.most_tokens or about.longest)
        wrong = "it has half a character (a lone surrogate)" if HALF.search(text) else ""
        left_out = max(0, len(tokens) + 1 - longest)
        return _Source(text, [*tokens[: longest - 1], END], left_out, self._wish(text, options), wrong)

    def _wish(self, text: str, options: Options) -> Wish:
        if not (options.prefix or options.required or options.glossary):
            return Wish()
        terms = [target for source, target in options.glossary.items() if _says(text, source)]
        required = [self._target_tokens(phrase) for phrase in (*options.required, *terms)]
        return Wish(prefix=self._target_tokens(options.prefix), required=tuple(filter(None, required)))

    def _target_tokens(self, text: str) -> tuple[int, ...]:
        text = tidy(text.lower() if self.description.lowercase else text)
        return tuple(self.target_subwords.encode([text])[0]) if text else ()

    def _searched(
        self,
        engine: Engine,
        sources: Sequence[_Source],
        numbers: Sequence[int],
        how: Search,
        done: Callable[[int], None],
    ) -> dict[int, Result]:
        order = sorted(numbers, key=lambda number: -len(sources[number].tokens))
        width = how.nbest if how.sampling else how.beam
        results: dict[int, Result] = {}
        at = 0
        while at < len(order):
            room = engine.at_once // (len(sources[order[at]].tokens) * width)
            some = order[at : at + max(1, min(MOST, room))]
            at += len(some)
            wishes = [sources[n].wish for n in some]
            found = engine.search([sources[n].tokens for n in some], how, wishes if any(wishes) else None)
            for number, hypotheses in zip(some, found, strict=True):
                results[number] = self._result(sources[number], hypotheses)
            done(len(some))
        return results

    def _result(self, source: _Source, found: list[Hypothesis]) -> Result:
        said = self.target_subwords.decode([hypothesis.tokens for hypothesis in found])
        others = [Other(text, h.score, h.tokens) for text, h in zip(said[1:], found[1:], strict=True)]
        tokens = found[0].tokens
        missing = [phrase for phrase in source.wish.required if not _within(phrase, tokens)]
        return Result(
            source.text,
            said[0],
            found[0].score,
            source.tokens,
            tokens,
            others,
            source.left_out,
            missing=self.target_subwords.decode(missing),
        )

    def _told(self, results: list[Result], options: Options) -> list[Result]:
        """With what a forced pass tells."""
        from regard.decoding.forced import forced

        there = [number for number, result in enumerate(results) if result.tokens]
        passes = forced(
            self.bundle,
            [results[number].source_tokens for number in there],
            [results[number].tokens for number in there],
            attention=options.attention or options.alignment,
        )
        for number, told in zip(there, passes, strict=True):
            result = results[number]
            links = None
            if options.alignment:
                pieces = self.source_subwords.pieces(result.source_tokens), self.target_subwords.pieces(result.tokens)
                links = word_alignment(told.attention, *pieces)
            results[number] = replace(
                result,
                token_scores=told.token_scores if options.scores else None,
                attention=told.attention if options.attention else None,
                alignment=links,
            )
        return results


def _says(text: str, term: str) -> bool:
    """Whether a text has a term, whatever its case; as whole words, where words are separated."""
    term = tidy(term)
    if not term:
        return False
    before = r"(?<!\w)" if _separated(term[0]) else ""
    after = r"(?!\w)" if _separated(term[-1]) else ""
    return re.search(before + re.escape(term) + after, tidy(text), re.IGNORECASE) is not None


def _separated(letter: str) -> bool:
    return letter.isdigit() or letter.upper() != letter.lower()


def _within(phrase: Sequence[int], tokens: Sequence[int]) -> bool:
    return any(tuple(tokens[at : at + len(phrase)]) == tuple(phrase) for at in range(len(tokens)))
