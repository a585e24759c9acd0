"""Texts in, results out: cut into subwords, sorted into batches of like length, searched, put back in order."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, overload

from regard.alignment.aligner import word_alignment
from regard.alignment.alignment_head import AlignmentHead
from regard.alignment.glossary import counts, terms_in
from regard.data.input_validation import LONE_SURROGATE, normalize_whitespace
from regard.data.placeholders import MAX_PLACEHOLDERS, PLACEHOLDER_START, SYMBOLS, Protection, restore
from regard.data.segments import BETWEEN, encoded, framed, parted, room
from regard.data.sentence_splitting import split_to_fit
from regard.data.target_languages import language_tokens, strip_language_tag
from regard.data.vocabulary import Given, SourceSide, Vocabulary, in_text
from regard.errors import RegardError
from regard.inference.engines import Engine
from regard.inference.long_text import Pieces, words_only
from regard.inference.options import Options
from regard.inference.requests import Asked, keeps, says, times
from regard.inference.results import Hypothesis, Other, Result, Search, Wish
from regard.runs.folder import Description
from regard.views.notebook import CapturedView

if TYPE_CHECKING:
    from regard.runs.bundle import Bundle

MOST = 256  # sentences searched together
WINDOW = 4096  # texts of a stream that are sorted together
APART = re.compile(r"(\n|[!-~]{100,})")  # between lines; and what is no word: a key, a picture in letters


def _nobody(count: int) -> None: ...


class Translator:
    """A model with its text: what `regard.load` gives.

    Two engines may be at work: the fast one for what it can do, PyTorch's for everything else. `bundle` opens the model
    in PyTorch when it is needed, which may be never. `why`: which engine it is, and why, in words.
    """

    def __init__(
        self,
        description: Description,
        source_side: SourceSide,
        target_side: Vocabulary,
        engine: Engine,
        bundle: "Callable[[], Bundle]",
        why: str = "",
        choice: AlignmentHead | None = None,
    ) -> None:
        self.description, self.source_side, self.target_side = description, source_side, target_side
        self.engine, self.why, self.choice = engine, why, choice
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
        from regard.inference.engines.torch_engine import TorchEngine

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
        given: object = texts  # a caller may hand in anything
        if isinstance(given, bytes) or not isinstance(given, Iterable):
            raise RegardError(f"translate: {repr(given)[:60]} is not a text; give a text, or a list of texts.")
        return self.results(texts, chosen) if isinstance(texts, Sequence) else self._stream(iter(texts), chosen)

    def _stream(self, texts: Iterator[str], options: Options) -> Iterator[Result]:
        while some := list(islice(texts, WINDOW)):
            yield from self.results(some, options)

    def results(self, texts: Sequence[Any], options: Options, *, done: Callable[[int], None] = _nobody) -> list[Result]:
        """A result for each text, in order. `done` hears how many more are finished."""
        self.check_given(texts)
        options.check_for(self.description.model)
        results: dict[int, Result] = {}
        around = {number: Pieces.of(text, parts) for number, text in enumerate(texts) if (parts := self._parts(text))}
        whole = [number for number in range(len(texts)) if number not in around]
        for number, result in zip(whole, self._found([texts[n] for n in whole], options, done), strict=True):
            if not result.missing or options.required or options.glossary:
                results[number] = result
            else:  # there was no room for its placeholders
                around[number] = Pieces.of(texts[number], words_only(self.protection.split_all(texts[number])))
        if around:
            results |= self._joined(around, options)
            done(len(texts) - len(whole))
        return [results[number] for number in range(len(texts))]

    def check_given(self, sources: Sequence[Any]) -> None:
        """Raises RegardError for what is no source of this model."""
        in_text(self.source_side)
        for text in sources:
            if not isinstance(text, str):
                raise RegardError(f"translate: {repr(text)[:60]} is not a text; give a text, or a list of texts.")

    def _joined(self, around: Mapping[int, Pieces], options: Options) -> dict[int, Result]:
        """Results of texts in parts. The first part has the prefix, the longest what is required."""
        asked: dict[tuple[bool, bool], list[tuple[int, int]]] = {}
        sources = {number: pieces.sources for number, pieces in around.items()}
        for number, own in sources.items():
            lengths = [len(source) for source in own]
            for at in range(len(own)):
                asked.setdefault((at == 0, at == lengths.index(max(lengths))), []).append((number, at))
        plain = replace(options, nbest=1, scores=False, alignment=False, attention=False)
        found: dict[tuple[int, int], Result] = {}
        for (first, longest), places in asked.items():
            how = replace(plain, prefix=plain.prefix * first, required=plain.required * longest)
            some = [sources[number][at] for number, at in places]
            found |= zip(places, self._found(some, how, _nobody), strict=True)
        return {
            number: pieces.joined([found[number, at] for at in range(len(sources[number]))])
            for number, pieces in around.items()
        }

    def _parts(self, text: str) -> list[tuple[str, bool]]:
        """What is translated part by part, and whether each part stays; nothing where the whole can be.

        That is what has several lines, what has placeholders of a kind that the model has never seen, what is no word,
        and what is longer than it reads. Some models take every text as a whole: of parts nobody makes one summary.
        """
        if self.description.whole:
            return []
        parts: list[tuple[str, bool]] = []
        for fragment, kept in self._fragments(text):
            if kept or self.fits(fragment):
                parts.append((fragment, kept))
            else:
                for part, blanks in split_to_fit(fragment, self.fits):
                    parts += [(part, False), (blanks, True)]
        return parts if parts != [(text, False)] else []

    def _fragments(self, text: str) -> Iterator[tuple[str, bool]]:
        for number, part in enumerate(APART.split(text) if APART.search(text.strip()) else [text]):
            kept = number % 2 == 1
            fragments = self.protection.split_unknown(part) if not kept and PLACEHOLDER_START.search(part) else []
            yield from words_only(fragments) if any(stays for _, stays in fragments) else [(part, kept)]

    def fits(self, text: str) -> bool:
        """Whether the model reads all of it."""
        if len(text.encode("utf-8", "surrogatepass")) < self.longest:  # a token is a byte at least
            return True
        if LONE_SURROGATE.search(text):
            return True  # it is wrong anyway
        protected = self.protection.protect(normalize_whitespace(text))
        if protected is None:
            return True
        (tokens,) = in_text(self.source_side).encode([self.cased(protected.text)])
        return len(tokens) <= room(self.description.model.source, self.longest)

    @cached_property
    def longest(self) -> int:
        """Source tokens with their end that the model reads at most."""
        return min(self.description.longest, self.description.model.encoder.most_tokens or self.description.longest)

    def cased(self, text: str) -> str:
        """As the model was taught to read it."""
        return text.lower() if self.description.lowercase else text

    def _found(self, texts: Sequence[str], options: Options, done: Callable[[int], None]) -> list[Result]:
        """A result for each text, placeholders and all."""
        how = self.search(options)
        if options.alignment and self.description.model.labels:
            raise RegardError("alignment: a class comes from all of a text; attention shows from what most.")
        if options.alignment and not self.description.model.aligns:
            raise RegardError("alignment: this model does not read word by word; attention shows what it looks at.")
        sources = self._sources(texts, options)
        results = {
            number: Result(source.text, "", 0.0, [], [], wrong=source.wrong)
            for number, source in enumerate(sources)
            if source.wrong or self.length(source.tokens) < 2
        }
        done(len(results))
        waiting = [number for number in range(len(sources)) if number not in results]
        refused = self.engine.refuses(how)
        special = {number for number in waiting if refused or sources[number].wish}
        usual = [number for number in waiting if number not in special]
        if usual:
            results |= self._searched(self.engine, sources, usual, how, done)
            # Most keep their placeholders by themselves; the others are searched again, and made to.
            again = [number for number in usual if not keeps(results[number], sources[number])]
            if again:
                results |= self._searched(self._every_search, sources, again, how, _nobody, strict=True)
        if special:
            results |= self._searched(self._every_search, sources, sorted(special), how, done, strict=True)
        lacking = [number for number in waiting if not says(results[number], sources[number].terms)]
        if lacking:
            results |= self._with_terms(lacking, sources, results, options)
        in_order = [results[number] for number in range(len(texts))]
        if options.scores or options.attention or options.alignment:
            in_order = self._told(in_order, options)
        return in_order

    def _with_terms(
        self, numbers: Sequence[int], sources: Sequence[Asked], results: Mapping[int, Result], options: Options
    ) -> dict[int, Result]:
        """What these sources become with the terms of a glossary in place of the model's own words; where nobody can
        tell which words these are, by a search that must say the terms."""
        from regard.inference.term_replacement import replaced

        found = replaced(
            self, [results[number] for number in numbers], [sources[n].originals for n in numbers], options
        )
        made = {number: result for number, result in zip(numbers, found, strict=True) if result is not None}
        rest = [number for number in numbers if number not in made]
        if rest:
            wanted = list(sources)
            for number in rest:
                wish = sources[number].wish
                required = (*wish.required, *sources[number].terms)
                wanted[number] = replace(sources[number], wish=replace(wish, required=required))
            how = self.search(options)
            made |= self._searched(self._every_search, wanted, rest, how, _nobody, strict=True)
        return made

    def search(self, options: Options) -> Search:
        """A search with the limits that suit this model."""
        about = self.description
        longest = min(about.longest, about.model.decoder.most_tokens or about.longest)
        limits = {"longest": longest, "vocabulary": len(self.target_side)}
        return options.search(per_token=about.per_token, **limits, single=about.model.labels)

    def length(self, source: Given) -> int:
        return len(source)

    def _sources(self, texts: Sequence[str], options: Options) -> list[Asked]:
        sources: list[Asked] = []
        given: list[str] = []
        for raw in texts:
            text = self.parted(raw)
            wrong = ""
            originals: tuple[str, ...] = ()
            counted: dict[int, int] = {}
            protected = None if LONE_SURROGATE.search(text) else self.protection.protect(normalize_whitespace(text))
            if protected is None:
                wrong = (
                    "it is not UTF-8, or has half a character (a lone surrogate)"
                    if LONE_SURROGATE.search(text)
                    else f"it has over {MAX_PLACEHOLDERS} different placeholders"
                )
            else:
                originals = protected.originals
                counts = protected.counts
                # All symbols count: what the source has not, the output must not have, either.
                counted = {token: counts.get(symbol, 0) for symbol, token in self._symbols.items()}
            given.append("" if protected is None else self.cased(protected.text))
            wish, terms = self._wish(options), self._terms(given[-1], options)
            sources.append(Asked(raw.replace(BETWEEN, "\t"), [], wish, terms, originals, counted, wrong))
        reads = self.description.model.source
        whole = encoded(given, reads, in_text(self.source_side).encode)
        return [
            replace(source, tokens=framed(tokens, reads, self.longest))
            for source, tokens in zip(sources, whole, strict=True)
        ]

    def parted(self, text: str) -> str:
        """A source whose parts have tabs between, as the model reads it."""
        return parted(text, self.description.model.source)

    @cached_property
    def protection(self) -> Protection:
        """What keeps placeholders."""
        return Protection(self.description.placeholders)

    @cached_property
    def _symbols(self) -> dict[str, int]:
        """The target tokens that stand for placeholders."""
        if not self.protection.uses_symbols:
            return {}
        found = {symbol: self.target_side.token(symbol) for symbol in SYMBOLS}
        return {symbol: token for symbol, token in found.items() if token is not None}

    def _wish(self, options: Options) -> Wish:
        language = language_tokens(options.to, self.description.target_languages, self.target_side)
        if not (options.prefix or options.required or language):
            return Wish()
        required = [self.target_tokens(each) for each in options.required]
        return Wish(prefix=(*language, *self.target_tokens(options.prefix)), required=tuple(filter(None, required)))

    def _terms(self, text: str, options: Options) -> dict[tuple[int, ...], int]:
        if not options.glossary:
            return {}
        found = {self.target_tokens(said): count for said, count in counts(terms_in(text, options.glossary)).items()}
        return {tokens: count for tokens, count in found.items() if tokens}

    def target_tokens(self, text: str) -> tuple[int, ...]:
        text = normalize_whitespace(self.cased(text))
        return tuple(self.target_side.encode([text])[0]) if text else ()

    def _searched(
        self,
        engine: Engine,
        sources: Sequence[Asked],
        numbers: Sequence[int],
        how: Search,
        done: Callable[[int], None],
        *,
        strict: bool = False,
    ) -> dict[int, Result]:
        """Results by number. `strict`: with each source's wish, and placeholders counted."""
        order = sorted(numbers, key=lambda number: -self.length(sources[number].tokens))
        width = how.nbest if how.sampling else how.beam
        results: dict[int, Result] = {}
        at = 0
        while at < len(order):
            room = engine.at_once // (self.length(sources[order[at]].tokens) * width)
            some = order[at : at + max(1, min(MOST, room))]
            at += len(some)
            wishes = [replace(sources[n].wish, counted=sources[n].counted) for n in some] if strict else []
            found = engine.search([sources[n].tokens for n in some], how, wishes if any(wishes) else None)
            for number, hypotheses in zip(some, found, strict=True):
                results[number] = self._result(sources[number], hypotheses)
            done(len(some))
        return results

    def _result(self, source: Asked, found: list[Hypothesis]) -> Result:
        said = [
            restore(strip_language_tag(text), source.originals)
            for text in self.target_side.decode([hypothesis.tokens for hypothesis in found])
        ]
        others = [Other(text, h.score, h.tokens) for text, h in zip(said[1:], found[1:], strict=True)]
        tokens = found[0].tokens
        missing = self.target_side.decode([p for p in source.wish.required if not times(p, tokens)])
        for symbol, token in self._symbols.items() if source.counted else ():
            lost = source.counted[token] - tokens.count(token)
            if lost:
                missing += [restore(symbol, source.originals)] * max(1, lost)
        return Result(source.text, said[0], found[0].score, source.tokens, tokens, others, missing=missing)

    def _told(self, results: list[Result], options: Options) -> list[Result]:
        """With what a forced pass tells."""
        from regard.inference.attention import captured_view
        from regard.interpret.forced_pass import forced

        sides = self.source_side, self.target_side
        there = [number for number, result in enumerate(results) if result.tokens]
        passes = forced(
            self.bundle,
            [results[number].source_tokens for number in there],
            [results[number].tokens for number in there],
            attention=options.attention or options.alignment,
        )
        for number, told in zip(there, passes, strict=True):
            result = results[number]
            tokens = result.source_tokens, result.tokens
            if options.scores:
                result = replace(result, token_scores=told.token_scores)
            if options.alignment:
                pieces = in_text(self.source_side).pieces(tokens[0]), self.target_side.pieces(tokens[1])
                result = replace(result, alignment=word_alignment(told.weights.get("cross", []), *pieces, self.choice))
            if options.attention:
                originals = self.originals_in(result.source)
                seen = captured_view(sides, tokens, told.weights, choice=self.choice, originals=originals)
                result = replace(result, attention=seen)
            results[number] = result
        return results

    def attend(
        self, source: str, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> CapturedView:
        """What the model attends to over a source and a target: a given one, a result of it, or else its translation.

        attribution: with gradient times input, too. to: of several languages. Raises RegardError for what is too long.
        """
        from regard.inference.attention import attend

        return attend(self, source, target, attribution=attribution, to=to)

    def originals_in(self, source: str) -> tuple[str, ...]:
        """The placeholders that symbols among its tokens stand for."""
        protected = None if LONE_SURROGATE.search(source) else self.protection.protect(normalize_whitespace(source))
        return protected.originals if protected else ()
