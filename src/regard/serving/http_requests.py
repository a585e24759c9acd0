"""Requests and their errors: limits, body fields, API keys, and cancellation when the client disconnects."""

import asyncio
import json
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request

from regard.errors import RegardError
from regard.inference.options import Options, group_of
from regard.inference.predictor import Predictor
from regard.serving.batcher import DeadlineExceeded, Overloaded
from regard.serving.limits import Limits

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
    if sum(map(len, constraints)) > limits.constraint_characters:
        raise RequestError(
            400, f"prefix, forbidden, required, glossary: at most {limits.constraint_characters:,} characters together."
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
