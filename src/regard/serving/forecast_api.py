"""Forecasts over HTTP: a table of series, uploaded or as JSON, and the steps that follow."""

import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Header, Request

from regard.data.series.forecast import as_response
from regard.errors import RegardError
from regard.inference.inputs.series import LoadedSeries
from regard.inference.options import GROUPS
from regard.inference.pipelines.base import TablePipeline, UploadReader
from regard.serving.file_decoder import FileDecoder
from regard.serving.http_requests import RequestError, bearer_key, run_for_request
from regard.serving.model_pool import Model, find_model
from regard.serving.request_schema import options_from, options_in_query, query_parameters

if TYPE_CHECKING:
    from regard.serving.app import Service

OTHER_GROUPS = tuple(group for group in GROUPS if group != "forecast")  # of options that a forecast does not have
JSON_FIELDS = ("columns", "rows", "model", "start")


def add_to(app: FastAPI, service: "Service", decoder: FileDecoder) -> None:
    """Register the route."""

    @app.post(
        "/v1/forecast",
        summary="Forecast the steps after the end of each series in a table.",
        description="The body is a table (CSV, TSV, JSON lines, Parquet), whose format is that of `name`, or JSON: "
        '`{"columns": {"date": [...], "load": [...]}}` or `{"rows": [{"date": ..., "load": ...}, ...]}`.\n\n'
        'curl "localhost:8000/v1/forecast?name=load.csv" --data-binary @load.csv',
        openapi_extra={
            "parameters": query_parameters(service.limits, without=OTHER_GROUPS),
            "requestBody": {
                "content": {
                    "text/csv": {"schema": {"type": "string"}},
                    "application/json": {"schema": {"type": "object"}},
                }
            },
        },
    )
    async def forecast(
        request: Request,
        name: str = "",
        model: str | None = None,
        authorization: Annotated[str, Header()] = "",
    ) -> dict[str, Any]:
        service.check_api_key(bearer_key(authorization))
        options = options_in_query(request, without=OTHER_GROUPS)
        body = await request.body()
        if not body:
            raise RequestError(400, "the body is empty; send a table, as in: curl --data-binary @load.csv")
        fields = _json_fields(body) if _is_json(request) else None
        if fields is not None and "start" in fields:
            options = options_from({"start": fields["start"]})
        chosen = _find_forecaster(service, model if fields is None else fields.get("model", model))
        options = service.validate_options(options, chosen)
        pipeline = _table_pipeline(chosen)
        assert pipeline is not None
        assert isinstance(pipeline, UploadReader)
        assert chosen.batcher is not None
        if fields is None:
            series = await decoder.run(lambda: pipeline.read_upload(body, name))
        else:
            series = await decoder.run(lambda: pipeline.read_columns(_columns(fields)))
        _check_count(series, service)
        (result,) = await run_for_request(
            request, chosen.batcher.predict([series], options, seconds=service.limits.seconds)
        )
        if result.error:
            raise RequestError(400, f"{result.error}.")
        return {
            "model": chosen.name,
            "step": pipeline.step,
            "forecasts": [as_response(each) for each in result.forecast or []],
            "notes": [*series.notes, *result.notes],
        }


def _table_pipeline(model: Model) -> TablePipeline | None:
    """The pipeline of a model that forecasts; None for another model, or one that is not loaded."""
    pipeline = None if model.predictor is None else model.predictor.pipeline
    return pipeline if isinstance(pipeline, TablePipeline) else None


def _find_forecaster(service: "Service", name: str | None) -> Model:
    """The model with this name, or the only one that forecasts. Raises RequestError."""
    return find_model(
        service.pool,
        name,
        lambda model: _table_pipeline(model) is not None,
        missing="there is no model here that forecasts series; see /v1/models.",
        several="several models forecast series",
    )


def _is_json(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _json_fields(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise RequestError(400, "the body is not JSON.") from None
    if not isinstance(fields, dict) or ("columns" in fields) == ("rows" in fields):
        raise RequestError(400, 'the body is to be an object with either "columns" or "rows".')
    if unknown := fields.keys() - set(JSON_FIELDS):
        raise RequestError(400, f"{min(unknown)[:60]}: there is no such field; there are {', '.join(JSON_FIELDS)}.")
    if not isinstance(fields.get("model"), str | None):
        raise RequestError(400, "model: expected the name of a model.")
    return fields


def _columns(fields: dict[str, Any]) -> dict[str, Any]:
    """The columns by name. Raises RegardError."""
    if "columns" in fields:
        columns = fields["columns"]
        if not isinstance(columns, dict):
            raise RegardError("columns: expected an object with a list for each column.")
        return columns
    rows = fields["rows"]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise RegardError("rows: expected a list of objects, each with a value for every column.")
    return {name: [row.get(name) for row in rows] for name in rows[0]}


def _check_count(series: LoadedSeries, service: "Service") -> None:
    if len(series.series) > service.limits.texts:
        raise RequestError(
            413, f"{len(series.series):,} series are too many for one request; at most {service.limits.texts}."
        )
