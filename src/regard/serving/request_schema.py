"""Request bodies and query parameters, from which FastAPI makes the OpenAPI schema, and the fields of the page's form.

All decoding options come from the schema in `inference/options.py`.
"""

import json
from collections.abc import Collection, Mapping
from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model

from regard.errors import RegardError
from regard.inference.options import Options, group_of
from regard.inference.search.base import selectable_searches
from regard.renames import OPTIONS
from regard.serving.http_requests import RequestError
from regard.serving.limits import Limits


class _PredictionInputs(BaseModel):
    """The inputs of a request, without options."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str | list[str], Field(description="A text, or several.", examples=["A dog runs in the park."])]
    model: Annotated[str | None, Field(description="By name; otherwise by languages.")] = None
    source: Annotated[str | None, Field(description="A language, or auto where only one fits.")] = None
    target: str | None = None


def prediction_request(limits: Limits) -> Any:
    """The class of a request's body: the inputs, and every decoding option with its type, bounds, default and help.

    Their values are checked by `Options`, whose messages are those of Python and of the command line.
    """
    fields: dict[str, Any] = {
        name: (Annotated[Any, WithJsonSchema(schema)], Field(Options.model_fields[name].default))
        for name, schema in option_schema(limits).items()
    }
    return create_model("PredictionRequest", __base__=_PredictionInputs, **fields)


def requested_options(body: Any) -> Options:
    """The decoding options that a request's body sets. Raises RequestError."""
    return options_from({name: getattr(body, name) for name in body.model_fields_set & set(Options.model_fields)})


class AttentionRequest(BaseModel):
    """A source and its target."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(description="What the model reads, as one sentence.")]
    target: Annotated[str | None, Field(description="The target; without it, the model's own output.")] = None
    model: str | None = None
    attribution: Annotated[bool, Field(description="With gradient times input.")] = False
    top: Annotated[int | None, Field(ge=1, description="So many weights of each row, the largest.")] = None
    packed: Annotated[bool, Field(description="As the page at /see wants it.")] = False


SCHEMA: dict[str, dict[str, Any]] = Options.model_json_schema()["properties"]


def options_from(requested: Mapping[str, Any]) -> Options:
    """The options that a request sets. Raises RequestError."""
    try:
        return Options.from_dict(requested)
    except RegardError as error:
        raise RequestError(400, str(error)) from None


def unknown_field(name: str) -> str:
    """The error message for a field that a body does not have, with the new name of a renamed option."""
    if name in OPTIONS:
        return f"{name}: this option is now called {OPTIONS[name]}."
    return f"{name}: there is no such field; see /docs."


def check_query(request: Request, *, options: Collection[str] = ()) -> None:
    """Raises RequestError for a query parameter that the route does not have, and for one that is given twice."""
    route_parameters = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
    for name in request.query_params:
        if name in Options.model_fields and name not in {*route_parameters, *options}:
            raise RequestError(400, f"{name}: this does not apply to {request.url.path}; leave it out.")
        if len(request.query_params.getlist(name)) > 1 and _flat(SCHEMA.get(name, {})).get("type") != "array":
            raise RequestError(400, f"{name}: it is given more than once.")


def options_in_query(request: Request, *, without: Collection[str] = ()) -> Options:
    """The options among the query parameters of a request. Raises RequestError for a parameter that is neither an
    option nor a parameter of the route, or an option of these groups, which the route's response has no place for."""
    check_query(request, options=[name for name in Options.model_fields if group_of(name) not in without])
    route_parameters = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
    requested = {
        name: request.query_params.getlist(name) for name in request.query_params if name not in route_parameters
    }
    return options_from({name: _value(name, texts) for name, texts in requested.items()})


def query_parameters(limits: Limits, *, without: Collection[str] = ()) -> list[dict[str, Any]]:
    """The options as query parameters in OpenAPI. without: groups that are left out."""
    return [
        {"name": name, "in": "query", "required": False, "description": schema["description"], "schema": schema}
        for name, schema in option_schema(limits).items()
        if schema.get("type") != "object" and group_of(name) not in without
    ]


def form_fields(limits: Limits) -> dict[str, dict[str, Any]]:
    """The JSON schema of each option without `anyOf`; forms are built from it."""
    fields = {name: _flat(schema) for name, schema in option_schema(limits).items()}
    fields["search"]["enum"] = selectable_searches()
    return fields


def option_schema(limits: Limits) -> dict[str, dict[str, Any]]:
    """The JSON schema of each option, with the limits of the service as bounds."""
    schema = {name: dict(each) for name, each in SCHEMA.items()}
    for name in ("beam", "nbest"):
        schema[name]["maximum"] = min(schema[name]["maximum"], getattr(limits, name))
    return schema


def _flat(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without `anyOf`: null is an optional value that is left out."""
    alternatives = [each for each in schema.get("anyOf", []) if each.get("type") != "null"]
    flat = {name: value for name, value in schema.items() if name not in ("anyOf", "title")}
    return {**flat, **(alternatives[0] if alternatives else {})}


def _value(name: str, texts: list[str]) -> Any:
    """A query parameter as a value of the option's type; as text if it cannot be parsed, which the schema rejects."""
    json_type = _flat(SCHEMA.get(name, {})).get("type")
    if json_type == "array":
        return texts
    if json_type in (None, "string"):
        return texts[-1]
    try:
        return json.loads(texts[-1])
    except ValueError:
        return texts[-1]
