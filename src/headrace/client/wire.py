"""The client's requests as data, and its parsing of response lines.

Both clients use this; they differ only in how they wait.
"""

from __future__ import annotations

import json
import ssl
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from itertools import islice
from typing import Any

import httpx

from headrace.client.errors import (
    ConnectionFailed,
    InsertFailed,
    QueryFailed,
    RequestFailed,
    failure,
)
from headrace.client.rows import Ack, ResultColumn, Row, parse_schema

Json = dict[str, Any]

STREAMED = "application/vnd.ksql.v1+json"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
# Rows per request of an insert stream. httpx reads no answer before the whole body is sent, so
# that acknowledgements must fit what the connection holds meanwhile.
INSERT_ROWS = 2000
_CONTINUATION = "request.ksql.query.push.continuation.token"


@dataclass(frozen=True)
class Call:
    """One request; `content` is a body that is not one JSON value."""

    method: str
    path: str
    json: Json | None = None
    content: bytes | None = None
    accept: str = STREAMED

    def options(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "url": self.path,
            "json": self.json,
            "content": self.content,
            "headers": {"accept": self.accept},
        }


def execute_call(
    sql: str, properties: Mapping[str, object], variables: Mapping[str, object], after: int | None
) -> Call:
    body: Json = {
        "ksql": sql,
        "streamsProperties": dict(properties),
        "sessionVariables": dict(variables),
    }
    if after is not None:
        body["commandSequenceNumber"] = after
    return Call("POST", "/ksql", body)


def query_call(
    sql: str,
    properties: Mapping[str, object],
    variables: Mapping[str, object],
    accept: str = STREAMED,
    continuation: str | None = None,
) -> Call:
    body: Json = {
        "sql": sql,
        "properties": dict(properties),
        "sessionVariables": dict(variables),
    }
    if continuation:
        body["requestProperties"] = {_CONTINUATION: continuation}
    return Call("POST", "/query-stream", body, accept=accept)


def insert_calls(target: str, rows: Iterable[Mapping[str, object]]) -> Iterator[Call]:
    """Requests of a bounded number of rows each; none for no rows."""
    remaining = iter(rows)
    head = json.dumps({"target": target})
    while batch := list(islice(remaining, INSERT_ROWS)):
        lines = [head, *map(row_text, batch)]
        content = "".join(line + "\n" for line in lines).encode()
        yield Call("POST", "/inserts-stream", content=content, accept=DELIMITED)


def row_text(value: object) -> str:
    """JSON as the server reads it: bytes in base64, dates and times in ISO 8601, decimals whole.

    `json` has no way to write a number with the digits of a Decimal, hence by hand.
    """
    match value:
        case Decimal():
            return format(value, "f")
        case bytes():
            return f'"{b64encode(value).decode()}"'
        case Mapping():
            members = (f"{json.dumps(str(k))}:{row_text(v)}" for k, v in value.items())
            return "{" + ",".join(members) + "}"
        case list() | tuple():
            return "[" + ",".join(map(row_text, value)) + "]"
        case date() | time():
            return json.dumps(value.isoformat())
    return json.dumps(value)


def parse_acks(text: str, first: int) -> Iterator[Ack]:
    for line in text.splitlines():
        answer = json.loads(line)
        sequence = first + answer["seq"]
        if answer["status"] == "ok":
            yield Ack(sequence)
        else:
            error = InsertFailed(answer["error_code"], answer["message"], sequence)
            yield Ack(sequence, error)


def checked(response: httpx.Response) -> httpx.Response:
    """The response, unless its status is bad; its body must have been read."""
    if response.status_code < 400:
        return response
    try:
        body = response.json()
    except ValueError:
        body = response.text
    raise failure(response.status_code, body)


def trust(url: str, verify: bool | str) -> bool | ssl.SSLContext:
    """What httpx should check certificates against; `verify` may name a file of them."""
    if not url.startswith("https:"):
        return False  # spares a plain connection the loading of certificates
    if not isinstance(verify, str):
        return verify
    try:
        return ssl.create_default_context(cafile=verify)
    except OSError as error:
        raise ConnectionFailed(f"Cannot trust the certificates of {verify}: {error}") from None


@contextmanager
def connection_errors(url: str) -> Iterator[None]:
    """Failures of the connection as this client's own errors."""
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise ConnectionFailed(f"Cannot reach the server at {url}: {error}") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise ConnectionFailed(f"The connection to {url} failed: {reason}") from error


class RowParser:
    """Reads a streamed answer line by line: first the header, then rows, then how it ended."""

    def __init__(self) -> None:
        self.query_id = ""
        self.columns: tuple[ResultColumn, ...] = ()
        self.final_message: str | None = None
        self.continuation = ""

    def feed(self, line: str) -> Row | None:
        """The row of a line, if it has one."""
        if "{" not in line:
            return None  # a bracket, or a line that only keeps the connection
        part = _element(line)
        if "row" in part:
            values = part["row"]["columns"]
            pairs = zip(self.columns, values, strict=True)
            return Row(
                self.columns,
                tuple(column.value(value) for column, value in pairs),
                part["row"].get("tombstone", False),
            )
        if "header" in part:
            self.query_id = part["header"]["queryId"]
            self.columns = parse_schema(part["header"]["schema"])
        elif "continuationToken" in part:
            self.continuation = part["continuationToken"]["continuationToken"]
        elif "finalMessage" in part:
            self.final_message = part["finalMessage"]
        elif "errorMessage" in part:
            raise QueryFailed(part["errorMessage"]["error_code"], part["errorMessage"]["message"])
        return None


_DECODER = json.JSONDecoder(parse_float=Decimal)


def _element(text: str) -> Json:
    """One object of a streamed answer, without the brackets and commas around it."""
    try:
        start = text.index("{")
        return dict(_DECODER.raw_decode(text, start)[0])
    except ValueError as error:
        raise RequestFailed(50000, f"The server sent what is not JSON: {error}") from None
