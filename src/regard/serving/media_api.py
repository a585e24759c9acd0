"""Uploaded files over HTTP: predictions for pictures and recordings, and attention for these and for series.

A file is decoded in a thread, few at a time, after the size in its header was checked; then it waits in the queue of
the model like any other input.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Header, Query, Request

from regard.inference.inputs.media import MediaInputs
from regard.inference.options import GROUPS
from regard.inference.pipelines.base import UploadReader
from regard.inference.predictor import Predictor
from regard.serving.attention_api import check_attribution_size
from regard.serving.file_decoder import FileDecoder
from regard.serving.http_requests import RequestError, applicable_options, bearer_key, run_for_request
from regard.serving.model_pool import Model, find_model, upload_reader
from regard.serving.request_schema import options_in_query, query_parameters
from regard.views.html_page import pack_capture
from regard.views.storage import to_record

if TYPE_CHECKING:
    from regard.serving.app import Service

UNAVAILABLE_OUTPUT = ("scores", "alignment", "attention")  # groups of options that the response has no place for


def add_to(app: FastAPI, service: "Service", decoder: FileDecoder) -> None:
    """Register the routes."""

    async def read_request(
        request: Request, name: str | None, authorization: str, *, predicts_text: bool
    ) -> tuple[Model, Predictor, UploadReader, bytes]:
        service.check_api_key(bearer_key(authorization))
        model = _find_file_model(service, name, predicts_text=predicts_text)
        body = await request.body()
        if not body:
            raise RequestError(400, "the body is empty; send a file's bytes, as in: curl --data-binary @photo.png")
        if request.headers.get("content-type", "").lower().startswith("multipart/"):
            raise RequestError(415, "send the file's bytes alone, not a form, as in: curl --data-binary @photo.png")
        assert model.predictor is not None
        reader = upload_reader(model.predictor)
        assert reader is not None
        return model, model.predictor, reader, body

    @app.post(
        "/v1/predict-file",
        summary="A model's output for a picture or a recording, the body: a caption, a transcript, a class.",
        description='curl "localhost:8000/v1/predict-file?model=captions" --data-binary @photo.png',
        openapi_extra={"parameters": query_parameters(service.limits)},
    )
    async def predict_file(
        request: Request,
        model: str | None = None,
        name: Annotated[str, Query(description="The file's name, for messages.")] = "",
        authorization: Annotated[str, Header()] = "",
    ) -> dict[str, Any]:
        chosen, _, reader, body = await read_request(request, model, authorization, predicts_text=True)
        options = service.validate_options(options_in_query(request, without=UNAVAILABLE_OUTPUT), chosen)
        source = await decoder.run(lambda: reader.read_upload(body, name or "the file"))
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
        summary="What a model attends to in a picture, a recording or a table of series, the body.",
        description='curl "localhost:8000/v1/attend-file?model=captions" --data-binary @photo.png',
    )
    async def attend_file(
        request: Request,
        model: str | None = None,
        name: Annotated[str, Query(description="The file's name, which tells the format of a table.")] = "",
        to: str = "",
        target: Annotated[str | None, Query(description="The target; without it, the model's own output.")] = None,
        attribution: Annotated[bool, Query(description="With gradient times input.")] = False,
        as_packed: Annotated[bool, Query(alias="packed", description="As the page at /see uses it.")] = False,
        authorization: Annotated[str, Header()] = "",
    ) -> dict[str, Any]:
        chosen, predictor, reader, body = await read_request(request, model, authorization, predicts_text=False)
        options_in_query(request, without=GROUPS)  # it takes none but its own parameters
        options = service.validate_options(applicable_options(predictor, to=to), chosen)
        if target is not None and len(target) > service.limits.characters:
            raise RequestError(413, f"at most {service.limits.characters:,} characters of a target.")
        source = await decoder.run(lambda: reader.read_upload(body, name or "the file"))
        audio = await decoder.run(lambda: reader.wav_bytes(body))

        def capture_attention() -> dict[str, Any]:
            result = None if target is not None else predictor.results([source], options)[0]
            if attribution:
                target_text = target or "" if result is None else result.text
                check_attribution_size(predictor, target_text, service.limits, reader.upload_length(source))
            captured = predictor.attend(source, result or target, attribution=attribution, to=to)
            captured = replace(captured, model=chosen.name)
            if captured.source_media is not None:
                captured = replace(captured, source_media=replace(captured.source_media, audio=audio))
            record = pack_capture(captured, chosen.name) if as_packed else to_record(captured)
            return {"model": chosen.name, "text": target if result is None else result.text, "attention": record}

        assert chosen.batcher is not None
        return await run_for_request(request, chosen.batcher.run(capture_attention, seconds=service.limits.seconds))


def _find_file_model(service: "Service", name: str | None, *, predicts_text: bool) -> Model:
    """The model with this name, or the only one that reads files. Raises RequestError."""

    def is_suitable(model: Model) -> bool:
        reader = None if model.predictor is None else upload_reader(model.predictor)
        return reader is not None and (isinstance(reader, MediaInputs) or not predicts_text)

    return find_model(
        service.pool,
        name,
        is_suitable,
        missing="there is no model here that reads such files; texts go to /v1/translate, series to /v1/forecast.",
        several="several models read files",
    )
