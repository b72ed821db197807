"""`/ksql` and `/ksql/terminate`: statements in, entities out."""

from __future__ import annotations

import re

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from headrace.model.errors import HeadraceError
from headrace.server.auth import check_statements
from headrace.server.bodies import DELETE_TOPIC_LIST, invalid, read_object, statement_request
from headrace.server.failures import BAD_REQUEST, ApiError, entity_of, error_response
from headrace.server.status import json_response
from headrace.server.streams import Services


async def ksql(request: HttpRequest) -> Response:
    services: Services = request.app.state.services
    body = await read_object(request, services.settings.limits.body_bytes)
    asked = statement_request(body)
    check_statements(request.scope, asked.text)
    try:
        entities = await services.workers.statements.run(services.engine.execute, asked)
    except HeadraceError as error:
        return error_response(entity_of(error, asked.text))
    return json_response(request, [entity.to_json() for entity in entities])


async def terminate(request: HttpRequest) -> Response:
    services: Services = request.app.state.services
    body = await read_object(request, services.settings.limits.body_bytes)
    topics = DELETE_TOPIC_LIST.of(body) or []
    for pattern in topics:
        _check_pattern(pattern)
    run = services.workers.statements.run
    entities = await run(services.engine.terminate_cluster, topics)
    return json_response(request, [entity.to_json() for entity in entities])


def _check_pattern(pattern: object) -> None:
    if not isinstance(pattern, str):
        raise invalid("'deleteTopicList' must be an array of strings")
    try:
        re.compile(pattern)
    except re.error:
        raise ApiError(BAD_REQUEST, f"Invalid pattern: {pattern}") from None
