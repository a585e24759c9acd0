"""The service: its own API, its health, and the doors of the others."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import FastAPI, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, create_model
from starlette.exceptions import HTTPException

from regard import __version__
from regard.data.vocabulary import text_tokenizer
from regard.documents.document import DocumentLayout
from regard.documents.formats.text import LINE_ENDS
from regard.errors import RegardError
from regard.inference.options import Options
from regard.runs.layout import resolve_layout
from regard.serving import attention_api as seeing
from regard.serving import deepl, libretranslate, pages
from regard.serving import file_api as files
from regard.serving import media_api as media
from regard.serving.api_keys import Keys
from regard.serving.limits import Limits
from regard.serving.middleware import App, Guard, Slow, TooLarge
from regard.serving.model_pool import Model, ModelNotFoundError, ModelPool
from regard.serving.option_fields import form_fields, options_from, options_in_query, query_parameters
from regard.serving.prometheus import Metrics
from regard.serving.requests import (
    Left,
    Refused,
    Translated,
    bearer,
    check_reads_text,
    checked,
    translated,
    until_left,
    within,
)
from regard.views.storage import as_record as as_attention


class _Inputs(BaseModel):
    """What to predict from."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str | list[str], Field(description="A text, or several.", examples=["A dog runs in the park."])]
    model: Annotated[str | None, Field(description="By name; otherwise by languages.")] = None
    source: Annotated[str | None, Field(description="A language, or auto where only one fits.")] = None
    target: str | None = None


# The body of a request: the inputs, and every decoding option with its type, bounds, default and help text.
OPTION_FIELDS: dict[str, Any] = {name: (field.annotation, field) for name, field in Options.model_fields.items()}
PredictionRequest: Any = create_model("PredictionRequest", __base__=_Inputs, **OPTION_FIELDS)


def requested_options(body: Any) -> Options:
    """The decoding options that a request's body sets. Raises Refused."""
    return options_from({name: getattr(body, name) for name in body.model_fields_set & set(Options.model_fields)})


def as_record(one: Translated, model: Model) -> dict[str, Any]:
    """What is told of a text."""
    sentences = []
    for result in one.sentences:
        source = result.source.encode("utf-8", "replace").decode("utf-8")  # half a character has no place in JSON
        record: dict[str, Any] = {"source": source, "text": result.text, "score": result.score}
        record["others"] = [{"text": other.text, "score": other.score} for other in result.others]
        if model.predictor is not None and (result.token_scores is not None or result.attention is not None):
            record["tokens"] = model.predictor.run.target_side.pieces(result.tokens)
            record["source_tokens"] = text_tokenizer(model.predictor.run.source_side).pieces(result.source_tokens)
        if result.token_scores is not None:
            record["token_scores"] = result.token_scores
        if result.alignment is not None:
            record["alignment"] = result.alignment
        if result.attention is not None:
            record["attention"] = as_attention(result.attention)
        for name, value in (("missing", result.missing), ("wrong", result.error)):
            if value:
                record[name] = value
        sentences.append(record)
    record = {"text": one.text, "others": one.others, "sentences": sentences}
    return {**record, "wrong": one.wrong} if one.wrong else record


class Service:
    """Everything that the routes share."""

    def __init__(self, pool: ModelPool, limits: Limits, keys: Keys) -> None:
        self.pool, self.limits, self.keys = pool, limits, keys
        self.metrics = Metrics()

    def admit(self, key: str | None) -> None:
        """Raises Refused if a key is asked for and this is none."""
        if not self.keys.fits(key):
            raise Refused(403, "this needs an API key that is known here.")

    def allowed(self, options: Options, model: Model) -> Options:
        """Options that the limits allow and that apply to a model. Raises Refused."""
        within(options, self.limits)
        if model.predictor is not None:
            try:
                model.predictor.check_options(options)
            except RegardError as error:
                raise Refused(400, str(error)) from None
        return options

    async def translate(
        self, request: Request, texts: list[Any], options: Options, **which: str | None
    ) -> tuple[Model, list[Translated]]:
        """For a request that was admitted. Raises Refused, or Left."""
        asked = checked(texts, self.limits)
        within(options, self.limits)
        try:
            model = self.pool.find(**which)
        except ModelNotFoundError as error:
            raise Refused(400, str(error)) from None
        check_reads_text(model)
        options = self.allowed(options, model)
        return model, await until_left(request, translated(model, asked, options, self.limits))


def new_app(
    pool: ModelPool,
    *,
    limits: Limits | None = None,
    keys: Keys | None = None,
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]"),
    origins: tuple[str, ...] = (),
    log: bool = False,
) -> App:
    """The whole application."""
    service = Service(pool, limits or Limits(), keys or Keys(None))

    @contextlib.asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(pool.load())
        yield
        loading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loading
        await pool.stop()

    app = FastAPI(title="regard", version=__version__, lifespan=life, docs_url=None, redoc_url=None)
    _own_routes(app, service)
    libretranslate.add_to(app, service)
    deepl.add_to(app, service)
    seeing.add_to(app, service)
    media.add_to(app, service)
    pages.add_to(app)
    _errors(app)

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    return Guard(
        app, limits=service.limits, hosts=hosts, origins=origins, log=tell if log else None, seen=service.metrics.seen
    )


def _own_routes(app: FastAPI, service: Service) -> None:
    pool = service.pool

    @app.get("/health", summary="Whether the service is alive.")
    async def health() -> dict[str, str]:
        return {"status": "alive", "version": __version__}

    @app.get("/ready", summary="Whether all models are loaded.")
    async def ready() -> Response:
        if pool.ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "failed" if pool.load_error else "loading", "why": pool.load_error}, 503)

    @app.get("/metrics", summary="For Prometheus.")
    async def metrics() -> Response:
        return PlainTextResponse(service.metrics.text(pool), media_type="text/plain; version=0.0.4")

    @app.get("/v1/models", summary="What there is to translate with.")
    async def list_models() -> dict[str, Any]:
        return {
            "models": [
                {
                    "name": model.name,
                    "source": model.source,
                    "target": model.target,
                    "engine": model.engine,
                    **model.metadata,
                }
                for model in pool.models
            ],
            "option_fields": form_fields(service.limits),
            "limits": asdict(service.limits),
            "needs_key": service.keys.asked,
        }

    @app.post(
        "/v1/translate",
        summary="Translate texts; keys go into the header Authorization: Bearer.",
        description="""curl localhost:8000/v1/translate -H "content-type: application/json" -d '{"text": "A dog."}'""",
    )
    async def translate(
        asked: PredictionRequest, request: Request, authorization: Annotated[str, Header()] = ""
    ) -> dict[str, Any]:
        service.admit(bearer(authorization))
        texts = [asked.text] if isinstance(asked.text, str) else asked.text
        which = {"name": asked.model, "source": asked.source, "target": asked.target}
        model, found = await service.translate(request, texts, requested_options(asked), **which)
        return {"model": model.name, "translations": [as_record(one, model) for one in found]}

    @app.post(
        "/v1/lines",
        summary="Translate a long text, the body, line by line; each is answered when it is done.",
        description="curl localhost:8000/v1/lines --data-binary @book.txt",
        openapi_extra={"parameters": query_parameters()},
    )
    async def lines(
        request: Request,
        model: str | None = None,
        source: str | None = None,
        target: str | None = None,
        authorization: Annotated[str, Header()] = "",
    ) -> Response:
        service.admit(bearer(authorization))
        try:
            chosen = pool.find(name=model, source=source, target=target)
            text = (await request.body()).decode("utf-8")
        except ModelNotFoundError as error:
            raise Refused(400, str(error)) from None
        except UnicodeDecodeError:
            raise Refused(400, "the body is not text in UTF-8.") from None
        check_reads_text(chosen)
        options = service.allowed(options_in_query(request), chosen)
        given = LINE_ENDS.split(text)
        given = given[:-1] if given[-1] == "" else given
        if any(len(line) > service.limits.characters for line in given):
            raise Refused(413, f"a line has over {service.limits.characters:,} characters.")
        lines_of = files.translated_lines(given, chosen, options, service.limits)
        return StreamingResponse(lines_of, media_type="application/x-ndjson")

    @app.post(
        "/v1/file",
        summary="Translate a file, the body: its progress line by line, then the file in base64.",
        description='curl "localhost:8000/v1/file?name=app.po" --data-binary @app.po',
        openapi_extra={"parameters": query_parameters()},
    )
    async def file(
        request: Request,
        name: str,
        model: str | None = None,
        source: str | None = None,
        target: str | None = None,
        column: Annotated[str | None, Query(description="Of a table: the text's, by name or from 1.")] = None,
        authorization: Annotated[str, Header()] = "",
    ) -> Response:
        service.admit(bearer(authorization))
        try:
            chosen = pool.find(name=model, source=source, target=target)
        except ModelNotFoundError as error:
            raise Refused(400, str(error)) from None
        check_reads_text(chosen)
        options = service.allowed(options_in_query(request), chosen)
        plain = files.plain_name(name)
        own = resolve_layout(chosen.folder, None, None, column, None)  # a run that answers has columns of its own
        place = own.source_column if column is not None or own.question_column is not None else None
        layout = DocumentLayout(chosen.source or source, chosen.target or target, place, own.question_column)
        document = await files.opened(await request.body(), plain, layout, service.limits)
        content = files.translated_file(document, plain, chosen, options, service.limits)
        return StreamingResponse(content, media_type="application/x-ndjson")


def _errors(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        name = "message" if request.url.path.startswith("/v2/") else "error"
        return JSONResponse({name: error.why}, error.status, headers=error.headers)

    @app.exception_handler(TooLarge)
    async def large(request: Request, error: TooLarge) -> Response:
        return JSONResponse({"error": "the body is larger than is allowed."}, 413, headers={"connection": "close"})

    @app.exception_handler(Slow)
    async def slow(request: Request, error: Slow) -> Response:
        return JSONResponse({"error": "the body did not come in time."}, 408, headers={"connection": "close"})

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        what = {404: "there is nothing here; see /docs", 405: "this is asked for in another way; see /docs"}
        said = what.get(error.status_code, str(error.detail).lower().rstrip("."))
        return JSONResponse({"error": f"{said}."}, error.status_code, headers=error.headers)

    @app.exception_handler(Left)
    async def left(request: Request, error: Left) -> Response:
        return Response(status_code=499)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return JSONResponse({"error": "the body is not JSON."}, 400)
        if first["loc"] == ("body",):
            return JSONResponse(
                {"error": "the body is to be an object in JSON, with the header content-type: application/json."}, 400
            )
        where = ".".join(str(part) for part in first["loc"] if part not in ("body", "str", "list[str]"))
        what = first["msg"].lower()
        return JSONResponse({"error": f"{where}: {what}." if where else f"{what}."}, 400)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": "something went wrong here; it is in the log."}, 500)
