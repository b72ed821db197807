"""The blocking client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
        self._lines = response.iter_lines()

    def close(self) -> None:
        self._response.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class PrintedLines(_Lines):
    """The lines of PRINT."""

    def __iter__(self) -> Iterator[str]:
        with wire.connection_errors(self._url):
            yield from self._lines


class RowStream(_Lines):
    """The rows of a query as they come. After the last one, `final_message` says why it ended."""

    def __init__(self, url: str, response: httpx.Response) -> None:
        super().__init__(url, response)
        self._parser = RowParser()
        with wire.connection_errors(url):
            while not self._parser.columns and (line := next(self._lines, None)) is not None:
                self._parser.feed(line)

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

    def __iter__(self) -> Iterator[Row]:
        with wire.connection_errors(self._url):
            for line in self._lines:
                row = self._parser.feed(line)
                if row is not None:
                    yield row


class Client:
    """A connection to one server. `properties` and `variables` go along with every request.

    `timeout` bounds how long an answer may take; a stream, once it is there, may be silent
    for any time. `verify` may name a PEM file of trusted certificates; `headers` are sent along
    with every request.
    """

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
        self._connection: dict[str, Any] = {
            "user": user,
            "password": password,
            "timeout": timeout,
            "verify": verify,
            "headers": headers,
        }
        with wire.connection_errors(self.url):
            self._http = httpx.Client(
                base_url=self.url,
                auth=(user, password) if user is not None else None,
                timeout=httpx.Timeout(timeout, connect=10.0),
                verify=wire.trust(self.url, verify),
                headers=dict(headers),
            )

    def connect(self, url: str) -> Client:
        """Another connection, with the same credentials, properties and variables."""
        return Client(url, properties=self.properties, variables=self.variables, **self._connection)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _send(self, call: Call) -> httpx.Response:
        with wire.connection_errors(self.url):
            return wire.checked(self._http.request(**call.options()))

    def _open(self, call: Call) -> httpx.Response:
        with wire.connection_errors(self.url):
            request = self._http.build_request(
                **call.options(), timeout=httpx.Timeout(None, connect=10.0)
            )
            response = self._http.send(request, stream=True)
            if response.status_code >= 400:
                response.read()
        return wire.checked(response)

    # ---------------------------------------------------------------------- statements

    def execute(
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
        return list(self._send(call).json())

    def stream(
        self,
        sql: str,
        *,
        properties: Mapping[str, object] = _NOTHING,
        variables: Mapping[str, object] = _NOTHING,
        continuation: str | None = None,
    ) -> RowStream:
        """Starts a query and yields its rows as they come; use it in a `with`.

        `continuation` is the token of an earlier stream, after which this one goes on."""
        call = wire.query_call(
            sql,
            {**self.properties, **properties},
            {**self.variables, **variables},
            continuation=continuation,
        )
        return RowStream(self.url, self._open(call))

    def pull(
        self,
        sql: str,
        *,
        properties: Mapping[str, object] = _NOTHING,
        variables: Mapping[str, object] = _NOTHING,
    ) -> list[Row]:
        """All rows of a query that ends."""
        with self.stream(sql, properties=properties, variables=variables) as rows:
            return list(rows)

    def print_topic(
        self,
        sql: str,
        *,
        properties: Mapping[str, object] = _NOTHING,
        variables: Mapping[str, object] = _NOTHING,
    ) -> PrintedLines:
        """The lines of a PRINT statement as they come; use it in a `with`."""
        call = wire.query_call(
            sql,
            {**self.properties, **properties},
            {**self.variables, **variables},
            wire.DELIMITED,
        )
        return PrintedLines(self.url, self._open(call))

    def close_query(self, query_id: str) -> None:
        self._send(Call("POST", "/close-query", {"queryId": query_id}))

    # ------------------------------------------------------------------------- inserts

    def insert(self, target: str, row: Mapping[str, object]) -> None:
        """Inserts one row; returns when it is in the topic."""
        for ack in self.insert_stream(target, [row]):
            if ack.error is not None:
                raise ack.error

    def insert_stream(self, target: str, rows: Iterable[Mapping[str, object]]) -> Iterator[Ack]:
        """Inserts many rows; yields the result of each, in order."""
        sent = 0
        for call in wire.insert_calls(target, rows):
            yield from wire.parse_acks(self._send(call).text, sent)
            sent += wire.INSERT_ROWS

    # ------------------------------------------------------------------- what is there

    def streams(self) -> list[Json]:
        return list(self.execute("SHOW STREAMS;")[0]["streams"])

    def tables(self) -> list[Json]:
        return list(self.execute("SHOW TABLES;")[0]["tables"])

    def topics(self) -> list[Json]:
        return list(self.execute("SHOW TOPICS;")[0]["topics"])

    def queries(self) -> list[Json]:
        return list(self.execute("SHOW QUERIES;")[0]["queries"])

    def functions(self) -> list[Json]:
        return list(self.execute("SHOW FUNCTIONS;")[0]["functions"])

    def describe(self, source: str, *, extended: bool = False) -> Json:
        suffix = " EXTENDED" if extended else ""
        return dict(self.execute(f"DESCRIBE {source}{suffix};")[0]["sourceDescription"])

    def info(self) -> Json:
        return dict(self._send(Call("GET", "/info")).json()["KsqlServerInfo"])

    def health(self) -> Json:
        with wire.connection_errors(self.url):
            return dict(self._http.get("/healthcheck").json())

    def command_status(self, command_id: str) -> Json:
        return dict(self._send(Call("GET", f"/status/{command_id}")).json())

    def check_property(self, name: str) -> None:
        """Raises RequestFailed unless a session may set this property."""
        self._send(Call("GET", f"/is_valid_property/{name}"))
