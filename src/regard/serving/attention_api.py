"""What a model attends to, over HTTP."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Header, Request
from pydantic import BaseModel, ConfigDict, Field

from regard.data.input_validation import LONE_SURROGATE
from regard.errors import RegardError
from regard.inference.options import Options
from regard.serving.limits import Limits
from regard.serving.model_pool import ModelNotFoundError
from regard.serving.requests import Refused, answered, bearer, checked
from regard.views.page import pack_capture
from regard.views.storage import as_record

if TYPE_CHECKING:
    from regard.inference.predictor import Predictor
    from regard.serving.app import Service

BEAM = 5  # hypotheses of the page's tree


class Pair(BaseModel):
    """A source, and what was written of it."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(description="What the model reads, as one sentence.")]
    target: Annotated[str | None, Field(description="What it is to have written; else its own translation.")] = None
    model: str | None = None
    attribution: Annotated[bool, Field(description="With gradient times input.")] = False
    top: Annotated[int | None, Field(ge=1, description="So many weights of each row, the largest.")] = None
    packed: Annotated[bool, Field(description="As the page at /see wants it.")] = False


def within_reach(predictor: "Predictor", said: str, limits: Limits, places: int = 0) -> None:
    """Raises RegardError if the attribution of this would take too long. places: of a source that is no text."""
    if LONE_SURROGATE.search(said) or not predictor.run.target_side.has_eos:
        return  # what is no text is refused elsewhere; a class is one thing
    most = min(limits.attributed, limits.attributed_looks // max(1, places))
    if len(predictor.run.target_tokens(said)) > most:
        raise RegardError(f"attribution: of at most {most} subwords that are written.")


def add_to(app: FastAPI, service: "Service") -> None:
    """Its routes."""

    @app.post(
        "/v1/attend",
        summary="What a model attends to over a source and a target, every layer and head.",
        description="""curl localhost:8000/v1/attend -H "content-type: application/json" -d '{"text": "A dog."}'""",
    )
    async def attend(pair: Pair, request: Request, authorization: Annotated[str, Header()] = "") -> dict[str, Any]:
        service.admit(bearer(authorization))
        checked([pair.text, *([] if pair.target is None else [pair.target])], service.limits)
        try:
            model = service.pool.find(name=pair.model)
        except ModelNotFoundError as error:
            raise Refused(400, str(error)) from None
        if model.batcher is None or model.predictor is None:
            raise Refused(503, "the models are being loaded.", {"Retry-After": "2"})
        from regard.inference.attention import branches

        predictor = model.predictor
        if not predictor.description.model.source.is_text:
            raise Refused(400, f"{model.name} reads files; send one to /v1/look.")
        searched = predictor.description.model.decoder.autoregressive

        def looked() -> dict[str, Any]:
            many = BEAM if searched else 1
            options = Options(beam=BEAM, nbest=many) if searched else Options()
            found = None if pair.target is not None else predictor.results([pair.text], options)[0]
            said = pair.target or "" if found is None else found.text
            if pair.attribution:
                within_reach(predictor, said, service.limits)
            over = found or pair.target
            captured = predictor.attend(pair.text, over, attribution=pair.attribution)
            captured = replace(captured, model=model.name)
            if found is not None and pair.packed and searched:
                captured = replace(captured, beam=branches(predictor.pipeline, found))
            record = pack_capture(captured, model.name) if pair.packed else as_record(captured, top=pair.top)
            return {"model": model.name, "text": said, "attention": record}

        return await answered(request, model.batcher.run(looked, seconds=service.limits.seconds))
