"""`/query`, `/query-stream` and `/close-query`: push queries, pull queries and PRINT."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from headrace.model.entities import ErrorEntity
from headrace.model.errors import HeadraceError
from headrace.model.requests import QueryKind, Request
from headrace.server.bodies import (
    QUERY_ID,
    SMALL,
    negotiate,
    read,
    read_object,
    statement_request,
    stream_request,
)
from headrace.server.engine_interface import Engine, PrintedTopic, RunningQuery
from headrace.server.error_responses import (
    BAD_REQUEST,
    NOT_ACCEPTABLE,
    STOPPING,
    ApiError,
    entity_of,
    error_response,
)
from headrace.server.response_formats import (
    DELIMITED,
    JSON,
    KSQL_JSON,
    KSQL_PROTOBUF,
    AnswerWriter,
    ArrayAnswer,
    DelimitedAnswer,
    KeptAliveAnswer,
    ProtobufAnswer,
    StreamedAnswer,
    dumps,
)
from headrace.server.settings import Limits
from headrace.server.streams import (
    STEP_SECONDS,
    Chunk,
    Disconnected,
    ServerStopping,
    Services,
    Source,
    StreamResponse,
    Watch,
)
from headrace.server.thread_pool import Pool
from headrace.sql import ast
from headrace.sql.outline import Outline, outlines

# A pull query that is done by then is answered whole, in one piece; else its rows are streamed.
WHOLE_SECONDS = 0.2
WHOLE_CHARACTERS = 256 * 1024


@dataclass(frozen=True)
class QueryEndpoint:
    """How one endpoint reads requests and writes answers, its preferred content type first."""

    parse: Callable[[Mapping[str, object]], Request]
    answers: Mapping[str, type[AnswerWriter]]
    field: str

    async def __call__(self, request: HttpRequest) -> Response:
        services: Services = request.app.state.services
        asked = self.parse(await read_object(request))
        if not asked.text.strip():
            raise ApiError(BAD_REQUEST, f'"{self.field}" field must be populated')
        content_type = negotiate(request, self.answers)
        answer = self.answers[content_type]
        try:
            ready = services.engine.answer_now(asked)
            if ready is not None:
                services.admit(QueryKind.PULL)
                return Opened.of(ready, services, asked, answer).response()
            outline = await outline_of(services, asked)
            if issubclass(outline.kind, ast.PrintTopic):
                return await _print(services, asked, self, content_type)
            return await _query(request, services, asked, answer, outline.query)
        except HeadraceError as error:
            return error_response(entity_of(error, asked.text))


QUERY = QueryEndpoint(
    statement_request,
    {
        KSQL_JSON: KeptAliveAnswer,
        JSON: KeptAliveAnswer,
        DELIMITED: DelimitedAnswer,
        KSQL_PROTOBUF: ProtobufAnswer,
    },
    "ksql",
)
QUERY_STREAM = QueryEndpoint(
    stream_request,
    {
        DELIMITED: DelimitedAnswer,
        JSON: ArrayAnswer,
        KSQL_JSON: StreamedAnswer,
        KSQL_PROTOBUF: ProtobufAnswer,
    },
    "sql",
)


async def outline_of(services: Services, asked: Request) -> Outline:
    """What a request's first statement is; the engine will say if there are others."""
    found = await read(services, outlines, asked.text)
    return found[0] if found else Outline(ast.Statement)


def starters(services: Services, asked: Request, otherwise: Pool) -> Pool:
    """The threads on which a query is parsed, planned and started."""
    return services.workers.long_statements if len(asked.text) > SMALL else otherwise


async def _query(
    request: HttpRequest,
    services: Services,
    asked: Request,
    answer: type[AnswerWriter],
    kind: QueryKind | None,
) -> Response:
    workers = services.workers
    push = kind is QueryKind.PUSH
    slots = services.pushes if push else services.pulls
    pool = starters(services, asked, workers.starts if push else workers.queries)
    services.admit(kind)
    slots.take()
    watch = Watch(services, request.receive)
    work: Future[Opened] | None = None
    try:
        work = pool.submit(Opened.by, services, asked, answer)
        opened: Opened = await watch.race(asyncio.wrap_future(work))
    except BaseException as error:  # also a cancelled request gives its slot back
        slots.free()
        watch.end()
        if work is not None:
            work.add_done_callback(_abandoned)
        if isinstance(error, Disconnected):
            raise ApiError(BAD_REQUEST, "The client left before its query was started.") from None
        if isinstance(error, ServerStopping):
            raise ApiError(STOPPING.error_code, STOPPING.message) from None
        raise
    return opened.response(slots.free, watch)


def _abandoned(work: Future[Opened]) -> None:
    """Closes a query whose client left while it was started."""
    if not work.cancelled() and work.exception() is None:
        work.result().query.close()


@dataclass
class Opened:
    """A started query, its output so far, and whether it has ended."""

    services: Services
    query: RunningQuery
    writer: AnswerWriter
    text: str
    statement: str
    over: bool = False
    rows: int = 0
    deadline: float | None = None

    @staticmethod
    def by(services: Services, asked: Request, answer: type[AnswerWriter]) -> Opened:
        """Runs on a thread: starts the query, and finishes it too if it is quickly done."""
        return Opened.of(services.engine.query(asked), services, asked, answer)

    @staticmethod
    def of(
        query: RunningQuery, services: Services, asked: Request, answer: type[AnswerWriter]
    ) -> Opened:
        try:
            writer = answer(query)
            opened = Opened(services, query, writer, writer.start(), asked.text)
            opened.sent(opened.text)
            if query.kind is QueryKind.PULL:
                opened._finish_soon()
            elif services.settings.limits.query_seconds is not None:
                opened.deadline = time.monotonic() + services.settings.limits.query_seconds
        except BaseException:  # whatever it is, the query does not run on
            query.close()
            raise
        if opened.over:
            query.close()
        return opened

    def _finish_soon(self) -> None:
        until = time.monotonic() + WHOLE_SECONDS
        parts = [self.text]
        size = 0
        while not self.over and size < WHOLE_CHARACTERS and (left := until - time.monotonic()) > 0:
            text, self.over = self._step(left)
            parts.append(text)
            size += len(text)
        self.text = "".join(parts)

    def step(self) -> Chunk:
        chunk = self._step(STEP_SECONDS)
        return chunk if chunk.text else Chunk(self.writer.idle, chunk.over)

    def _step(self, seconds: float) -> Chunk:
        limits: Limits = self.services.settings.limits
        batch = self.query.next_batch(seconds)
        if batch is None:
            return Chunk(self.sent(self.writer.end(self.query.final_message)), over=True)
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise ApiError(
                BAD_REQUEST, f"The query ran longer than the limit of {limits.query_seconds} s."
            )
        if batch and batch[0].token is not None:
            return Chunk(self.writer.token(batch[0].token))
        self.rows += len(batch)
        if limits.query_rows is not None and self.rows > limits.query_rows:
            raise ApiError(
                BAD_REQUEST, f"The query returned more rows than the limit of {limits.query_rows}."
            )
        return Chunk(self.sent(self.writer.rows(batch)) if batch else "")

    def sent(self, text: str) -> str:
        """Counts a piece of the answer."""
        self.services.sent(self.query.kind).add(text)
        return text

    def response(
        self, release: Callable[[], None] = lambda: None, watch: Watch | None = None
    ) -> Response:
        if self.over:
            release()
            if watch is not None:
                watch.end()
            return Response(self.text, media_type=self.writer.content_type)
        workers = self.services.workers
        pool = workers.pushes if self.query.kind is QueryKind.PUSH else workers.rows
        source = Source(self.step, self.writer.error, self.query.close, self.statement, pool)
        content_type = self.writer.content_type
        return StreamResponse(self.services, source, self.text, content_type, release, watch)


async def _print(
    services: Services, asked: Request, endpoint: QueryEndpoint, content_type: str
) -> Response:
    """PRINT has no rows, only lines of text; `/query-stream` knows one content type for them."""
    if endpoint is QUERY_STREAM and content_type != DELIMITED:
        raise ApiError(NOT_ACCEPTABLE, f"PRINT is answered as {DELIMITED} only.")
    slots, workers = services.prints, services.workers
    slots.take()
    try:
        pool = starters(services, asked, workers.prints)
        printed = await pool.run(services.engine.print_topic, asked)
    except BaseException:  # also a cancelled request gives its slot back
        slots.free()
        raise
    steps = workers.prints
    source = Source(lambda: _lines(printed), _error_line, printed.close, asked.text, steps)
    return StreamResponse(services, source, "", content_type, slots.free)


def _lines(printed: PrintedTopic) -> Chunk:
    lines = printed.next_batch(STEP_SECONDS)
    if lines is None:
        return Chunk("", over=True)
    return Chunk("".join([line + "\n" for line in lines]))


def _error_line(error: ErrorEntity) -> str:
    return dumps(error.to_json()) + "\n"


async def close_query(request: HttpRequest) -> Response:
    services: Services = request.app.state.services
    query_id = QUERY_ID.required_of(await read_object(request))
    engine: Engine = services.engine
    if not await services.workers.endings.run(engine.close_query, query_id):
        raise ApiError(BAD_REQUEST, f"No query with id {query_id}")
    return Response()
