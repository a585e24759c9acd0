"""DeepL's API, for its clients: /v2/translate, /v2/languages, /v2/usage, with its names, limits and status codes."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Header, Request

from regard.inference.options import Options
from regard.serving import html_text
from regard.serving.http_requests import RequestError, read_fields
from regard.serving.language_detection import language_name

if TYPE_CHECKING:
    from regard.serving.app import Service

MAX_TEXTS = 50
MAX_BYTES = 128 << 10
QUOTA = 10**12  # characters; nothing is billed, but clients query the quota


def add_to(app: FastAPI, service: "Service") -> None:
    """Register the routes."""
    Authorization = Annotated[str, Header()]

    @app.post(
        "/v2/translate",
        summary="As DeepL: text, source_lang, target_lang, tag_handling, ignore_tags.",
        description='curl localhost:8000/v2/translate -d "text=A dog runs.&target_lang=DE"',
        tags=["DeepL"],
    )
    async def translate(request: Request, authorization: Authorization = "") -> dict[str, Any]:
        _check_api_key(service, authorization)
        if len(await request.body()) > MAX_BYTES:
            raise RequestError(413, f"Request body exceeds {MAX_BYTES >> 10} KiB.")
        fields = await read_fields(request)
        texts = fields.get_list("text")
        if not texts:
            raise RequestError(400, "Parameter 'text' not specified.")
        if len(texts) > MAX_TEXTS:
            raise RequestError(400, f"Too many texts; at most {MAX_TEXTS}.")
        target = fields.get("target_lang")
        if not target:
            raise RequestError(400, "Value for 'target_lang' not supported.")
        source = fields.get("source_lang")
        handling = fields.get("tag_handling")
        if handling not in ("", "html", "xml"):
            raise RequestError(400, "Value for 'tag_handling' not supported.")
        if "glossary_id" in fields:
            raise RequestError(404, "Glossary not found; there are none here.")
        if fields.get("formality") in ("more", "less"):
            raise RequestError(400, "'formality' is not supported for given 'target_lang'.")
        ignored_tags = [name.strip() for value in fields.get_list("ignore_tags") for name in value.split(",")]
        markups = [html_text.split(text, ignored_tags) if handling else [(text, True)] for text in texts]
        text_segments = [segment for segments in markups for segment, is_text in segments if is_text]
        languages = {"source": source.lower() or None, "target": target.lower()}
        model, translations = await service.translate(request, text_segments, Options(), **languages)
        remaining = iter(translations)
        records = []
        for text, segments in zip(texts, markups, strict=True):
            translated = [next(remaining) for _, is_text in segments if is_text]
            if error := next((each.error for each in translated if each.error), ""):
                raise RequestError(400, f"A text could not be translated: {error}.")
            records.append(
                {
                    "detected_source_language": (source or model.source or "").upper(),
                    "text": html_text.join(segments, [each.text for each in translated])
                    if handling
                    else translated[0].text,
                    # DeepL's clients read this number even if they did not request it.
                    "billed_characters": len(text),
                }
            )
        return {"translations": records}

    @app.get("/v2/languages", summary="As DeepL: source or target languages.", tags=["DeepL"])
    async def languages(type: str = "source", authorization: Authorization = "") -> list[dict[str, Any]]:  # noqa: A002
        _check_api_key(service, authorization)
        if type not in ("source", "target"):
            raise RequestError(400, "Value for 'type' not supported.")
        codes = {
            code for model in service.pool.models for code in (model.sources if type == "source" else model.targets)
        }
        extra = {"supports_formality": False} if type == "target" else {}
        return [{"language": code.upper(), "name": language_name(code), **extra} for code in sorted(codes)]

    @app.get("/v2/usage", summary="As DeepL: characters translated so far.", tags=["DeepL"])
    async def usage(authorization: Authorization = "") -> dict[str, int]:
        _check_api_key(service, authorization)
        used = sum(model.batcher.counters.characters for model in service.pool.models if model.batcher is not None)
        return {"character_count": used, "character_limit": QUOTA}


def _check_api_key(service: "Service", authorization: str) -> None:
    scheme, _, key = authorization.partition(" ")
    service.check_api_key(key.strip() if scheme.lower() == "deepl-auth-key" else None)
