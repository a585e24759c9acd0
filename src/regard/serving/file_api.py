"""Translation of files over HTTP: the response streams progress, then the translated file. Nothing is stored."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import PurePath
from typing import Any

from regard.documents.document import Document, DocumentLayout, document_format, read_document
from regard.errors import RegardError
from regard.inference.options import Options
from regard.serving.http_requests import RequestError
from regard.serving.limits import Limits
from regard.serving.model_pool import Model
from regard.serving.text_translation import TextTranslation, translate_texts

MAX_QUEUED = 32  # texts of one request that are in the queue at once


def json_line(record: dict[str, Any]) -> bytes:
    """A record as one line of JSON."""
    return (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def safe_file_name(name: str) -> str:
    """A printable name without a path. Its suffix selects the format, and it is part of the response."""
    name = PurePath(name.replace("\\", "/")).name[-200:]
    return "".join(letter if letter.isprintable() else "_" for letter in name) or "file.txt"


async def open_document(content: bytes, name: str, layout: DocumentLayout, limits: Limits) -> Document:
    """Parse an uploaded file. Raises RequestError."""
    try:
        document = await asyncio.to_thread(
            read_document, content, name, document_format(PurePath(name), layout), layout
        )
    except RegardError as error:
        raise RequestError(400, str(error)) from None
    if any(len(text) > limits.characters for text in document.texts):
        raise RequestError(413, f"a text in it has over {limits.characters:,} characters.")
    return document


async def translate_in_order(
    model: Model, texts: list[str], options: Options, limits: Limits
) -> AsyncIterator[TextTranslation]:
    """Translations of the texts, in order; MAX_QUEUED are queued ahead. Raises RequestError."""
    tasks: list[asyncio.Task[list[TextTranslation]]] = []
    queued = 0
    try:
        for _ in texts:
            while queued < len(texts) and len(tasks) < MAX_QUEUED:
                tasks.append(asyncio.create_task(_translate_with_retry(model, texts[queued], options, limits)))
                queued += 1
            (translation,) = await tasks.pop(0)
            yield translation
    finally:
        for task in tasks:
            task.cancel()


async def _translate_with_retry(model: Model, text: str, options: Options, limits: Limits) -> list[TextTranslation]:
    """The translation of one text; if the queue is full, tries again later."""
    while True:
        try:
            return await translate_texts(model, [text], options, limits)
        except RequestError as error:
            if error.status != 429:
                raise
            await asyncio.sleep(min(5.0, float(error.headers.get("Retry-After", "1"))))


async def stream_translated_file(
    document: Document, name: str, model: Model, options: Options, limits: Limits
) -> AsyncIterator[bytes]:
    """Lines of JSON: the number of translated texts, and at the end the file in base64."""
    total = len(document.texts)
    translations: list[str | None] = []
    failed = 0
    yield json_line({"done": 0, "total": total})
    try:
        async for translation in translate_in_order(model, list(document.texts), options, limits):
            failed += bool(translation.error)
            translations.append(None if translation.error else translation.text)
            yield json_line({"done": len(translations), "total": total})
        content = await asyncio.to_thread(document.write, translations)
    except RequestError as error:
        yield json_line({"error": error.message})
        return
    stem, dot, suffix = name.rpartition(".")
    translated_name = f"{stem or name}.{model.target or 'translated'}{dot}{suffix if stem else ''}"
    yield json_line({"name": translated_name, "failed": failed, "content": base64.b64encode(content).decode("ascii")})


async def stream_translated_lines(
    lines: list[str], model: Model, options: Options, limits: Limits
) -> AsyncIterator[bytes]:
    """Lines of JSON: the translation of each line."""
    number = 0
    try:
        async for translation in translate_in_order(model, lines, options, limits):
            number += 1
            failure = {"error": translation.error} if translation.error else {}
            yield json_line({"line": number, "text": translation.text, **failure})
    except RequestError as error:
        yield json_line({"error": error.message})
