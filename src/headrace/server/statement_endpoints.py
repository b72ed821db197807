"""`/ksql` and `/ksql/terminate`: statements in, entities out."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from headrace.model.entities import Entity
from headrace.model.errors import HeadraceError
from headrace.model.requests import Request
from headrace.server.auth import check_statements
from headrace.server.bodies import (
    DELETE_TOPIC_LIST,
    SMALL,
    invalid,
    negotiate,
    read_object,
    statement_request,
)
from headrace.server.error_responses import (
    BAD_REQUEST,
    STOPPING,
    ApiError,
    entity_of,
    error_response,
)
from headrace.server.response_formats import JSON, KSQL_JSON, dumps
from headrace.server.status import json_response
from headrace.server.streams import Disconnected, ServerStopping, Services, Watch


async def ksql(request: HttpRequest) -> Response:
    services: Services = request.app.state.services
    asked = statement_request(await read_object(request))
    content_type = negotiate(request, (KSQL_JSON, JSON))
    await check_statements(request.scope, services, asked.text)
    try:
        text = await _answer(request, services, asked)
    except HeadraceError as error:
        return error_response(entity_of(error, asked.text))
    return Response(text, media_type=content_type)


async def _answer(request: HttpRequest, services: Services, asked: Request) -> str:
    """The entities as JSON. Statements run on threads; between two looks of an ASSERT that waits,
    none is held."""
    workers = services.workers
    pool = workers.long_statements if len(asked.text) > SMALL else workers.statements
    steps = services.engine.steps(asked)
    waiting = False
    watch = Watch(services, request.receive)
    try:
        while True:
            step = await watch.race(pool.run(_step, steps))
            if isinstance(step, str):
                return step
            if not waiting:
                services.assertions.take()
                waiting = True
            await watch.race(asyncio.sleep(step))
    except Disconnected:
        raise ApiError(BAD_REQUEST, "The client left before its statements were done.") from None
    except ServerStopping:
        raise ApiError(STOPPING.error_code, STOPPING.message) from None
    finally:
        watch.end()
        if waiting:
            services.assertions.free()


def _step(steps: Generator[float, None, Sequence[Entity]]) -> float | str:
    """Runs on a thread: as many statements as need not wait. How long to wait then, or all
    answers; each is written by itself, because no other thread runs meanwhile."""
    try:
        return next(steps)
    except StopIteration as end:
        return "[" + ",".join([dumps(entity.to_json()) for entity in end.value]) + "]"


async def terminate(request: HttpRequest) -> Response:
    services: Services = request.app.state.services
    topics = DELETE_TOPIC_LIST.of(await read_object(request)) or []
    if not all(isinstance(pattern, str) for pattern in topics):
        raise invalid("'deleteTopicList' must be an array of strings")
    run = services.workers.statements.run
    entities = await run(services.engine.terminate_cluster, topics)
    return json_response(request, [entity.to_json() for entity in entities])
