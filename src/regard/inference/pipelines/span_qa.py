"""Extractive question answering: the span of a passage that answers a question."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.data.answer_spans import NO_QUESTION, Window, passage_windows, split_question
from regard.data.input_validation import normalize_whitespace
from regard.data.segments import add_special_tokens
from regard.data.targets.labels import SpanLabels
from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.inference.loaded_run import LoadedRun
from regard.inference.pipelines.token_level import EncodedText, TokenLevelPipeline, token_logits
from regard.inference.results import Result
from regard.special_tokens import EOS

MAX_ANSWER_TOKENS = 30  # as is usual for SQuAD


@dataclass(frozen=True)
class Answer:
    """A span of a passage, and its character offsets; empty if the passage has no answer."""

    text: str
    probability: float
    start: int
    end: int


@dataclass(frozen=True)
class _Span:
    """The best span of one window."""

    score: float
    log_probability: float
    row: int
    first: int
    last: int


class SpanDecoder:
    """The most likely span of all windows over a passage."""

    what = "answer spans"

    def __init__(self, run: LoadedRun) -> None:
        self.run = run

    def encode(self, text: str) -> EncodedText:
        run = self.run
        passage, question = (normalize_whitespace(segment) for segment in split_question(text))
        if not passage:
            return EncodedText(text, error="it is empty")
        if not question:
            return EncodedText(text, error=NO_QUESTION)
        source = run.description.model.source
        normalized = run.normalize_case(passage)
        tokenizer = text_tokenizer(run.source_processor)
        found = passage_windows(normalized, run.normalize_case(question), tokenizer, source, run.max_source_tokens)
        # Lowercase text may be longer than the original: then the answer is a span of the lowercase text.
        shown = passage if len(normalized) == len(passage) else normalized
        return EncodedText(text, [add_special_tokens(each.tokens, source) for each in found], (found, shown))

    def decode(self, encoded: EncodedText, logits: Sequence[Tensor]) -> Result:
        best = self.best_span(encoded, logits)
        start, end = self.offsets(encoded, best)
        row = encoded.rows[best.row]
        tokens = row[best.first : best.last + 1] if best.first else []
        return Result(encoded.text, encoded.context[1][start:end], best.log_probability, row, tokens)

    def best_span(self, encoded: EncodedText, logits: Sequence[Tensor]) -> _Span:
        """The most likely span of all windows; no answer has 0 as its first and last position."""
        found = [
            _best_span_of_window(window, row, scores)
            for row, (window, scores) in enumerate(zip(encoded.context[0], logits, strict=True))
        ]
        best = max(found, key=lambda each: each.score)
        target = self.run.target_vocabulary
        if isinstance(target, SpanLabels) and target.unanswered:
            no_answer = min((_no_answer(scores) for scores in logits), key=lambda each: each.score)
            return no_answer if no_answer.score > best.score else best
        return best

    def offsets(self, encoded: EncodedText, best: _Span) -> tuple[int, int]:
        """The character offsets of a span in the passage."""
        found: tuple[int, int] = encoded.context[0][best.row].char_span(best.first, best.last) if best.first else (0, 0)
        return found


def answer(pipeline: TokenLevelPipeline, passage: str, question: str) -> Answer:
    """The answer to a question about a passage. Raises RegardError for an invalid text."""
    decoder = pipeline.decoder
    assert isinstance(decoder, SpanDecoder)
    text = f"{normalize_whitespace(passage)}\t{normalize_whitespace(question)}"
    encoded = decoder.encode(text)
    if encoded.error:
        raise RegardError(f"{text[:60]!r}: {encoded.error}.")
    best = decoder.best_span(encoded, token_logits(pipeline.run, encoded.rows))
    start, end = decoder.offsets(encoded, best)
    return Answer(normalize_whitespace(passage)[start:end], float(torch.tensor(best.log_probability).exp()), start, end)


def _best_span_of_window(window: Window, row: int, scores: Tensor) -> _Span:
    """The best span of a window that does not end before it starts and has at most MAX_ANSWER_TOKENS tokens."""
    count = len(window.offsets)
    first, last = scores[:, EOS + 1].double(), scores[:, EOS + 2].double()
    passage = slice(window.passage_start, window.passage_start + count)
    sums = first[passage, None] + last[None, passage]
    allowed = torch.ones_like(sums, dtype=torch.bool).triu().tril(MAX_ANSWER_TOKENS - 1)
    empty = torch.tensor([start >= end for start, end in window.offsets], device=sums.device)
    best = int(sums.masked_fill(~allowed | empty[:, None] | empty, -torch.inf).argmax())
    a, b = best // count, best % count
    logs = first.log_softmax(0)[window.passage_start + a] + last.log_softmax(0)[window.passage_start + b]
    return _Span(float(sums[a, b]), float(logs), row, window.passage_start + a, window.passage_start + b)


def _no_answer(scores: Tensor) -> _Span:
    """The score of no answer, at the first special token."""
    first, last = scores[:, EOS + 1].double(), scores[:, EOS + 2].double()
    logs = first.log_softmax(0)[0] + last.log_softmax(0)[0]
    return _Span(float(first[0] + last[0]), float(logs), 0, 0, 0)
