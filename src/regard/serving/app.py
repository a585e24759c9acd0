"""The HTTP application: our own API, health and metrics, error responses.

The routes for media and attention, the APIs of LibreTranslate and DeepL, and the pages are in their own modules.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import FastAPI, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.exceptions import HTTPException

from regard import __version__
from regard.data.vocabulary import text_tokenizer
from regard.documents.document import DocumentLayout
from regard.documents.formats.text import LINE_ENDS
from regard.errors import RegardError
from regard.inference.options import Options
from regard.renames import PATHS
from regard.runs.table_layout import resolve_layout
from regard.serving import attention_api, deepl, file_api, forecast_api, libretranslate, media_api, pages
from regard.serving.api_keys import ApiKeys
from regard.serving.file_decoder import FileDecoder
from regard.serving.http_requests import (
    ClientDisconnected,
    RequestError,
    bearer_key,
    check_limits,
    run_until_disconnect,
    validate_texts,
)
from regard.serving.limits import Limits
from regard.serving.middleware import App, BodyTimeout, BodyTooLarge, RequestMiddleware
from regard.serving.model_pool import Model, ModelNotFoundError, ModelPool
from regard.serving.prometheus import Metrics
from regard.serving.request_schema import (
    form_fields,
    options_in_query,
    prediction_request,
    query_parameters,
    requested_options,
    unknown_field,
)
from regard.serving.text_translation import TextTranslation, check_reads_text, translate_texts
from regard.views.storage import to_record as attention_record


def translation_record(translation: TextTranslation, model: Model) -> dict[str, Any]:
    """The JSON of one text's translation."""
    sentences = []
    for result in translation.sentences:
        source = result.source.encode("utf-8", "replace").decode("utf-8")  # JSON cannot hold a lone surrogate
        record: dict[str, Any] = {"source": source, "text": result.text, "score": result.score}
        record["alternatives"] = [{"text": each.text, "score": each.score} for each in result.alternatives]
        if model.predictor is not None and (result.token_scores is not None or result.attention is not None):
            record["tokens"] = model.predictor.run.target_vocabulary.pieces(result.tokens)
            record["source_tokens"] = text_tokenizer(model.predictor.run.source_processor).pieces(result.source_tokens)
        if result.token_scores is not None:
            record["token_scores"] = result.token_scores
        if result.alignment is not None:
            record["alignment"] = result.alignment
        if result.attention is not None:
            record["attention"] = attention_record(result.attention)
        for name, value in (("missing", result.missing), ("error", result.error)):
            if value:
                record[name] = value
        sentences.append(record)
    record = {"text": translation.text, "alternatives": translation.alternatives, "sentences": sentences}
    return {**record, "error": translation.error} if translation.error else record


# Groups of options for outputs that a stream of lines and a translated file do not have.
RICH_OUTPUT = ("nbest", "scores", "alignment", "attention")


class Service:
    """What all routes share: models, limits, API keys and metrics."""

    def __init__(self, pool: ModelPool, limits: Limits, api_keys: ApiKeys) -> None:
        self.pool, self.limits, self.api_keys = pool, limits, api_keys
        self.metrics = Metrics()

    def check_api_key(self, key: str | None) -> None:
        """Raises RequestError if a key is required and this one is not valid."""
        if not self.api_keys.is_valid(key):
            raise RequestError(403, "this needs an API key that is known here.")

    def validate_options(self, options: Options, model: Model) -> Options:
        """The options, unchanged. Raises RequestError if they exceed the limits or do not apply to the model."""
        check_limits(options, self.limits)
        if model.predictor is not None:
            try:
                model.predictor.resolve_options(options)
            except RegardError as error:
                raise RequestError(400, str(error)) from None
            known = model.predictor.description.target_languages
            if options.to and options.to not in known:
                languages = ", ".join(known) or "one language"
                raise RequestError(400, f"to: there is no {options.to[:40]!r}; this model has {languages}.")
        return options

    async def translate(
        self, request: Request, texts: list[Any], options: Options, **selection: str | None
    ) -> tuple[Model, list[TextTranslation]]:
        """Translate the texts of a request whose key was checked; selection: arguments of ModelPool.find().

        Raises RequestError or ClientDisconnected.
        """
        texts = validate_texts(texts, self.limits)
        check_limits(options, self.limits)
        try:
            model = self.pool.find(**selection)
        except ModelNotFoundError as error:
            raise RequestError(400, str(error)) from None
        language = model.target_language(selection.get("target"))
        if language and not options.to:
            options = options.with_changes(to=language)
        options = self.validate_options(options, model)
        return model, await run_until_disconnect(request, translate_texts(model, texts, options, self.limits))


def create_app(
    pool: ModelPool,
    *,
    limits: Limits | None = None,
    api_keys: ApiKeys | None = None,
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]"),
    origins: tuple[str, ...] = (),
    log: bool = False,
) -> App:
    """The application with all routes. hosts: names in the Host header that are accepted. origins: for CORS."""
    service = Service(pool, limits or Limits(), api_keys or ApiKeys(None))

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(pool.load())
        yield
        loading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loading
        await pool.stop()

    app = FastAPI(title="regard", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    _add_routes(app, service)
    libretranslate.add_to(app, service)
    deepl.add_to(app, service)
    attention_api.add_to(app, service)
    decoder = FileDecoder(service.limits.seconds)
    media_api.add_to(app, service, decoder)
    forecast_api.add_to(app, service, decoder)
    pages.add_to(app)
    _add_error_handlers(app)

    def print_log_line(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    return RequestMiddleware(
        app,
        limits=service.limits,
        hosts=hosts,
        origins=origins,
        log=print_log_line if log else None,
        observe=service.metrics.observe,
    )


def _add_routes(app: FastAPI, service: Service) -> None:
    pool = service.pool

    @app.get("/health", summary="Whether the service is alive.")
    async def health() -> dict[str, str]:
        return {"status": "alive", "version": __version__}

    @app.get("/ready", summary="Whether all models are loaded.")
    async def ready() -> Response:
        if pool.ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "failed" if pool.load_error else "loading", "error": pool.load_error}, 503)

    @app.get("/metrics", summary="For Prometheus.")
    async def metrics() -> Response:
        return PlainTextResponse(service.metrics.text(pool), media_type="text/plain; version=0.0.4")

    @app.get("/v1/models", summary="The models that are served.")
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
            "option_schema": form_fields(service.limits),
            "limits": asdict(service.limits),
            "requires_api_key": service.api_keys.required,
        }

    async def translate(body: Any, request: Request, authorization: Annotated[str, Header()] = "") -> dict[str, Any]:
        service.check_api_key(bearer_key(authorization))
        texts = [body.text] if isinstance(body.text, str) else body.text
        selection = {"name": body.model, "source": body.source, "target": body.target}
        model, translations = await service.translate(request, texts, requested_options(body), **selection)
        return {"model": model.name, "translations": [translation_record(each, model) for each in translations]}

    translate.__annotations__["body"] = prediction_request(service.limits)
    app.post(
        "/v1/translate",
        summary="Translate texts; keys go into the header Authorization: Bearer.",
        description="""curl localhost:8000/v1/translate -H "content-type: application/json" -d '{"text": "A dog."}'""",
    )(translate)

    @app.post(
        "/v1/lines",
        summary="Translate a long text, the body, line by line; each is answered when it is done.",
        description="curl localhost:8000/v1/lines --data-binary @book.txt",
        openapi_extra={"parameters": query_parameters(service.limits)},
    )
    async def lines(
        request: Request,
        model: str | None = None,
        source: str | None = None,
        target: str | None = None,
        authorization: Annotated[str, Header()] = "",
    ) -> Response:
        service.check_api_key(bearer_key(authorization))
        try:
            chosen = pool.find(name=model, source=source, target=target)
            text = (await request.body()).decode("utf-8")
        except ModelNotFoundError as error:
            raise RequestError(400, str(error)) from None
        except UnicodeDecodeError:
            raise RequestError(400, "the body is not text in UTF-8.") from None
        check_reads_text(chosen)
        options = service.validate_options(options_in_query(request, without=RICH_OUTPUT), chosen)
        source_lines = LINE_ENDS.split(text)
        source_lines = source_lines[:-1] if source_lines[-1] == "" else source_lines
        if any(len(line) > service.limits.characters for line in source_lines):
            raise RequestError(413, f"a line has over {service.limits.characters:,} characters.")
        content = file_api.stream_translated_lines(source_lines, chosen, options, service.limits)
        return StreamingResponse(content, media_type="application/x-ndjson")

    @app.post(
        "/v1/file",
        summary="Translate a file, the body: its progress line by line, then the file in base64.",
        description='curl "localhost:8000/v1/file?name=app.po" --data-binary @app.po',
        openapi_extra={"parameters": query_parameters(service.limits)},
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
        service.check_api_key(bearer_key(authorization))
        try:
            chosen = pool.find(name=model, source=source, target=target)
        except ModelNotFoundError as error:
            raise RequestError(400, str(error)) from None
        check_reads_text(chosen)
        options = service.validate_options(options_in_query(request, without=RICH_OUTPUT), chosen)
        safe_name = file_api.safe_file_name(name)
        columns = resolve_layout(chosen.folder, None, None, column, None)  # a question answering run has its columns
        source_column = columns.source_column if column is not None or columns.question_column is not None else None
        layout = DocumentLayout(
            chosen.source or source, chosen.target or target, source_column, columns.question_column
        )
        document = await file_api.open_document(await request.body(), safe_name, layout, service.limits)
        content = file_api.stream_translated_file(document, safe_name, chosen, options, service.limits)
        return StreamingResponse(content, media_type="application/x-ndjson")


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(RequestError)
    async def request_error(request: Request, error: RequestError) -> Response:
        name = "message" if request.url.path.startswith("/v2/") else "error"
        return JSONResponse({name: error.message}, error.status, headers=error.headers)

    @app.exception_handler(BodyTooLarge)
    async def body_too_large(request: Request, error: BodyTooLarge) -> Response:
        return JSONResponse({"error": "the body is larger than is allowed."}, 413, headers={"connection": "close"})

    @app.exception_handler(BodyTimeout)
    async def body_timeout(request: Request, error: BodyTimeout) -> Response:
        return JSONResponse({"error": "the body did not come in time."}, 408, headers={"connection": "close"})

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        messages = {404: "there is nothing here; see /docs", 405: "this path has another HTTP method; see /docs"}
        message = messages.get(error.status_code, str(error.detail).lower().rstrip("."))
        if error.status_code == 404 and (path := PATHS.get(request.url.path)):
            message = f"this path is now called {path}"
        return JSONResponse({"error": f"{message}."}, error.status_code, headers=error.headers)

    @app.exception_handler(ClientDisconnected)
    async def client_disconnected(request: Request, error: ClientDisconnected) -> Response:
        return Response(status_code=499)

    @app.exception_handler(RequestValidationError)
    async def validation_error(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return JSONResponse({"error": "the body is not JSON."}, 400)
        if first["loc"] == ("body",):
            return JSONResponse(
                {"error": "the body is to be an object in JSON, with the header content-type: application/json."}, 400
            )
        field = ".".join(str(name) for name in first["loc"] if name not in ("body", "str", "list[str]"))
        if first["type"] == "extra_forbidden":
            return JSONResponse({"error": unknown_field(field)}, 400)
        message = first["msg"].lower()
        return JSONResponse({"error": f"{field}: {message}." if field else f"{message}."}, 400)

    @app.exception_handler(Exception)
    async def internal_error(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": "something went wrong here; it is in the log."}, 500)
