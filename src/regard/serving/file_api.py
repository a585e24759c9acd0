"""A file over HTTP: up in one body, its translation back at the end of a stream of progress. Nothing is kept."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import PurePath
from typing import Any

from regard.documents.document import Document, DocumentLayout, document_kind, read_document
from regard.errors import RegardError
from regard.inference.options import Options
from regard.serving.limits import Limits
from regard.serving.model_pool import Model
from regard.serving.requests import Refused, Translated, translated

AHEAD = 32  # texts that wait in the queue at once


def line(record: dict[str, Any]) -> bytes:
    """One record of a stream."""
    return (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def plain_name(given: str) -> str:
    """A name, never a path: it tells the kind of file, and is told back."""
    name = PurePath(given.replace("\\", "/")).name[-200:]
    return "".join(letter if letter.isprintable() else "_" for letter in name) or "file.txt"


async def opened(content: bytes, plain: str, layout: DocumentLayout, limits: Limits) -> Document:
    """A file that was sent. Raises Refused."""
    try:
        document = await asyncio.to_thread(
            read_document, content, plain, document_kind(PurePath(plain), layout), layout
        )
    except RegardError as error:
        raise Refused(400, str(error)) from None
    if any(len(text) > limits.characters for text in document.texts):
        raise Refused(413, f"a text in it has over {limits.characters:,} characters.")
    return document


async def in_order(model: Model, texts: list[str], options: Options, limits: Limits) -> AsyncIterator[Translated]:
    """Each text's translation, in order, some of them queued ahead. Raises Refused."""
    waiting: list[asyncio.Task[list[Translated]]] = []
    at = 0
    try:
        for _ in texts:
            while at < len(texts) and len(waiting) < AHEAD:
                waiting.append(asyncio.create_task(_patiently(model, texts[at], options, limits)))
                at += 1
            (one,) = await waiting.pop(0)
            yield one
    finally:
        for task in waiting:
            task.cancel()


async def _patiently(model: Model, text: str, options: Options, limits: Limits) -> list[Translated]:
    """One of many waits for its turn instead of being refused."""
    while True:
        try:
            return await translated(model, [text], options, limits)
        except Refused as refused:
            if refused.status != 429:
                raise
            await asyncio.sleep(min(5.0, float(refused.headers.get("Retry-After", "1"))))


async def translated_file(
    document: Document, name: str, model: Model, options: Options, limits: Limits
) -> AsyncIterator[bytes]:
    """Lines of JSON: how many texts are done, and at the end the file, in base64."""
    total = len(document.texts)
    said: list[str | None] = []
    wrong = 0
    yield line({"done": 0, "total": total})
    try:
        async for one in in_order(model, list(document.texts), options, limits):
            wrong += bool(one.wrong)
            said.append(None if one.wrong else one.text)
            yield line({"done": len(said), "total": total})
        content = await asyncio.to_thread(document.write, said)
    except Refused as refused:
        yield line({"error": refused.why})
        return
    stem, dot, suffix = name.rpartition(".")
    into = f"{stem or name}.{model.target or 'translated'}{dot}{suffix if stem else ''}"
    yield line({"name": into, "wrong": wrong, "content": base64.b64encode(content).decode("ascii")})


async def translated_lines(lines: list[str], model: Model, options: Options, limits: Limits) -> AsyncIterator[bytes]:
    """Lines of JSON: each line's translation."""
    number = 0
    try:
        async for one in in_order(model, lines, options, limits):
            number += 1
            yield line({"line": number, "text": one.text} | ({"wrong": one.wrong} if one.wrong else {}))
    except Refused as refused:
        yield line({"error": refused.why})
