"""Requests and their errors: validation, options, body fields, cancellation on disconnect, and translation of texts."""

import asyncio
import json
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request

from regard.data.sentence_splitting import split_sentences
from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.inference.options import Options, group_of
from regard.inference.predictor import Predictor
from regard.inference.results import Result
from regard.serving.batcher import DeadlineExceeded, Overloaded
from regard.serving.limits import Limits
from regard.serving.model_pool import Model

T = TypeVar("T")
MAX_FIELDS = 1000


class RequestError(Exception):
    """An error response: an HTTP status, a message and headers."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


class ClientDisconnected(Exception):  # noqa: N818
    """The client closed the connection before the response."""


def validate_texts(texts: Sequence[Any], limits: Limits) -> list[str]:
    """The texts of a request. Raises RequestError if one is not a string, or if they exceed the limits."""
    if len(texts) > limits.texts:
        raise RequestError(413, f"{len(texts):,} texts are too many for one request; at most {limits.texts}.")
    total = 0
    for text in texts:
        if not isinstance(text, str):
            raise RequestError(400, "a text is not a string.")
        total += len(text)
    if total > limits.characters:
        raise RequestError(413, f"{total:,} characters are too many for one request; at most {limits.characters:,}.")
    return list(texts)


def applicable_options(predictor: Predictor | None, **values: Any) -> Options:
    """Decoding options by name, without those that do not apply to the model. Raises RequestError."""
    if predictor is not None:
        values = {
            name: value for name, value in values.items() if group_of(name) in predictor.task.options and value != ""
        }
    try:
        return Options(**values)
    except RegardError as error:
        raise RequestError(400, str(error)) from None


def check_limits(options: Options, limits: Limits) -> Options:
    """The options, unchanged. Raises RequestError if they exceed the limits."""
    if not 1 <= options.beam <= limits.beam:
        raise RequestError(400, f"beam: it must be between 1 and {limits.beam}.")
    if not 1 <= options.nbest <= limits.nbest:
        raise RequestError(400, f"nbest: it must be between 1 and {limits.nbest}.")
    for name in ("forbidden", "required", "glossary"):
        if len(getattr(options, name)) > limits.texts:
            raise RequestError(400, f"{name}: at most {limits.texts} are possible.")
    constraints = [options.prefix, *options.forbidden, *options.required, *options.glossary, *options.glossary.values()]
    if sum(map(len, constraints)) > limits.wishes:
        raise RequestError(
            400, f"prefix, forbidden, required, glossary: at most {limits.wishes:,} characters together."
        )
    return options


class Fields:
    """The fields of a JSON or form body. Each has a list of values."""

    def __init__(self, values: dict[str, list[Any]], list_fields: set[str]) -> None:
        self.values, self.list_fields = values, list_fields  # list_fields: sent as lists, even of one value

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get_list(self, name: str) -> list[str]:
        """All values of a field; empty if it is missing. Raises RequestError if one is not a string."""
        values = self.values.get(name, [])
        if any(not isinstance(value, str) for value in values):
            raise RequestError(400, f"{name} must be a text, or a list of texts.")
        return values

    def get(self, name: str) -> str:
        """The first value of a field as a string; empty if it is missing. Raises RequestError for other types."""
        values = self.values.get(name) or [""]
        if not isinstance(values[0], str | int | float):
            raise RequestError(400, f"{name} must be a text.")
        return str(values[0])

    def get_int(self, name: str) -> int:
        """The value of a field as a number; 0 if it is missing. Raises RequestError."""
        value = self.get(name) or "0"
        if not value.isascii() or not value.isdigit() or len(value) > 4:
            raise RequestError(400, f"{name} must be a number.")
        return int(value)


async def read_fields(request: Request) -> Fields:
    """The fields of a request's body. Raises RequestError."""
    body = await request.body()
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type in ("application/x-www-form-urlencoded", ""):
        try:
            pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
        except ValueError:
            raise RequestError(400, "the form cannot be read; it must be in UTF-8, and have few fields.") from None
        values: dict[str, list[Any]] = {}
        for name, value in pairs:
            values.setdefault(name.removesuffix("[]"), []).append(value)
        return Fields(values, {name for name, field_values in values.items() if len(field_values) > 1})
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise RequestError(415, "send JSON, or a form.")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise RequestError(400, "the body is not JSON.") from None
    if not isinstance(content, dict):
        raise RequestError(400, "the body is not a JSON object.")
    list_fields = {name for name, value in content.items() if isinstance(value, list)}
    return Fields(
        {name: value if name in list_fields else [value] for name, value in content.items() if value is not None},
        list_fields,
    )


def bearer_key(authorization: str) -> str | None:
    """The API key in an Authorization header; None if it has another scheme."""
    scheme, _, key = authorization.partition(" ")
    return key.strip() if scheme.lower() in ("bearer", "deepl-auth-key") else None


async def run_until_disconnect(request: Request, work: Awaitable[T]) -> T:
    """The result of `work`, which is canceled if the client disconnects first. Raises ClientDisconnected."""
    work_task = asyncio.ensure_future(work)
    disconnect_task = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({work_task, disconnect_task}, return_when=asyncio.FIRST_COMPLETED)
        if work_task.done():
            return work_task.result()
        raise ClientDisconnected
    finally:
        disconnect_task.cancel()
        work_task.cancel()


async def run_for_request(request: Request, work: Awaitable[T]) -> T:
    """As run_until_disconnect(), but overload, timeouts and errors of the user are raised as RequestError."""
    try:
        return await run_until_disconnect(request, work)
    except Overloaded as error:
        raise RequestError(
            429, "too many requests are waiting; try again later.", {"Retry-After": str(error.retry_after)}
        ) from None
    except DeadlineExceeded:
        raise RequestError(503, "it took too long; try again later.", {"Retry-After": "5"}) from None
    except RegardError as error:
        raise RequestError(400, str(error)) from None


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


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
            text_tokenizer(model.predictor.run.source_side)
        except RegardError as error:
            raise RequestError(400, str(error)) from None


async def translate_texts(
    model: Model, texts: Sequence[str], options: Options, limits: Limits
) -> list[TextTranslation]:
    """Translate each text sentence by sentence; line breaks and whitespace are kept. Raises RequestError."""
    if model.batcher is None:
        raise RequestError(503, "the models are being loaded.", {"Retry-After": "2"})
    check_reads_text(model)
    if model.predictor is not None:
        try:
            model.predictor.check_options(options)
        except RegardError as error:
            raise RequestError(400, str(error)) from None
    whole = model.predictor is not None and model.predictor.description.whole
    segmented = [[(text, "")] if whole and text.strip() else _segments(text) for text in texts]
    sentences = [sentence for segments in segmented for sentence, _ in segments if sentence]
    try:
        results = iter(await model.batcher.translate(sentences, options, seconds=limits.seconds))
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
