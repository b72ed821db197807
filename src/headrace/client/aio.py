"""The client for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from headrace.client import wire
from headrace.client.rows import Ack, ResultColumn, Row
from headrace.client.wire import Call, Json, RowParser

_NOTHING: Mapping[str, str] = {}


class _Lines:
    """A response that lasts, read line by line; leaving it ends the query on the server."""

    def __init__(self, url: str, response: httpx.Response) -> None:
        self._url = url
        self._response = response
        self._lines = response.aiter_lines()

    async def close(self) -> None:
        await self._response.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncPrintedLines(_Lines):
    """The lines of PRINT."""

    async def __aiter__(self) -> AsyncIterator[str]:
        with wire.connection_errors(self._url):
            async for line in self._lines:
                yield line


class AsyncRowStream(_Lines):
    """The rows of a query as they come. After the last one, `final_message` says why it ended."""

    def __init__(self, url: str, response: httpx.Response) -> None:
        super().__init__(url, response)
        self._parser = RowParser()

    async def start(self) -> Self:
        """Reads the header; then the columns are known."""
        with wire.connection_errors(self._url):
            while not self._parser.columns:
                line = await anext(self._lines, None)
                if line is None:
                    break
                self._parser.feed(line)
        return self

    @property
    def query_id(self) -> str:
        return self._parser.query_id

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return self._parser.columns

    @property
    def continuation(self) -> str:
        """The token of the last rows that were read, with which `stream` goes on after them; empty
        if there is none."""
        return self._parser.continuation

    @property
    def final_message(self) -> str | None:
        return self._parser.final_message

    async def __aiter__(self) -> AsyncIterator[Row]:
        with wire.connection_errors(self._url):
            async for line in self._lines:
                row = self._parser.feed(line)
                if row is not None:
                    yield row


class AsyncClient:
    """As `Client`, with every method awaited."""

    def __init__(
        self,
        url: str = "http://localhost:8088",
        *,
        user: str | None = None,
        password: str = "",
        properties: Mapping[str, object] = _NOTHING,
        variables: Mapping[str, Any] = _NOTHING,
        timeout: float | None = 300.0,
        verify: bool | str = True,
        headers: Mapping[str, str] = _NOTHING,
    ) -> None:
        self.url = url.rstrip("/")
        self.properties = dict(properties)
        self.variables = dict(variables)
        with wire.connection_errors(self.url):
            self._http = httpx.AsyncClient(
                base_url=self.url,
                auth=(user, password) if user is not None else None,
                timeout=httpx.Timeout(timeout, connect=10.0),
                verify=wire.trust(self.url, verify),
                headers=dict(headers),
            )

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _send(self, call: Call) -> httpx.Response:
        with wire.connection_errors(self.url):
            return wire.checked(await self._http.request(**call.options()))

    async def _open(self, call: Call) -> httpx.Response:
        with wire.connection_errors(self.url):
            request = self._http.build_request(
                **call.options(), timeout=httpx.Timeout(None, connect=10.0)
            )
            response = await self._http.send(request, stream=True)
            if response.status_code >= 400:
                await response.aread()
        return wire.checked(response)

    # ---------------------------------------------------------------------- statements

    async def execute(
        self,
        sql: str,
        *,
        properties: Mapping[str, object] = _NOTHING,
        variables: Mapping[str, object] = _NOTHING,
        after: int | None = None,
    ) -> list[Json]:
        """Runs statements; returns one entity for each. `after`: a command to wait for first."""
        call = wire.execute_call(
            sql, {**self.properties, **properties}, {**self.variables, **variables}, after
        )
        return list((await self._send(call)).json())

    async def stream(
        self,
        sql: str,
        *,
        properties: Mapping[str, object] = _NOTHING,
        variables: Mapping[str, object] = _NOTHING,
        continuation: str | None = None,
    ) -> AsyncRowStream:
        """Starts a query and yields its rows as they come; use it in an `async with`.

        `continuation` is the token of an earlier stream, after which this one goes on."""
        call = wire.query_call(
            sql,
            {**self.properties, **properties},
            {**self.variables, **variables},
            continuation=continuation,
        )
        return await AsyncRowStream(self.url, await self._open(call)).start()

    async def pull(
        self,
        sql: str,
        *,
        properties: Mapping[str, object] = _NOTHING,
        variables: Mapping[str, object] = _NOTHING,
    ) -> list[Row]:
        """All rows of a query that ends."""
        async with await self.stream(sql, properties=properties, variables=variables) as rows:
            return [row async for row in rows]

    async def print_topic(
        self,
        sql: str,
        *,
        properties: Mapping[str, object] = _NOTHING,
        variables: Mapping[str, object] = _NOTHING,
    ) -> AsyncPrintedLines:
        """The lines of a PRINT statement as they come; use it in an `async with`."""
        call = wire.query_call(
            sql,
            {**self.properties, **properties},
            {**self.variables, **variables},
            wire.DELIMITED,
        )
        return AsyncPrintedLines(self.url, await self._open(call))

    async def close_query(self, query_id: str) -> None:
        await self._send(Call("POST", "/close-query", {"queryId": query_id}))

    # ------------------------------------------------------------------------- inserts

    async def insert(self, target: str, row: Mapping[str, object]) -> None:
        """Inserts one row; returns when it is in the topic."""
        async for ack in self.insert_stream(target, [row]):
            if ack.error is not None:
                raise ack.error

    async def insert_stream(
        self, target: str, rows: Iterable[Mapping[str, object]]
    ) -> AsyncIterator[Ack]:
        """Inserts many rows; yields the result of each, in order."""
        sent = 0
        for call in wire.insert_calls(target, rows):
            for ack in wire.parse_acks((await self._send(call)).text, sent):
                yield ack
            sent += wire.INSERT_ROWS

    # ------------------------------------------------------------------- what is there

    async def streams(self) -> list[Json]:
        return list((await self.execute("SHOW STREAMS;"))[0]["streams"])

    async def tables(self) -> list[Json]:
        return list((await self.execute("SHOW TABLES;"))[0]["tables"])

    async def topics(self) -> list[Json]:
        return list((await self.execute("SHOW TOPICS;"))[0]["topics"])

    async def queries(self) -> list[Json]:
        return list((await self.execute("SHOW QUERIES;"))[0]["queries"])

    async def functions(self) -> list[Json]:
        return list((await self.execute("SHOW FUNCTIONS;"))[0]["functions"])

    async def describe(self, source: str, *, extended: bool = False) -> Json:
        suffix = " EXTENDED" if extended else ""
        return dict((await self.execute(f"DESCRIBE {source}{suffix};"))[0]["sourceDescription"])

    async def info(self) -> Json:
        return dict((await self._send(Call("GET", "/info"))).json()["KsqlServerInfo"])

    async def health(self) -> Json:
        with wire.connection_errors(self.url):
            return dict((await self._http.get("/healthcheck")).json())

    async def command_status(self, command_id: str) -> Json:
        return dict((await self._send(Call("GET", f"/status/{command_id}"))).json())

    async def check_property(self, name: str) -> None:
        """Raises RequestFailed unless a session may set this property."""
        await self._send(Call("GET", f"/is_valid_property/{name}"))
