"""Attention weights of a source and a target, over HTTP."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Header, Request

from regard.data.input_validation import LONE_SURROGATE
from regard.data.vocabulary import has_tokens
from regard.errors import RegardError
from regard.inference.options import Options
from regard.serving.http_requests import RequestError, bearer_key, run_for_request, validate_texts
from regard.serving.limits import Limits
from regard.serving.model_pool import ModelNotFoundError
from regard.serving.request_schema import AttentionRequest
from regard.views.html_page import pack_capture
from regard.views.storage import to_record

if TYPE_CHECKING:
    from regard.inference.predictor import Predictor
    from regard.serving.app import Service

BEAM = 5  # hypotheses in the beam view of the page


def check_attribution_size(predictor: "Predictor", target: str, limits: Limits, source_positions: int = 0) -> None:
    """Raises RegardError if attribution would take too long. source_positions: of a picture or a recording."""
    target_of_run = predictor.run.target
    if not has_tokens(target_of_run):  # each step ahead is a target
        steps = int(getattr(target_of_run, "horizon", 1))
        if steps * source_positions > limits.attribution_cells:
            raise RegardError(f"attribution: {steps:,} steps from {source_positions:,} are too many for the service.")
        return
    if LONE_SURROGATE.search(target) or not predictor.run.target_vocabulary.has_eos:
        return  # invalid text is reported by the predictor; a class is a single target
    limit = min(limits.attribution_tokens, limits.attribution_cells // max(1, source_positions))
    if len(predictor.run.target_tokens(target)) > limit:
        raise RegardError(f"attribution: the target may have at most {limit} subwords.")


def add_to(app: FastAPI, service: "Service") -> None:
    """Register the routes."""

    @app.post(
        "/v1/attend",
        summary="What a model attends to over a source and a target, every layer and head.",
        description="""curl localhost:8000/v1/attend -H "content-type: application/json" -d '{"text": "A dog."}'""",
    )
    async def attend(
        pair: AttentionRequest, request: Request, authorization: Annotated[str, Header()] = ""
    ) -> dict[str, Any]:
        service.check_api_key(bearer_key(authorization))
        validate_texts([pair.text, *([] if pair.target is None else [pair.target])], service.limits)
        try:
            model = service.pool.find(name=pair.model)
        except ModelNotFoundError as error:
            raise RequestError(400, str(error)) from None
        if model.batcher is None or model.predictor is None:
            raise RequestError(503, "the models are being loaded.", {"Retry-After": "2"})
        from regard.inference.attention_outputs import beam_hypotheses

        predictor = model.predictor
        if not predictor.description.model.source.is_text:
            raise RequestError(400, f"{model.name} reads files; send one to /v1/attend-file.")
        is_autoregressive = predictor.description.model.decoder.autoregressive

        def capture_attention() -> dict[str, Any]:
            options = Options(beam=BEAM, nbest=BEAM) if is_autoregressive else Options()
            result = None if pair.target is not None else predictor.results([pair.text], options)[0]
            target = pair.target or "" if result is None else result.text
            if pair.attribution:
                check_attribution_size(predictor, target, service.limits)
            captured = predictor.attend(pair.text, result or pair.target, attribution=pair.attribution)
            captured = replace(captured, model=model.name)
            if result is not None and pair.packed and is_autoregressive:
                captured = replace(captured, beam=beam_hypotheses(predictor.pipeline, result))
            record = pack_capture(captured, model.name) if pair.packed else to_record(captured, top=pair.top)
            return {"model": model.name, "text": target, "attention": record}

        return await run_for_request(request, model.batcher.run(capture_attention, seconds=service.limits.seconds))
