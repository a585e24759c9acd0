"""DeepL's API, for its clients: /v2/translate, /v2/languages, /v2/usage, with its names, limits and status codes."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Header, Request

from regard.inference.options import Options
from regard.serving import html_text as html
from regard.serving.language_detection import name_of
from regard.serving.requests import Refused, given_fields

if TYPE_CHECKING:
    from regard.serving.app import Service

MOST_TEXTS = 50
MOST_BYTES = 128 << 10
QUOTA = 10**12  # characters: nobody is billed here, but clients ask


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
        _admit(service, authorization)
        if len(await request.body()) > MOST_BYTES:
            raise Refused(413, f"Request body exceeds {MOST_BYTES >> 10} KiB.")
        fields = await given_fields(request)
        texts = fields.all("text")
        if not texts:
            raise Refused(400, "Parameter 'text' not specified.")
        if len(texts) > MOST_TEXTS:
            raise Refused(400, f"Too many texts; at most {MOST_TEXTS}.")
        target = fields.one("target_lang")
        if not target:
            raise Refused(400, "Value for 'target_lang' not supported.")
        source = fields.one("source_lang")
        handling = fields.one("tag_handling")
        if handling not in ("", "html", "xml"):
            raise Refused(400, "Value for 'tag_handling' not supported.")
        if "glossary_id" in fields:
            raise Refused(404, "Glossary not found; there are none here.")
        if fields.one("formality") in ("more", "less"):
            raise Refused(400, "'formality' is not supported for given 'target_lang'.")
        ignored = [name.strip() for given in fields.all("ignore_tags") for name in given.split(",")]
        parts = [html.split(text, ignored) if handling else [(text, True)] for text in texts]
        flat = [part for each in parts for part, is_text in each if is_text]
        which = {"source": source.lower() or None, "target": target.lower()}
        model, found = await service.translate(request, flat, Options(), **which)
        waiting = iter(found)
        answers = []
        for text, each in zip(texts, parts, strict=True):
            own = [next(waiting) for _, is_text in each if is_text]
            if wrong := next((one.wrong for one in own if one.wrong), ""):
                raise Refused(400, f"A text could not be translated: {wrong}.")
            said = html.join(each, [one.text for one in own]) if handling else own[0].text
            answers.append(
                {
                    "detected_source_language": (source or model.source or "").upper(),
                    "text": said,
                    # A client of theirs reads this number whether it was asked for or not.
                    "billed_characters": len(text),
                }
            )
        return {"translations": answers}

    @app.get("/v2/languages", summary="As DeepL: source or target languages.", tags=["DeepL"])
    async def languages(type: str = "source", authorization: Authorization = "") -> list[dict[str, Any]]:  # noqa: A002
        _admit(service, authorization)
        if type not in ("source", "target"):
            raise Refused(400, "Value for 'type' not supported.")
        codes = {getattr(model, type) for model in service.pool.models} - {None}
        extra = {"supports_formality": False} if type == "target" else {}
        return [{"language": code.upper(), "name": name_of(code), **extra} for code in sorted(codes)]

    @app.get("/v2/usage", summary="As DeepL: characters translated so far.", tags=["DeepL"])
    async def usage(authorization: Authorization = "") -> dict[str, int]:
        _admit(service, authorization)
        used = sum(model.batcher.count.characters for model in service.pool.models if model.batcher is not None)
        return {"character_count": used, "character_limit": QUOTA}


def _admit(service: "Service", authorization: str) -> None:
    kind, _, key = authorization.partition(" ")
    service.admit(key.strip() if kind.lower() == "deepl-auth-key" else None)
