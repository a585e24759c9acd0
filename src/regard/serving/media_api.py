"""Pictures and recordings over HTTP: a file up, what the model says of it back, and what it looked at.

A file is decoded in a thread of its own, few at a time, after its header was found to be small enough; what is decoded
waits in the model's queue with everybody else's.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import FastAPI, Header, Query, Request

from regard.data.media import DecodedMedia
from regard.errors import RegardError
from regard.inference.media_inputs import MediaInputs
from regard.inference.options import Options
from regard.inference.predictor import Predictor
from regard.serving.attention_api import within_reach
from regard.serving.model_pool import Model, ModelNotFoundError
from regard.serving.option_fields import options_in_query, query_parameters
from regard.serving.requests import Refused, answered, applicable_options, bearer
from regard.views.page import pack_capture
from regard.views.storage import as_record

if TYPE_CHECKING:
    from regard.serving.app import Service

MAX_BATCH_SIZE = 2  # files that are decoded together: each may take some hundred megabytes for a moment
WAITING = 64  # files at most that wait for that, each of them held in memory
T = TypeVar("T")


def add_to(app: FastAPI, service: "Service") -> None:
    """Its routes."""
    room = _Room(service.limits.seconds)

    async def given(
        request: Request, name: str | None, authorization: str
    ) -> tuple[Model, Predictor, MediaInputs, bytes]:
        service.admit(bearer(authorization))
        model = _reader(service, name)
        body = await request.body()
        if not body:
            raise Refused(400, "the body is empty; send a file's bytes, as in: curl --data-binary @photo.png")
        if request.headers.get("content-type", "").lower().startswith("multipart/"):
            raise Refused(415, "send the file's bytes alone, not a form, as in: curl --data-binary @photo.png")
        assert model.predictor is not None
        inputs = media_inputs(model.predictor)
        assert inputs is not None
        return model, model.predictor, inputs, body

    @app.post(
        "/v1/read",
        summary="What a model says of a picture or a recording, the body: a caption, a transcript, a class.",
        description='curl "localhost:8000/v1/read?model=captions" --data-binary @photo.png',
        openapi_extra={"parameters": query_parameters()},
    )
    async def read(
        request: Request,
        model: str | None = None,
        authorization: Annotated[str, Header()] = "",
    ) -> dict[str, Any]:
        chosen, _, inputs, body = await given(request, model, authorization)
        options = _options(service, chosen, options_in_query(request))
        source = DecodedMedia(await room.decoded(lambda: inputs.medium.read(body)), "the file")
        assert chosen.batcher is not None
        (result,) = await answered(request, chosen.batcher.translate([source], options, seconds=service.limits.seconds))
        if result.error:
            raise Refused(400, f"{result.error}.")
        others = [{"text": other.text, "score": other.score} for other in result.others]
        return {"model": chosen.name, "text": result.text, "score": result.score, "others": others}

    @app.post(
        "/v1/look",
        summary="What a model attends to in a picture or a recording, the body, every layer and head.",
        description='curl "localhost:8000/v1/look?model=captions" --data-binary @photo.png',
    )
    async def look(
        request: Request,
        model: str | None = None,
        to: str = "",
        target: Annotated[str | None, Query(description="What it is to have written; else its own words.")] = None,
        attribution: Annotated[bool, Query(description="With gradient times input.")] = False,
        as_packed: Annotated[bool, Query(alias="packed", description="As the page at /see wants it.")] = False,
        authorization: Annotated[str, Header()] = "",
    ) -> dict[str, Any]:
        chosen, predictor, inputs, body = await given(request, model, authorization)
        options = _options(service, chosen, applicable_options(predictor, to=to))
        if target is not None and len(target) > service.limits.characters:
            raise Refused(413, f"at most {service.limits.characters:,} characters of a target.")
        source = DecodedMedia(await room.decoded(lambda: inputs.medium.read(body)), "the file")
        sound = await room.decoded(lambda: inputs.sound(body))

        def looked() -> dict[str, Any]:
            found = None if target is not None else predictor.results([source], options)[0]
            if attribution:
                said = target or "" if found is None else found.text
                within_reach(predictor, said, service.limits, inputs.length(source.array))
            captured = predictor.attend(source, found or target, attribution=attribution, to=to)
            captured = replace(captured, model=chosen.name)
            if captured.source_media is not None:
                captured = replace(captured, source_media=replace(captured.source_media, audio=sound))
            record = pack_capture(captured, chosen.name) if as_packed else as_record(captured)
            return {"model": chosen.name, "text": target if found is None else found.text, "attention": record}

        assert chosen.batcher is not None
        return await answered(request, chosen.batcher.run(looked, seconds=service.limits.seconds))


def _reader(service: "Service", name: str | None) -> Model:
    """A model that reads files: of this name, or the only one. Raises Refused."""
    try:
        found = [service.pool.find(name=name)] if name is not None else service.pool.models
    except ModelNotFoundError as error:
        raise Refused(400, str(error)) from None
    if any(model.predictor is None for model in found):
        raise Refused(503, "the models are being loaded.", {"Retry-After": "2"})
    readers = [model for model in found if model.predictor is not None and media_inputs(model.predictor) is not None]
    if not readers:
        raise Refused(400, "there is no model here that reads files; texts go to /v1/translate.")
    if len(readers) > 1:
        raise Refused(400, f"several models read files; name one of {', '.join(model.name for model in readers)}.")
    return readers[0]


def media_inputs(predictor: Predictor) -> MediaInputs | None:
    """How a predictor reads files; None if it does not."""
    inputs = getattr(predictor.pipeline, "inputs", None)
    return inputs if isinstance(inputs, MediaInputs) else None


def _options(service: "Service", model: Model, options: Options) -> Options:
    options = service.allowed(options, model)
    assert model.predictor is not None
    known = model.predictor.description.target_languages
    if options.to and options.to not in known:
        raise Refused(400, f"to: there is no {options.to[:40]!r}; this model has {', '.join(known) or 'one language'}.")
    return options


class _Room:
    """Where files are decoded, few at a time; who waits too long, or finds too many waiting, is sent away."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._free, self._waiting = seconds, asyncio.Semaphore(MAX_BATCH_SIZE), 0

    async def decoded(self, work: Callable[[], T]) -> T:
        """What is made of a file that was sent. Raises Refused."""
        if self._waiting >= WAITING:
            raise Refused(429, "too many files are waiting; try again later.", {"Retry-After": "2"})
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
                doing = asyncio.ensure_future(asyncio.to_thread(work))
                doing.add_done_callback(self._done)  # a thread cannot be stopped: its place is free when it ends
                return await asyncio.shield(doing)
        except TimeoutError:
            raise Refused(503, "it took too long; try again later.", {"Retry-After": "5"}) from None
        except RegardError as error:
            raise Refused(400, str(error).removeprefix("the file: ")) from None
        finally:
            self._waiting -= 1

    def _done(self, doing: "asyncio.Future[Any]") -> None:
        self._free.release()
        if not doing.cancelled():
            doing.exception()  # looked at, whoever is still there to hear of it
