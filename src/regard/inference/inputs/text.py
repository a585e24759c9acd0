"""Texts as inputs: placeholders protected, long texts split into chunks, special tokens added."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from regard.alignment.glossary import find_terms, required_counts
from regard.data.input_validation import LONE_SURROGATE, normalize_whitespace
from regard.data.placeholders import MAX_PLACEHOLDERS, PLACEHOLDER_START, SYMBOLS, Protection
from regard.data.segments import (
    SEGMENT_SEPARATOR,
    add_special_tokens,
    encode_segments,
    max_content_tokens,
    separate_segments,
)
from regard.data.sentence_splitting import split_to_fit
from regard.data.target_languages import language_tokens
from regard.data.vocabulary import SourceInput, text_tokenizer
from regard.errors import RegardError
from regard.inference.inputs.base import INVALID_TEXT, constraints_from_options
from regard.inference.inputs.chunked_text import copy_non_words
from regard.inference.inputs.request import Request
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.results import Result
from regard.special_tokens import EOS
from regard.views.notebook import AttentionView

COPIED = re.compile(r"(\n|[!-~]{100,})")  # line ends, and long runs that are not words: a key, a data URL


class TextInputs:
    """Texts. A source of several segments has tabs between them."""

    example = "a"

    def __init__(self, run: LoadedRun) -> None:
        self.run = run
        self.tokenizer = text_tokenizer(run.source_processor)

    def check(self, inputs: Sequence[Any]) -> None:
        for text in inputs:
            if not isinstance(text, str):
                raise RegardError(f"{repr(text)[:60]} is not a text; give a text, or a list of texts.")

    def split_into_chunks(self, item: str) -> list[tuple[str, bool]]:
        """Splits texts of several lines, with placeholders that the model does not know, with long runs that are not
        words, and texts longer than the maximum length. Models for tasks such as summarization never split a text:
        summaries of chunks are not a summary of the whole."""
        if self.run.description.truncate:
            return []
        chunks: list[tuple[str, bool]] = []
        for fragment, copied in self._fragments(item):
            if copied or self.within_max_length(fragment):
                chunks.append((fragment, copied))
            else:
                for sentence, blanks in split_to_fit(fragment, self.within_max_length):
                    chunks += [(sentence, False), (blanks, True)]
        return chunks if chunks != [(item, False)] else []

    def split_at_placeholders(self, item: str) -> list[tuple[str, bool]]:
        return copy_non_words(self.protection.split_all(item))

    def _fragments(self, text: str) -> Iterator[tuple[str, bool]]:
        for number, piece in enumerate(COPIED.split(text) if COPIED.search(text.strip()) else [text]):
            copied = number % 2 == 1
            fragments = self.protection.split_unknown(piece) if not copied and PLACEHOLDER_START.search(piece) else []
            has_unknown = any(is_placeholder for _, is_placeholder in fragments)
            yield from copy_non_words(fragments) if has_unknown else [(piece, copied)]

    def within_max_length(self, text: str) -> bool:
        """Whether a text has no more tokens than the model reads."""
        if len(text.encode("utf-8", "surrogatepass")) < self.run.max_source_tokens:  # a token has at least one byte
            return True
        if LONE_SURROGATE.search(text):
            return True  # it is rejected anyway
        protected = self.protection.protect(normalize_whitespace(text))
        if protected is None:
            return True
        (tokens,) = self.tokenizer.encode([self.run.normalize_case(protected.text)])
        return len(tokens) <= max_content_tokens(self.run.description.model.source, self.run.max_source_tokens)

    def requests(self, inputs: Sequence[str], options: Options) -> list[Request]:
        requests: list[Request] = []
        texts: list[str] = []
        for raw in inputs:
            text = self.mark_segments(raw)
            error = ""
            originals: tuple[str, ...] = ()
            symbol_counts: dict[int, int] = {}
            protected = None if LONE_SURROGATE.search(text) else self.protection.protect(normalize_whitespace(text))
            if protected is None:
                error = (
                    INVALID_TEXT
                    if LONE_SURROGATE.search(text)
                    else f"it has over {MAX_PLACEHOLDERS} different placeholders"
                )
            else:
                originals = protected.originals
                # All symbols count: a symbol that the source lacks must not be in the output either.
                symbol_counts = {
                    token: protected.counts.get(symbol, 0) for symbol, token in self.placeholder_tokens.items()
                }
            texts.append("" if protected is None else self.run.normalize_case(protected.text))
            shown = raw.replace(SEGMENT_SEPARATOR, "\t")
            terms = self._glossary_terms(texts[-1], options)
            constraints = constraints_from_options(self.run, options)
            requests.append(Request(shown, [], constraints, terms, originals, symbol_counts, error))
        source = self.run.description.model.source
        all_tokens = encode_segments(texts, source, self.tokenizer.encode)
        return [
            replace(request, tokens=add_special_tokens(tokens, source, self.run.max_source_tokens))
            for request, tokens in zip(requests, all_tokens, strict=True)
        ]

    def mark_segments(self, text: str) -> str:
        """A source with tabs between its segments, with the separators that the model reads."""
        return separate_segments(text, self.run.description.model.source)

    def length(self, tokens: SourceInput) -> int:
        return len(tokens)

    def originals(self, item: str) -> tuple[str, ...]:
        protected = None if LONE_SURROGATE.search(item) else self.protection.protect(normalize_whitespace(item))
        return protected.originals if protected else ()

    def source_and_target(
        self, source: str, target: str | Result | None, to: str, predict: Callable[[Any], Result]
    ) -> tuple[SourceInput, list[int]]:
        """Tokens of both; a text that was translated in chunks is encoded as a whole."""
        if not isinstance(target, str):
            if not self.within_max_length(source):
                raise RegardError(
                    f"attend: the source is longer than the {self.run.max_source_tokens - 1:,} subwords a model reads."
                )
            result = target or predict(source)
            if result.error or not (result.tokens or result.text):
                why = result.error or ("the output is empty" if source.strip() else "the source is empty")
                raise RegardError(f"attend: there is nothing to see, since {why}.")
            if result.tokens:
                return result.source_tokens, result.tokens
            target = result.text
        tokens = self.encode_pair(source, target, self.originals(source), to)
        ends = self.run.target_vocabulary.has_eos
        limits = self.run.max_source_tokens, self.run.max_target_tokens
        for name, side, limit in zip(("source", "target"), tokens, limits, strict=True):
            if not (len(side) > 1 or not (ends or name == "source")) or len(side) > limit:
                raise RegardError(
                    f"attend: the {name} has {len(side) - 1:,} subwords; this model takes from 1 to {limit - 1:,}."
                )
        return tokens

    def encode_pair(
        self, source: str, target: str, originals: tuple[str, ...], to: str = ""
    ) -> tuple[list[int], list[int]]:
        """Tokens of a source and a target, each with its end of sequence."""
        run = self.run
        language = language_tokens(to, run.description.target_languages, run.target_vocabulary)
        for name, text in (("source", source), ("target", target)):
            if LONE_SURROGATE.search(text):
                raise RegardError(f"attend: the {name} has half a character (a lone surrogate).")
        source = self.mark_segments(source)
        protected = self.protection.protect(normalize_whitespace(source))
        protected_target = (
            self.protection.protect_target(normalize_whitespace(target), originals) if originals else None
        )
        texts = (
            (protected.text if protected else normalize_whitespace(source)),
            (normalize_whitespace(target) if protected_target is None else protected_target),
        )
        run.target_vocabulary.check(texts[1])
        settings = run.description.model.source
        (source_tokens,) = encode_segments([run.normalize_case(texts[0])], settings, self.tokenizer.encode)
        cased = run.normalize_case(texts[1]) if run.target_vocabulary.has_eos else texts[1]
        (target_tokens,) = run.target_vocabulary.encode([cased])
        return add_special_tokens(source_tokens, settings), [
            *language,
            *target_tokens,
            *([EOS] if run.target_vocabulary.has_eos else []),
        ]

    def check_attribution(self) -> None:
        """Gradients can be taken of every text."""

    def add_source_media(self, view: AttentionView, item: Any) -> AttentionView:
        return view

    @cached_property
    def protection(self) -> Protection:
        """Replaces placeholders by symbols, as in training."""
        return Protection(self.run.description.placeholders)

    @cached_property
    def placeholder_tokens(self) -> dict[str, int]:
        """The target tokens that stand for placeholders."""
        if not self.protection.uses_symbols:
            return {}
        found = {symbol: self.run.target_vocabulary.token(symbol) for symbol in SYMBOLS}
        return {symbol: token for symbol, token in found.items() if token is not None}

    def _glossary_terms(self, text: str, options: Options) -> dict[tuple[int, ...], int]:
        if not options.glossary:
            return {}
        found = {
            self.run.target_tokens(term): count
            for term, count in required_counts(find_terms(text, options.glossary)).items()
        }
        return {tokens: count for tokens, count in found.items() if tokens}
