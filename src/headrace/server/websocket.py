"""`/ws/query`: a query or PRINT over a websocket, one text frame for each row or line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.websockets import WebSocket

from headrace.model.entities import FieldInfo
from headrace.model.errors import HeadraceError
from headrace.model.requests import Request, ResultRow
from headrace.server.bodies import parse_object, read, statement_request
from headrace.server.engine_interface import PrintedTopic, RunningQuery
from headrace.server.error_responses import BAD_REQUEST, STOPPING, ApiError, entity_of
from headrace.server.query_endpoints import outline_of, starters
from headrace.server.response_formats import StreamedAnswer, dumps, shown_schema
from headrace.server.streams import STEP_SECONDS, Disconnected, ServerStopping, Services, Watch
from headrace.server.thread_pool import Pool
from headrace.sql import ast

NORMAL, UNSUPPORTED, INTERNAL_ERROR = 1000, 1003, 1011
_REASON_BYTES = 123  # of a close frame, by RFC 6455


async def ws_query(socket: WebSocket) -> None:
    services: Services = socket.app.state.services
    await socket.accept()
    try:
        asked = await _request(socket, services)
        outline = await outline_of(services, asked)
        prints = issubclass(outline.kind, ast.PrintTopic)
        if not prints:
            services.admit(outline.query)
        slots = services.prints if prints else services.pushes
        slots.take()
    except HeadraceError as error:
        await _close(socket, UNSUPPORTED, error.message)
        return
    try:
        await _serve(socket, services, asked, prints)
    finally:
        slots.free()


async def _request(socket: WebSocket, services: Services) -> Request:
    version = socket.query_params.get("version")
    if version not in (None, "1"):
        raise ApiError(BAD_REQUEST, f"Received invalid api version: {version}")
    try:
        text = socket.query_params.get("request")
        if not text:
            raise ApiError(BAD_REQUEST, "missing request parameter")
        asked = statement_request(await read(services, parse_object, text))
        if not asked.text:
            raise ApiError(BAD_REQUEST, '"ksql" field of "request" must be populated')
    except HeadraceError as error:
        raise ApiError(BAD_REQUEST, f"Error parsing request: {error.message}") from None
    return asked


@dataclass(frozen=True)
class _Frames:
    """What is sent: a first frame, if any, and one for each row or line that comes."""

    running: RunningQuery | PrintedTopic
    first: str | None
    frame: Callable[[Any], str]

    @staticmethod
    def of(services: Services, asked: Request, prints: bool) -> _Frames:
        """Runs on a thread. PRINT has no schema; its lines are JSON strings."""
        if prints:
            return _Frames(services.engine.print_topic(asked), None, dumps)
        query = services.engine.query(asked)
        fields = [f.to_json() for f in FieldInfo.all_of(shown_schema(query))]
        answer = StreamedAnswer(query)

        def counted(row: ResultRow) -> str:
            told = row.token
            frame = answer.element(row) if told is None else answer.token_element(told)
            services.sent(query.kind).add(frame)
            return frame

        return _Frames(query, dumps(fields), counted)


async def _serve(socket: WebSocket, services: Services, asked: Request, prints: bool) -> None:
    workers = services.workers
    try:
        pool = starters(services, asked, workers.prints if prints else workers.starts)
        frames = await pool.run(_Frames.of, services, asked, prints)
    except Exception as error:  # whatever it is, the client gets its text
        await _close(socket, UNSUPPORTED, entity_of(error, asked.text).message)
        return
    watch = Watch(services, socket.receive)
    end: tuple[int, str] | None = NORMAL, "done"
    try:
        await _send_all(socket, workers.prints if prints else workers.pushes, frames, watch)
    except Disconnected:
        end = None
    except ServerStopping:
        end = INTERNAL_ERROR, STOPPING.message
    except Exception as error:  # whatever it is, the client gets its text
        end = INTERNAL_ERROR, entity_of(error, asked.text).message
    finally:
        watch.end()
        await services.workers.endings.run(frames.running.close)
    if end is not None:
        await _close(socket, *end)


async def _send_all(socket: WebSocket, pool: Pool, frames: _Frames, watch: Watch) -> None:
    if frames.first is not None:
        await socket.send_text(frames.first)
    while True:
        step = pool.run(frames.running.next_batch, STEP_SECONDS)
        batch = await watch.race(step)
        if batch is None:
            return
        for each in batch:
            await watch.race(socket.send_text(frames.frame(each)))


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
