"""LibreTranslate's API, for its clients: /translate, /languages, /detect."""

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request

from regard.inference.options import Options
from regard.serving import html_text
from regard.serving.http_requests import Fields, RequestError, read_fields
from regard.serving.language_detection import detect_languages, language_name
from regard.serving.model_pool import ModelPool
from regard.serving.text_translation import TextTranslation

if TYPE_CHECKING:
    from regard.serving.app import Service


def add_to(app: FastAPI, service: "Service") -> None:
    """Register the routes."""

    @app.post(
        "/translate",
        summary="As LibreTranslate: q, source, target, format, alternatives, api_key.",
        description='curl localhost:8000/translate -d "q=A dog runs.&source=en&target=de"',
        tags=["LibreTranslate"],
    )
    async def translate(request: Request) -> dict[str, Any]:
        fields = await read_fields(request)
        service.check_api_key(fields.get("api_key") or None)
        if "q" not in fields and "text" in fields:  # DeepLX clients send other field names to this path
            return await _deeplx(request, service, fields)
        for name in ("q", "target"):
            if name not in fields:
                raise RequestError(400, f"Invalid request: missing {name} parameter")
        is_list = "q" in fields.list_fields
        text_format = fields.get("format") or "text"
        if text_format not in ("text", "html"):
            raise RequestError(400, f"{text_format[:20]} format is not supported")
        alternatives = fields.get_int("alternatives")
        if alternatives + 1 > service.limits.nbest:
            raise RequestError(400, f"at most {service.limits.nbest - 1} alternatives are possible.")
        options = Options(beam=max(5, alternatives + 1), nbest=alternatives + 1)
        source, target = fields.get("source"), fields.get("target")
        translations, model = await _translate(
            request, service, fields.get_list("q"), text_format, options, source, target
        )
        if not translations and not is_list:
            raise RequestError(400, "Invalid request: missing q parameter")
        texts = [text for text, _ in translations]
        record: dict[str, Any] = {"translatedText": texts if is_list else texts[0]}
        if source in ("", "auto"):
            detected = {"confidence": 100, "language": model.source or "und"}
            record["detectedLanguage"] = [detected] * len(texts) if is_list else detected
        if alternatives:
            text_alternatives = [each for _, each in translations]
            record["alternatives"] = text_alternatives if is_list else text_alternatives[0]
        return record

    @app.get("/languages", summary="As LibreTranslate: what can be translated.", tags=["LibreTranslate"])
    async def languages() -> list[dict[str, Any]]:
        return _languages(service.pool)

    @app.post("/detect", summary="As LibreTranslate: which language a text is in.", tags=["LibreTranslate"])
    async def detect(request: Request) -> list[dict[str, Any]]:
        fields = await read_fields(request)
        service.check_api_key(fields.get("api_key") or None)
        text = fields.get("q")
        if not text:
            raise RequestError(400, "Invalid request: missing q parameter")
        return detect_languages(text[: service.limits.characters], service.pool)


async def _translate(
    request: Request,
    service: "Service",
    texts: list[str],
    text_format: str,
    options: Options,
    source: str,
    target: str,
) -> tuple[list[tuple[str, list[str]]], Any]:
    """Each text's translation and its alternatives, and the model."""
    languages = {"source": source, "target": target}
    if text_format == "text":
        model, translations = await service.translate(request, texts, options, **languages)
        return [(_text(each), each.alternatives) for each in translations], model
    markups = [html_text.split(text) for text in texts]
    text_segments = [segment for segments in markups for segment, is_text in segments if is_text]
    model, translations = await service.translate(request, text_segments, options, **languages)
    remaining = iter(translations)
    joined = []
    for segments in markups:
        translated = [next(remaining) for _, is_text in segments if is_text]
        count = max((len(each.alternatives) for each in translated), default=0)
        alternatives = [
            html_text.join(segments, [[each.text, *each.alternatives][: index + 2][-1] for each in translated])
            for index in range(count)
        ]
        joined.append((html_text.join(segments, [_text(each) for each in translated]), alternatives))
    return joined, model


def _text(translation: TextTranslation) -> str:
    """The translated text. Raises RequestError if there is none."""
    if translation.error:
        raise RequestError(400, f"a text could not be translated: {translation.error}.")
    return translation.text


async def _deeplx(request: Request, service: "Service", fields: Fields) -> dict[str, Any]:
    source, target = fields.get("source_lang"), fields.get("target_lang")
    model, translations = await service.translate(
        request, fields.get_list("text")[:1], Options(), source=source.lower(), target=target.lower()
    )
    return {
        "code": 200,
        "data": _text(translations[0]),
        "alternatives": translations[0].alternatives,
        "source_lang": (source or model.source or "").upper(),
        "target_lang": target.upper(),
    }


def _languages(pool: ModelPool) -> list[dict[str, Any]]:
    """All source and target languages, each with the languages it can be translated into."""
    targets: dict[str, set[str]] = {}
    for model in pool.models:
        targets.setdefault(model.source or "auto", set()).update(model.targets or ["auto"])
        for code in model.targets:
            targets.setdefault(code, set())
    return [
        {"code": code, "name": language_name(code), "targets": sorted(codes)} for code, codes in sorted(targets.items())
    ]
