"""Texts of a request, translated sentence by sentence by a model's batcher and joined again."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.data.sentence_splitting import split_sentences
from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.inference.options import Options
from regard.inference.results import Result
from regard.serving.batcher import DeadlineExceeded, Overloaded
from regard.serving.http_requests import RequestError
from regard.serving.limits import Limits
from regard.serving.model_pool import Model


@dataclass(frozen=True)
class TextTranslation:
    """The translation of one text: its segments are (result of a sentence, the whitespace after it).

    The result is None for a segment that is only whitespace.
    """

    source: str
    segments: list[tuple[Result | None, str]]

    @property
    def sentences(self) -> list[Result]:
        """The results of all sentences."""
        return [result for result, _ in self.segments if result is not None]

    @property
    def error(self) -> str:
        """Why there is no translation; empty if there is one."""
        return next((result.error for result in self.sentences if result.error), "")

    @property
    def text(self) -> str:
        """The whole translation."""
        return "".join((result.text if result is not None else "") + after for result, after in self.segments)

    @property
    def alternatives(self) -> list[str]:
        """The second-best result of each sentence, then the third-best, ..., or the last one a sentence has."""
        count = max((len(result.alternatives) for result in self.sentences), default=0)
        return [
            "".join(
                (_alternative(result, index) if result is not None else "") + after for result, after in self.segments
            )
            for index in range(count)
        ]


def _alternative(result: Result, index: int) -> str:
    if not result.alternatives:
        return result.text
    return result.alternatives[min(index, len(result.alternatives) - 1)].text


def check_reads_text(model: Model) -> None:
    """Raises RequestError for a model that reads files: it would open a text as the name of a file on the server."""
    if model.predictor is not None:
        try:
            text_tokenizer(model.predictor.run.source_processor)
        except RegardError as error:
            raise RequestError(400, str(error)) from None


async def translate_texts(
    model: Model, texts: Sequence[str], options: Options, limits: Limits
) -> list[TextTranslation]:
    """Translate each text sentence by sentence; line breaks and whitespace are kept. Raises RequestError."""
    if model.batcher is None:
        raise RequestError(503, "the models are being loaded.", {"Retry-After": "2"})
    check_reads_text(model)
    truncate = model.predictor is not None and model.predictor.description.truncate
    segmented = [[(text, "")] if truncate and text.strip() else _segments(text) for text in texts]
    sentences = [sentence for segments in segmented for sentence, _ in segments if sentence]
    try:
        results = iter(await model.batcher.predict(sentences, options, seconds=limits.seconds))
    except Overloaded as error:
        headers = {"Retry-After": str(error.retry_after)}
        raise RequestError(429, "too many requests are waiting; try again later.", headers) from None
    except DeadlineExceeded:
        raise RequestError(503, "it took too long; try again later.", {"Retry-After": "5"}) from None
    except RegardError as error:
        raise RequestError(400, str(error)) from None
    return [
        TextTranslation(text, [(next(results) if sentence else None, after) for sentence, after in segments])
        for text, segments in zip(texts, segmented, strict=True)
    ]


def _segments(text: str) -> list[tuple[str, str]]:
    """Sentences, each with the whitespace after it; an empty sentence precedes whitespace at the start of a line."""
    segments: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        body = line.strip()
        if not body:
            segments.append(("", line))
            continue
        start = line.index(body[0])
        if start:
            segments.append(("", line[:start]))
        sentences = split_sentences(body)
        segments += sentences[:-1]
        segments.append((sentences[-1][0], sentences[-1][1] + line[start + len(body) :]))
    return segments
