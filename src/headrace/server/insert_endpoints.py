"""`/inserts-stream`: reads rows and sends acknowledgements at the same time.

The first line of the body names the target, every further line is a row. Rows are taken in the
batches they arrive in; a batch is acknowledged, in order, when it is in the topic. Nothing more
is read meanwhile, so that a fast client is slowed down to what the topic takes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headrace.model.errors import HeadraceError
from headrace.server.bodies import (
    PROPERTIES,
    TARGET,
    check_content_type,
    invalid,
    negotiate,
    parse_json,
    parse_object,
    read,
    too_large,
)
from headrace.server.engine_interface import Inserter
from headrace.server.error_responses import BAD_REQUEST, ApiError, entity_of
from headrace.server.response_formats import DELIMITED, JSON, dumps
from headrace.server.streams import Disconnected, ServerStopping, Services, Watch

# Rows that are sent to the topic before they are waited for.
BATCH_ROWS = 5000


async def inserts_stream(request: HttpRequest) -> Response:
    services: Services = request.app.state.services
    check_content_type(request)
    content_type = negotiate(request, (DELIMITED, JSON))
    return InsertsResponse(services, content_type)


class InsertsResponse(Response):
    """Reads the body itself, because it answers before the body has ended."""

    def __init__(self, services: Services, content_type: str) -> None:
        super().__init__(media_type=content_type)
        del self.headers["content-length"]
        self.services = services
        self.separator = "\n" if content_type == DELIMITED else ","
        self.brackets = ("", "") if content_type == DELIMITED else ("[", "]")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.services.inserts.take()
        watch = Watch(self.services)
        batches = _batches(receive, self.services.settings.limits.body_bytes)
        inserter: Inserter | None = None
        try:
            inserter = await self._open(await watch.race(anext(batches, [])))
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._acknowledge(Acks(inserter), batches, watch, send)
        except (Disconnected, ServerStopping):
            pass
        finally:
            watch.end()
            self.services.inserts.free()
            if inserter is not None:
                await self.services.workers.endings.run(inserter.close)

    async def _open(self, arguments: list[bytes]) -> Inserter:
        """The target is the first line; the rows that came along with it are a batch for later."""
        body = await read(self.services, parse_object, arguments[0] if arguments else b"{}")
        target = TARGET.required_of(body)
        properties: Mapping[str, object] = PROPERTIES.of(body) or {}
        engine = self.services.engine
        return await self.services.workers.inserts.run(engine.insert, target, properties)

    async def _acknowledge(
        self, acks: Acks, batches: AsyncIterator[list[bytes]], watch: Watch, send: Send
    ) -> None:
        async def write(text: str, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": text.encode(), "more_body": more})

        await write(self.brackets[0])
        first = True
        while not acks.broken:
            try:
                lines = await watch.race(anext(batches, None))
            except HeadraceError as error:
                lines, answers = None, [acks.error(error)]
                await write(self._join(answers, first))
            if lines is None:
                break
            for part in _parts(lines):
                answers = await watch.race(self.services.workers.inserts.run(acks.take, part))
                await write(self._join(answers, first))
                first = False
        await write(self.brackets[1], more=False)

    def _join(self, answers: Sequence[str], first: bool) -> str:
        if self.separator == "\n":
            return "".join([a + "\n" for a in answers])
        return ("" if first else ",") + ",".join(answers)


class Acks:
    """Inserts batches of rows and acknowledges each row; runs on threads."""

    def __init__(self, inserter: Inserter) -> None:
        self.inserter = inserter
        self.sequence = 0
        self.broken = False  # not JSON: what follows cannot be trusted to be rows

    def take(self, lines: Sequence[bytes]) -> list[str]:
        answers: list[str] = []
        for line in lines:
            if self.broken:
                break
            answers.append(self._insert(line))
            self.sequence += 1
        self.inserter.flush()
        return answers

    def _insert(self, line: bytes) -> str:
        try:
            row = parse_json(line)
            if not isinstance(row, dict):
                raise invalid("expected an object")
        except ApiError:
            self.broken = True
            return self.error(ApiError(BAD_REQUEST, "Invalid JSON in inserts stream"))
        try:
            self.inserter.insert(row)
        except HeadraceError as error:
            return self.error(error)
        return f'{{"status":"ok","seq":{self.sequence}}}'

    def error(self, error: HeadraceError) -> str:
        body = entity_of(ApiError(error.error_code, error.message)).to_json()
        return dumps({**body, "status": "error", "seq": self.sequence})


def _parts(lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(lines), BATCH_ROWS):
        yield lines[start : start + BATCH_ROWS]


async def _batches(receive: Receive, limit: int) -> AsyncIterator[list[bytes]]:
    """The complete, non-empty lines of the body as they arrive; the first alone, then batches."""
    rest: list[bytes] = []  # of a line that has not ended; joined once it has
    size = 0
    first = True
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        more = message.get("more_body", False)
        begun, *further = message.get("body", b"").split(b"\n")
        rest.append(begun)
        size += len(begun)
        if size > limit:
            raise too_large(limit)
        complete = []
        if further or not more:
            complete = [b"".join(rest), *further[:-1]]
            rest = further[-1:]
            size = sum(map(len, rest))
        if not more:
            complete += rest
        lines = [line for line in complete if line.strip()]
        if first and lines:
            yield lines[:1]
            lines = lines[1:]
            first = False
        if lines:
            yield lines
