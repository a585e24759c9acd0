"""From a request to results: checked, queued with those of others, answered, or left when its client leaves."""

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
from regard.serving.batching import Late, Overloaded
from regard.serving.limits import Limits
from regard.serving.model_pool import Model

T = TypeVar("T")
MOST_FIELDS = 1000


class Refused(Exception):  # noqa: N818
    """A request that is answered with an error: a status and a sentence."""

    def __init__(self, status: int, why: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(why)
        self.status, self.why, self.headers = status, why, headers or {}


class Left(Exception):  # noqa: N818
    """The client has gone."""


def checked(texts: Sequence[Any], limits: Limits) -> list[str]:
    """The texts of a request. Raises Refused."""
    if len(texts) > limits.texts:
        raise Refused(413, f"{len(texts):,} texts are too many for one request; at most {limits.texts}.")
    total = 0
    for text in texts:
        if not isinstance(text, str):
            raise Refused(400, "a text is not a string.")
        total += len(text)
    if total > limits.characters:
        raise Refused(413, f"{total:,} characters are too many for one request; at most {limits.characters:,}.")
    return list(texts)


def applicable_options(predictor: Predictor | None, **given: Any) -> Options:
    """Options by name, of which those that do not apply to a model are left out. Raises Refused."""
    if predictor is not None:
        given = {
            name: value for name, value in given.items() if group_of(name) in predictor.task.options and value != ""
        }
    try:
        return Options(**given)
    except RegardError as error:
        raise Refused(400, str(error)) from None


def within(options: Options, limits: Limits) -> Options:
    """Options that are allowed. Raises Refused."""
    if not 1 <= options.beam <= limits.beam:
        raise Refused(400, f"beam: it must be between 1 and {limits.beam}.")
    if not 1 <= options.nbest <= limits.nbest:
        raise Refused(400, f"nbest: it must be between 1 and {limits.nbest}.")
    for name in ("forbidden", "required", "glossary"):
        if len(getattr(options, name)) > limits.texts:
            raise Refused(400, f"{name}: at most {limits.texts} are possible.")
    wishes = [options.prefix, *options.forbidden, *options.required, *options.glossary, *options.glossary.values()]
    if sum(map(len, wishes)) > limits.wishes:
        raise Refused(400, f"prefix, forbidden, required, glossary: at most {limits.wishes:,} characters together.")
    return options


class Fields:
    """What a body in JSON or a form has, each field a list of what was given for it."""

    def __init__(self, values: dict[str, list[Any]], lists: set[str]) -> None:
        self.values, self.lists = values, lists  # lists: the fields that were lists, even of one

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def all(self, name: str) -> list[str]:
        """All that was given for it. Raises Refused if that is not texts."""
        found = self.values.get(name, [])
        if any(not isinstance(each, str) for each in found):
            raise Refused(400, f"{name} must be a text, or a list of texts.")
        return found

    def one(self, name: str) -> str:
        """The first that was given for it, numbers as they are written; empty if nothing was. Raises Refused."""
        found = self.values.get(name) or [""]
        if not isinstance(found[0], str | int | float):
            raise Refused(400, f"{name} must be a text.")
        return str(found[0])

    def number(self, name: str) -> int:
        """A number, 0 if none was given. Raises Refused."""
        value = self.one(name) or "0"
        if not value.isascii() or not value.isdigit() or len(value) > 4:
            raise Refused(400, f"{name} must be a number.")
        return int(value)


async def given_fields(request: Request) -> Fields:
    """The fields of a request's body. Raises Refused."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("application/x-www-form-urlencoded", ""):
        try:
            pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
        except ValueError:
            raise Refused(400, "the form cannot be read; it must be in UTF-8, and have few fields.") from None
        values: dict[str, list[Any]] = {}
        for name, value in pairs:
            values.setdefault(name.removesuffix("[]"), []).append(value)
        return Fields(values, {name for name, given in values.items() if len(given) > 1})
    if kind != "application/json" and not kind.endswith("+json"):
        raise Refused(415, "send JSON, or a form.")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not JSON.") from None
    if not isinstance(content, dict):
        raise Refused(400, "the body is not a JSON object.")
    lists = {name for name, value in content.items() if isinstance(value, list)}
    return Fields(
        {name: value if name in lists else [value] for name, value in content.items() if value is not None}, lists
    )


def bearer(authorization: str) -> str | None:
    """The key in a header Authorization."""
    kind, _, key = authorization.partition(" ")
    return key.strip() if kind.lower() in ("bearer", "deepl-auth-key") else None


async def until_left(request: Request, work: Awaitable[T]) -> T:
    """The work's result; if the client leaves first, the work is cancelled, and Left raised."""
    doing = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({doing, watching}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        raise Left
    finally:
        watching.cancel()
        doing.cancel()


async def answered(request: Request, work: Awaitable[T]) -> T:
    """The work's result, or what kept it from being done as Refused."""
    try:
        return await until_left(request, work)
    except Overloaded as full:
        raise Refused(
            429, "too many requests are waiting; try again later.", {"Retry-After": str(full.after)}
        ) from None
    except Late:
        raise Refused(503, "it took too long; try again later.", {"Retry-After": "5"}) from None
    except RegardError as error:
        raise Refused(400, str(error)) from None


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


@dataclass(frozen=True)
class Translated:
    """One text's sentences, each with its result and the white space after it; None where there is only that."""

    source: str
    parts: list[tuple[Result | None, str]]

    @property
    def sentences(self) -> list[Result]:
        """What was translated."""
        return [result for result, _ in self.parts if result is not None]

    @property
    def wrong(self) -> str:
        """Why there is no translation; empty if there is one."""
        return next((result.error for result in self.sentences if result.error), "")

    @property
    def text(self) -> str:
        """The whole translation."""
        return "".join((result.text if result is not None else "") + after for result, after in self.parts)

    @property
    def others(self) -> list[str]:
        """The next best: of each sentence the second, then the third, ..., as far as each has them."""
        count = max((len(result.others) for result in self.sentences), default=0)
        return [
            "".join((_nth(result, number) if result is not None else "") + after for result, after in self.parts)
            for number in range(count)
        ]


def _nth(result: Result, number: int) -> str:
    if not result.others:
        return result.text
    return result.others[min(number, len(result.others) - 1)].text


def check_reads_text(model: Model) -> None:
    """Raises Refused for a model that would take a text for the name of a file of this machine."""
    if model.predictor is not None:
        try:
            text_tokenizer(model.predictor.run.source_side)
        except RegardError as error:
            raise Refused(400, str(error)) from None


async def translated(model: Model, texts: Sequence[str], options: Options, limits: Limits) -> list[Translated]:
    """Of each text; its lines stay lines, and its sentences are translated one by one. Raises Refused."""
    if model.batcher is None:
        raise Refused(503, "the models are being loaded.", {"Retry-After": "2"})
    check_reads_text(model)
    if model.predictor is not None:
        try:
            model.predictor.check_options(options)
        except RegardError as error:
            raise Refused(400, str(error)) from None
    whole = model.predictor is not None and model.predictor.description.whole
    plans = [[(text, "")] if whole and text.strip() else _plan(text) for text in texts]
    parts = [part for plan in plans for part, _ in plan if part]
    try:
        found = iter(await model.batcher.translate(parts, options, seconds=limits.seconds))
    except Overloaded as full:
        after = {"Retry-After": str(full.after)}
        raise Refused(429, "too many requests are waiting; try again later.", after) from None
    except Late:
        raise Refused(503, "it took too long; try again later.", {"Retry-After": "5"}) from None
    except RegardError as error:
        raise Refused(400, str(error)) from None
    return [
        Translated(text, [(next(found) if part else None, after) for part, after in plan])
        for text, plan in zip(texts, plans, strict=True)
    ]


def _plan(text: str) -> list[tuple[str, str]]:
    """Sentences, each with what follows it; white space before the first one follows an empty one."""
    plan: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        body = line.strip()
        if not body:
            plan.append(("", line))
            continue
        start = line.index(body[0])
        if start:
            plan.append(("", line[:start]))
        parts = split_sentences(body)
        plan += parts[:-1]
        plan.append((parts[-1][0], parts[-1][1] + line[start + len(body) :]))
    return plan
