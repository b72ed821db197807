"""`/ws/query`: a query over a websocket; the schema first, then a text frame per row."""

from __future__ import annotations

import asyncio

from starlette.websockets import WebSocket

from headrace.model.entities import FieldInfo
from headrace.model.errors import HeadraceError
from headrace.model.requests import Request
from headrace.server.answers import StreamedAnswer, dumps, shown_schema
from headrace.server.bodies import invalid, parse_json, statement_request
from headrace.server.failures import BAD_REQUEST, STOPPING, ApiError, entity_of
from headrace.server.ports import RunningQuery
from headrace.server.streams import STEP_SECONDS, Departed, Services, Stopped, Watch

NORMAL, UNSUPPORTED, INTERNAL_ERROR = 1000, 1003, 1011
_REASON_BYTES = 123  # of a close frame, by RFC 6455


async def ws_query(socket: WebSocket) -> None:
    services: Services = socket.app.state.services
    await socket.accept()
    try:
        asked = _request(socket)
        services.pushes.take()
    except HeadraceError as error:
        await _close(socket, UNSUPPORTED, error.message)
        return
    try:
        await _serve(socket, services, asked)
    finally:
        services.pushes.free()


def _request(socket: WebSocket) -> Request:
    version = socket.query_params.get("version")
    if version not in (None, "1"):
        raise ApiError(BAD_REQUEST, f"Received invalid api version: {version}")
    try:
        text = socket.query_params.get("request")
        if not text:
            raise ApiError(BAD_REQUEST, "missing request parameter")
        body = parse_json(text)
        if not isinstance(body, dict):
            raise invalid("expected an object")
        asked = statement_request(body)
        if not asked.text:
            raise ApiError(BAD_REQUEST, '"ksql" field of "request" must be populated')
    except HeadraceError as error:
        raise ApiError(BAD_REQUEST, f"Error parsing request: {error.message}") from None
    return asked


async def _serve(socket: WebSocket, services: Services, asked: Request) -> None:
    try:
        query = await services.workers.statements.run(services.engine.query, asked)
    except Exception as error:
        await _close(socket, UNSUPPORTED, entity_of(error, asked.text).message)
        return
    watch = Watch(services, socket.receive)
    end: tuple[int, str] | None = NORMAL, "done"
    try:
        await _send_rows(socket, services, query, watch)
    except Departed:
        end = None
    except Stopped:
        end = INTERNAL_ERROR, STOPPING.message
    except Exception as error:
        end = INTERNAL_ERROR, entity_of(error, asked.text).message
    finally:
        watch.end()
        await services.workers.status.run(query.close)
    if end is not None:
        await _close(socket, *end)


async def _send_rows(
    socket: WebSocket, services: Services, query: RunningQuery, watch: Watch
) -> None:
    fields = [f.to_json() for f in FieldInfo.all_of(shown_schema(query))]
    await socket.send_text(dumps(fields))
    element = StreamedAnswer(query).element
    while True:
        step = services.workers.streams.run(query.next_batch, STEP_SECONDS)
        batch = await watch.race(step)
        if batch is None:
            return
        for row in batch:
            await watch.race(socket.send_text(element(row)))


async def _close(socket: WebSocket, code: int, message: str) -> None:
    """Ends as ksqlDB does: a last frame with the text in full, and as much as fits as reason."""
    reason = message.encode()
    if len(reason) > _REASON_BYTES:
        reason = reason[: _REASON_BYTES - 3].decode(errors="ignore").encode() + b"..."
    try:
        await socket.send_text(dumps({"error": message}))
        await socket.close(code, reason.decode())
    except (RuntimeError, asyncio.CancelledError):
        return  # the client was faster
