"""The OpenAPI description, generated from the endpoints' declarations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headrace import __version__
from headrace.server.bodies import Member
from headrace.server.endpoints import Endpoint
from headrace.server.response_formats import DELIMITED, JSON, KSQL_JSON

_TYPES: dict[type, dict[str, object]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    dict: {"type": "object"},
    list: {"type": "array", "items": {"type": "string"}},
}
# What a path's parameter may be: one segment, which is not empty.
_SEGMENT = {"type": "string", "minLength": 1, "pattern": "^[^/]+$"}
_ERROR = {
    "type": "object",
    "required": ["@type", "error_code", "message"],
    "properties": {
        "@type": {"enum": ["generic_error", "statement_error"]},
        "error_code": {"type": "integer", "description": "The status, and two digits of detail."},
        "message": {"type": "string"},
        "statementText": {"type": "string"},
        "entities": {"type": "array", "items": {"type": "object"}},
    },
}


def describe(endpoints: Sequence[Endpoint]) -> dict[str, object]:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headrace",
            "version": __version__,
            "description": "Streaming SQL on Spark, in the shapes of ksqlDB's REST API.",
        },
        "paths": {e.path: {e.method.lower(): _operation(e)} for e in endpoints},
        "components": {"schemas": {"Error": _ERROR}},
    }


def _operation(endpoint: Endpoint) -> dict[str, object]:
    operation: dict[str, object] = {
        "summary": endpoint.doc,
        "operationId": re.sub(r"\W+", "_", endpoint.path.strip("/")),
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {content_type: {} for content_type in endpoint.answers},
            },
            "default": {
                "description": "An error.",
                "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    parameters = re.findall(r"{(\w+)}", endpoint.path)
    if parameters:
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": _SEGMENT}
            for name in parameters
        ]
    if endpoint.body is not None:
        types = (DELIMITED,) if endpoint.lines else (KSQL_JSON, JSON)
        schema = {"type": "string"} if endpoint.lines else _schema(endpoint.body)
        operation["requestBody"] = {
            "required": True,
            "content": {content_type: {"schema": schema} for content_type in types},
        }
    return operation


def _schema(members: Sequence[Member[object]]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {m.name: {**_TYPES[m.type], "description": m.doc} for m in members},
        "required": [m.name for m in members if m.required],
    }
