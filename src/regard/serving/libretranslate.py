"""LibreTranslate's API, for its clients: /translate, /languages, /detect."""

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request

from regard.inference.options import Options
from regard.serving import html_text as html
from regard.serving.language_detection import detected, name_of
from regard.serving.model_pool import ModelPool
from regard.serving.requests import Fields, Refused, Translated, given_fields

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
        fields = await given_fields(request)
        service.admit(fields.one("api_key") or None)
        if "q" not in fields and "text" in fields:  # DeepLX sends other names to this path
            return await _deeplx(request, service, fields)
        for name in ("q", "target"):
            if name not in fields:
                raise Refused(400, f"Invalid request: missing {name} parameter")
        many = "q" in fields.lists
        kind = fields.one("format") or "text"
        if kind not in ("text", "html"):
            raise Refused(400, f"{kind[:20]} format is not supported")
        alternatives = fields.number("alternatives")
        if alternatives + 1 > service.limits.nbest:
            raise Refused(400, f"at most {service.limits.nbest - 1} alternatives are possible.")
        options = Options(beam=max(5, alternatives + 1), nbest=alternatives + 1)
        source, target = fields.one("source"), fields.one("target")
        answers, model = await _translated(request, service, fields.all("q"), kind, options, source, target)
        if not answers and not many:
            raise Refused(400, "Invalid request: missing q parameter")
        texts = [text for text, _ in answers]
        record: dict[str, Any] = {"translatedText": texts if many else texts[0]}
        if source in ("", "auto"):
            found = {"confidence": 100, "language": model.source or "und"}
            record["detectedLanguage"] = [found] * len(texts) if many else found
        if alternatives:
            others = [each for _, each in answers]
            record["alternatives"] = others if many else others[0]
        return record

    @app.get("/languages", summary="As LibreTranslate: what can be translated.", tags=["LibreTranslate"])
    async def languages() -> list[dict[str, Any]]:
        return _languages(service.pool)

    @app.post("/detect", summary="As LibreTranslate: which language a text is in.", tags=["LibreTranslate"])
    async def detect(request: Request) -> list[dict[str, Any]]:
        fields = await given_fields(request)
        service.admit(fields.one("api_key") or None)
        text = fields.one("q")
        if not text:
            raise Refused(400, "Invalid request: missing q parameter")
        return detected(text[: service.limits.characters], service.pool)


async def _translated(
    request: Request, service: "Service", texts: list[str], kind: str, options: Options, source: str, target: str
) -> tuple[list[tuple[str, list[str]]], Any]:
    """Each text's translation and its alternatives, and the model."""
    which = {"source": source, "target": target}
    if kind == "text":
        model, found = await service.translate(request, texts, options, **which)
        return [(_said(one), one.others) for one in found], model
    parts = [html.split(text) for text in texts]
    model, found = await service.translate(
        request, [part for each in parts for part, is_text in each if is_text], options, **which
    )
    waiting = iter(found)
    answers = []
    for each in parts:
        own = [next(waiting) for _, is_text in each if is_text]
        count = max((len(one.others) for one in own), default=0)
        others = [
            html.join(each, [[one.text, *one.others][: number + 2][-1] for one in own]) for number in range(count)
        ]
        answers.append((html.join(each, [_said(one) for one in own]), others))
    return answers, model


def _said(one: Translated) -> str:
    if one.wrong:
        raise Refused(400, f"a text could not be translated: {one.wrong}.")
    return one.text


async def _deeplx(request: Request, service: "Service", fields: Fields) -> dict[str, Any]:
    source, target = fields.one("source_lang"), fields.one("target_lang")
    model, found = await service.translate(
        request, fields.all("text")[:1], Options(), source=source.lower(), target=target.lower()
    )
    return {
        "code": 200,
        "data": _said(found[0]),
        "alternatives": found[0].others,
        "source_lang": (source or model.source or "").upper(),
        "target_lang": target.upper(),
    }


def _languages(pool: ModelPool) -> list[dict[str, Any]]:
    """Every language that is a source or a target, with what it can be translated into."""
    targets: dict[str, set[str]] = {}
    for model in pool.models:
        targets.setdefault(model.source or "auto", set()).add(model.target or "auto")
        if model.target is not None:
            targets.setdefault(model.target, set())
    return [{"code": code, "name": name_of(code), "targets": sorted(of)} for code, of in sorted(targets.items())]
