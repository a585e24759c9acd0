"""Pictures and recordings over HTTP: predictions and attention for an uploaded file.

A file is decoded in a thread, few at a time, after the size in its header was checked; then it waits in the queue of
the model like any other input.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import FastAPI, Header, Query, Request

from regard.data.media.base import DecodedMedia
from regard.errors import RegardError
from regard.inference.inputs.media import MediaInputs
from regard.inference.options import GROUPS
from regard.inference.predictor import Predictor
from regard.serving.attention_api import check_attribution_size
from regard.serving.http_requests import RequestError, applicable_options, bearer_key, run_for_request
from regard.serving.model_pool import Model, ModelNotFoundError
from regard.serving.request_schema import options_in_query, query_parameters
from regard.views.html_page import pack_capture
from regard.views.storage import to_record

if TYPE_CHECKING:
    from regard.serving.app import Service

UNAVAILABLE_OUTPUT = ("scores", "alignment", "attention")  # groups of options that the response has no place for
MAX_DECODING = 2  # files that are decoded at the same time: each may briefly take some hundred megabytes
MAX_WAITING = 64  # files that wait to be decoded, each of them in memory
T = TypeVar("T")


def add_to(app: FastAPI, service: "Service") -> None:
    """Register the routes."""
    decoder = _MediaDecoder(service.limits.seconds)

    async def read_request(
        request: Request, name: str | None, authorization: str
    ) -> tuple[Model, Predictor, MediaInputs, bytes]:
        service.check_api_key(bearer_key(authorization))
        model = _find_media_model(service, name)
        body = await request.body()
        if not body:
            raise RequestError(400, "the body is empty; send a file's bytes, as in: curl --data-binary @photo.png")
        if request.headers.get("content-type", "").lower().startswith("multipart/"):
            raise RequestError(415, "send the file's bytes alone, not a form, as in: curl --data-binary @photo.png")
        assert model.predictor is not None
        inputs = media_inputs(model.predictor)
        assert inputs is not None
        return model, model.predictor, inputs, body

    @app.post(
        "/v1/predict-file",
        summary="A model's output for a picture or a recording, the body: a caption, a transcript, a class.",
        description='curl "localhost:8000/v1/predict-file?model=captions" --data-binary @photo.png',
        openapi_extra={"parameters": query_parameters(service.limits)},
    )
    async def predict_file(
        request: Request,
        model: str | None = None,
        authorization: Annotated[str, Header()] = "",
    ) -> dict[str, Any]:
        chosen, _, inputs, body = await read_request(request, model, authorization)
        options = service.validate_options(options_in_query(request, without=UNAVAILABLE_OUTPUT), chosen)
        source = DecodedMedia(await decoder.run(lambda: inputs.medium.read(body)), "the file")
        assert chosen.batcher is not None
        (result,) = await run_for_request(
            request, chosen.batcher.predict([source], options, seconds=service.limits.seconds)
        )
        if result.error:
            raise RequestError(400, f"{result.error}.")
        alternatives = [{"text": each.text, "score": each.score} for each in result.alternatives]
        return {"model": chosen.name, "text": result.text, "score": result.score, "alternatives": alternatives}

    @app.post(
        "/v1/attend-file",
        summary="What a model attends to in a picture or a recording, the body, every layer and head.",
        description='curl "localhost:8000/v1/attend-file?model=captions" --data-binary @photo.png',
    )
    async def attend_file(
        request: Request,
        model: str | None = None,
        to: str = "",
        target: Annotated[str | None, Query(description="The target; without it, the model's own output.")] = None,
        attribution: Annotated[bool, Query(description="With gradient times input.")] = False,
        as_packed: Annotated[bool, Query(alias="packed", description="As the page at /see uses it.")] = False,
        authorization: Annotated[str, Header()] = "",
    ) -> dict[str, Any]:
        chosen, predictor, inputs, body = await read_request(request, model, authorization)
        options_in_query(request, without=GROUPS)  # it takes none but its own parameters
        options = service.validate_options(applicable_options(predictor, to=to), chosen)
        if target is not None and len(target) > service.limits.characters:
            raise RequestError(413, f"at most {service.limits.characters:,} characters of a target.")
        source = DecodedMedia(await decoder.run(lambda: inputs.medium.read(body)), "the file")
        audio = await decoder.run(lambda: inputs.wav_bytes(body))

        def capture_attention() -> dict[str, Any]:
            result = None if target is not None else predictor.results([source], options)[0]
            if attribution:
                target_text = target or "" if result is None else result.text
                check_attribution_size(predictor, target_text, service.limits, inputs.length(source.array))
            captured = predictor.attend(source, result or target, attribution=attribution, to=to)
            captured = replace(captured, model=chosen.name)
            if captured.source_media is not None:
                captured = replace(captured, source_media=replace(captured.source_media, audio=audio))
            record = pack_capture(captured, chosen.name) if as_packed else to_record(captured)
            return {"model": chosen.name, "text": target if result is None else result.text, "attention": record}

        assert chosen.batcher is not None
        return await run_for_request(request, chosen.batcher.run(capture_attention, seconds=service.limits.seconds))


def _find_media_model(service: "Service", name: str | None) -> Model:
    """The model with this name, or the only one that reads files. Raises RequestError."""
    try:
        candidates = [service.pool.find(name=name)] if name is not None else service.pool.models
    except ModelNotFoundError as error:
        raise RequestError(400, str(error)) from None
    if any(model.predictor is None for model in candidates):
        raise RequestError(503, "the models are being loaded.", {"Retry-After": "2"})
    readers = [
        model for model in candidates if model.predictor is not None and media_inputs(model.predictor) is not None
    ]
    if not readers:
        raise RequestError(400, "there is no model here that reads files; texts go to /v1/translate.")
    if len(readers) > 1:
        raise RequestError(400, f"several models read files; name one of {', '.join(model.name for model in readers)}.")
    return readers[0]


def media_inputs(predictor: Predictor) -> MediaInputs | None:
    """The media inputs of a predictor; None if it reads text."""
    inputs = getattr(predictor.pipeline, "inputs", None)
    return inputs if isinstance(inputs, MediaInputs) else None


class _MediaDecoder:
    """Decodes files in threads, MAX_DECODING at a time; refuses a file if too many wait, or if it takes too long."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._slots, self._waiting = seconds, asyncio.Semaphore(MAX_DECODING), 0

    async def run(self, decode: Callable[[], T]) -> T:
        """The result of `decode`, called in a thread. Raises RequestError."""
        if self._waiting >= MAX_WAITING:
            raise RequestError(429, "too many files are waiting; try again later.", {"Retry-After": "2"})
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._slots.acquire()
                future = asyncio.ensure_future(asyncio.to_thread(decode))
                future.add_done_callback(self._release)  # a thread cannot be canceled: its slot is free when it ends
                return await asyncio.shield(future)
        except TimeoutError:
            raise RequestError(503, "it took too long; try again later.", {"Retry-After": "5"}) from None
        except RegardError as error:
            raise RequestError(400, str(error).removeprefix("the file: ")) from None
        finally:
            self._waiting -= 1

    def _release(self, future: "asyncio.Future[Any]") -> None:
        self._slots.release()
        if not future.cancelled():
            future.exception()  # marks it as retrieved: its client may have disconnected
