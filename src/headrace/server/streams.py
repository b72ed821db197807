"""Streaming responses, from a blocking source to a client that may disconnect at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headrace.model.entities import ErrorEntity, Health
from headrace.model.requests import QueryKind
from headrace.server.engine_interface import Engine
from headrace.server.error_responses import (
    MAX_PUSH_QUERIES,
    STOPPING,
    TOO_MANY_REQUESTS,
    ApiError,
    RequestCounter,
    entity_of,
)
from headrace.server.rates import Bandwidth, QueryRate
from headrace.server.settings import ServerSettings
from headrace.server.thread_pool import Pool, Workers

T = TypeVar("T")

# How long a source is asked to wait for its next rows: bounds how long its thread outlives it.
STEP_SECONDS = 1.0
# A client that takes nothing for so long is taken for dead.
WRITE_SECONDS = 600.0
# How long a server that stops waits for a client to take that word.
LAST_WORD_SECONDS = 1.0


class Chunk(NamedTuple):
    text: str
    over: bool = False


class Slots:
    """Bounds how many queries of a kind run at once; used on the event loop only."""

    def __init__(self, most: int | None, error_code: int, refusal: str) -> None:
        self._most = most
        self._refusal = error_code, refusal
        self.taken = 0

    def take(self) -> None:
        if self._most is not None and self.taken >= self._most:
            raise ApiError(*self._refusal)
        self.taken += 1

    def free(self) -> None:
        self.taken -= 1


class Services:
    """What every endpoint works with. `stopping` is set when the server stops."""

    def __init__(self, engine: Engine, settings: ServerSettings) -> None:
        self.engine = engine
        self.settings = settings
        limits = settings.limits
        self.workers = Workers(limits)
        self.requests = RequestCounter()
        self.stopping = asyncio.Event()
        self.pushes = Slots(
            limits.push_queries,
            MAX_PUSH_QUERIES,
            "Maximum number of push queries exceeded. Maximum concurrent push queries: "
            f"{limits.push_queries}",
        )
        self.pulls = Slots(
            limits.pull_queries,
            TOO_MANY_REQUESTS,
            "Host is at concurrency limit for pull queries. Currently set to "
            f"{limits.pull_queries} maximum concurrent operations.",
        )
        self.pull_rate = QueryRate(limits.pulls_per_second)
        self._sent = {
            QueryKind.PULL: Bandwidth("pull", limits.pull_megabytes),
            QueryKind.PUSH: Bandwidth("push", limits.push_megabytes),
        }
        self.prints = _slots("PRINTs", limits.prints, "ksql.server.max.prints")
        self.inserts = _slots(
            "insert streams", limits.insert_streams, "ksql.server.max.insert.streams"
        )
        self.assertions = _slots(
            "assertions that wait", limits.assertions, "ksql.server.max.waiting.assertions"
        )
        self._look: asyncio.Future[Health] | None = None

    def admit(self, kind: QueryKind | None) -> None:
        """Refuses a query that would be one too many for the second or the hour; called on the
        event loop."""
        pull = kind is QueryKind.PULL
        if pull:
            self.pull_rate.take()
        self.sent(QueryKind.PULL if pull else QueryKind.PUSH).check()

    def sent(self, kind: QueryKind) -> Bandwidth:
        """What counts the answers to queries of a kind."""
        return self._sent[kind]

    async def health(self) -> Health:
        """The health; simultaneous requests share one check."""
        if self._look is None or self._look.done():
            self._look = asyncio.ensure_future(self.workers.health.run(self.engine.health))
        return await asyncio.shield(self._look)


def _slots(what: str, most: int, setting: str) -> Slots:
    return Slots(
        most, TOO_MANY_REQUESTS, f"There are {most} {what} already, as many as {setting} allows."
    )


class Source:
    """The source of a streaming response: chunks, the form of an error, and the end.

    `step` blocks for a moment; `close` may come while `step` runs, and makes it return.
    """

    def __init__(
        self,
        step: Callable[[], Chunk],
        error: Callable[[ErrorEntity], str],
        close: Callable[[], None],
        statement: str,
        pool: Pool,
    ) -> None:
        self.step = step
        self.error = error
        self.close = close
        self.statement = statement
        self.pool = pool  # whose threads do the steps


class Disconnected(Exception):
    """The client has disconnected, or does not read any more."""


class ServerStopping(Exception):
    """The server is stopping."""


class Watch:
    """Waits for work, the client's disconnect or the server's stop, whichever comes first.

    Without `receive` the work itself has to notice that the client has left.
    """

    def __init__(self, services: Services, receive: Receive | None = None) -> None:
        leaving = _until_disconnect(receive) if receive else asyncio.Event().wait()
        self._gone: asyncio.Future[object] = asyncio.ensure_future(leaving)
        self._stopping: asyncio.Future[object] = asyncio.ensure_future(services.stopping.wait())

    async def race(self, work: Awaitable[T], seconds: float | None = None) -> T:
        """The result of the work; it is cancelled if the client leaves or the server stops."""
        task = asyncio.ensure_future(work)
        ends: set[asyncio.Future[T] | asyncio.Future[object]] = {task, self._gone, self._stopping}
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        raise ServerStopping if self._stopping.done() and not self._gone.done() else Disconnected

    def end(self) -> None:
        self._gone.cancel()
        self._stopping.cancel()


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] not in ("http.disconnect", "websocket.disconnect"):
        pass


class StreamResponse(Response):
    """Sends `first`, then chunk after chunk of the source. `release` runs once, at the end.

    `watch` is one that looks after the client already.
    """

    def __init__(
        self,
        services: Services,
        source: Source,
        first: str,
        content_type: str,
        release: Callable[[], None] = lambda: None,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(media_type=content_type)
        del self.headers["content-length"]
        self.services = services
        self.source = source
        self.first = first
        self.release = release
        self.watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watch = self.watch or Watch(self.services, receive)

        async def write(text: str) -> None:
            body = {"type": "http.response.body", "body": text.encode(), "more_body": True}
            await watch.race(send(body), WRITE_SECONDS)

        async def end(text: str) -> None:
            await send({"type": "http.response.body", "body": text.encode(), "more_body": False})

        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await write(self.first)
            await self._pump(watch, write)
            await end("")
        except ServerStopping:  # while the client had yet to read
            with suppress(TimeoutError):
                await asyncio.wait_for(end(self.source.error(STOPPING)), LAST_WORD_SECONDS)
        except Disconnected:
            pass
        finally:
            watch.end()
            self.release()
            with suppress(ApiError):  # the server stops, and the engine ends its queries itself
                await self.services.workers.endings.run(self.source.close)

    async def _pump(self, watch: Watch, write: Callable[[str], Awaitable[None]]) -> None:
        over = False
        while not over:
            try:
                text, over = await watch.race(self.source.pool.run(self.source.step))
            except Disconnected:
                raise
            except ServerStopping:
                text, over = self.source.error(STOPPING), True
            except Exception as error:  # the answer has begun: its error goes where rows went
                text, over = self.source.error(entity_of(error, self.source.statement)), True
            if text:
                await write(text)
