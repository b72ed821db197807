"""Response formats of query results, one class for each content type."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import lru_cache

from headrace.formats import FORMATS
from headrace.formats.base import Layout
from headrace.formats.protobuf.messages import schema_text
from headrace.model.entities import ErrorEntity
from headrace.model.requests import QUERY_COMPLETED, QueryKind, ResultRow
from headrace.model.schema import Column, Schema
from headrace.server.engine_interface import RunningQuery
from headrace.server.json_values import row_writer

DELIMITED = "application/vnd.ksqlapi.delimited.v1"
JSON = "application/json"
KSQL_JSON = "application/vnd.ksql.v1+json"
KSQL_PROTOBUF = "application/vnd.ksql.v1+protobuf"

_PROTOBUF = FORMATS["PROTOBUF_NOSR"]
_TOKEN = "continuationToken"


dumps: Callable[[object], str] = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@lru_cache(maxsize=1000)
def _columns(schema: Schema) -> str:
    names, types = dumps([c.name for c in schema]), dumps([str(c.type) for c in schema])
    return f'"columnNames":{names},"columnTypes":{types}'


def metadata(query: RunningQuery) -> str:
    return f'{{"queryId":{dumps(query.id)},{_columns(query.schema)}}}'


class AnswerWriter(ABC):
    """Turns a query into the chunks of a response body: start, rows…, then an error or the end.

    `idle` is sent when no row came for a while, so that proxies keep the connection.
    """

    content_type: str
    idle = ""

    def __init__(self, query: RunningQuery) -> None:
        self.query = query
        self.row = row_writer(query.schema)

    @abstractmethod
    def start(self) -> str: ...

    @abstractmethod
    def rows(self, batch: Sequence[ResultRow]) -> str: ...

    @abstractmethod
    def token(self, text: str) -> str:
        """Where a client that comes back goes on."""

    @abstractmethod
    def error(self, error: ErrorEntity) -> str: ...

    @abstractmethod
    def end(self, message: str | None) -> str: ...


class DelimitedAnswer(AnswerWriter):
    """One line of metadata, then a line per row. Tombstones have no form here and are dropped."""

    content_type = DELIMITED

    def start(self) -> str:
        return metadata(self.query) + "\n"

    def rows(self, batch: Sequence[ResultRow]) -> str:
        return "".join([self.row(r.values) + "\n" for r in batch if not r.tombstone])

    def token(self, text: str) -> str:
        return dumps({_TOKEN: text}) + "\n"

    def error(self, error: ErrorEntity) -> str:
        return dumps(error.to_json()) + "\n"

    def end(self, message: str | None) -> str:
        return ""


class ArrayAnswer(AnswerWriter):
    """One JSON array: the metadata, then the rows."""

    content_type = JSON

    def start(self) -> str:
        return "[" + metadata(self.query)

    def rows(self, batch: Sequence[ResultRow]) -> str:
        return "".join(["," + self.row(r.values) for r in batch if not r.tombstone])

    def token(self, text: str) -> str:
        return "," + dumps({_TOKEN: text})

    def error(self, error: ErrorEntity) -> str:
        return "," + dumps(error.to_json()) + "]"

    def end(self, message: str | None) -> str:
        return "]"


class StreamedAnswer(AnswerWriter):
    """One JSON array of objects (`header`, `row`, `finalMessage`, `errorMessage`), one a line.

    A push query always has a last object, so that its lines can end with the comma: a client
    that reads line by line sees a row when it is sent, not when the next one follows.
    """

    content_type = KSQL_JSON

    def __init__(self, query: RunningQuery) -> None:
        super().__init__(query)
        push = query.kind is QueryKind.PUSH
        self.before, self.after = ("", ",\n") if push else (",\n", "")
        self.default_message = QUERY_COMPLETED if push else None

    def start(self) -> str:
        return "[" + dumps({"header": self.header()}) + self.after

    def header(self) -> dict[str, str]:
        return {"queryId": self.query.id, "schema": str(shown_schema(self.query))}

    def rows(self, batch: Sequence[ResultRow]) -> str:
        return "".join([self.before + self.element(r) + self.after for r in batch])

    def element(self, row: ResultRow) -> str:
        mark = ',"tombstone":true' if row.tombstone else ""
        return f'{{"row":{{"columns":{self.row(row.values)}{mark}}}}}'

    def token(self, text: str) -> str:
        return self.before + self.token_element(text) + self.after

    def token_element(self, text: str) -> str:
        return dumps({_TOKEN: {_TOKEN: text}})

    def error(self, error: ErrorEntity) -> str:
        # The bracket has a line of its own, without an end: ksqlDB's client for Java never notices
        # that an answer is over after a line that it could not take.
        return self.before + dumps({"errorMessage": error.to_json()}) + "\n]"

    def end(self, message: str | None) -> str:
        final = message or self.default_message
        return (self.before + dumps({"finalMessage": final}) if final else "") + "]\n"


class KeptAliveAnswer(StreamedAnswer):
    """The same with a blank line when no row came for a while, as clients of `/query` know it;
    those of `/query-stream` take no blank lines."""

    idle = "\n"


class ProtobufAnswer(StreamedAnswer):
    """The same objects, but rows are messages, in base64, of the schema that the header has."""

    content_type = KSQL_PROTOBUF

    def __init__(self, query: RunningQuery) -> None:
        super().__init__(query)
        columns = tuple(Column(c.name, c.type) for c in query.schema)
        _PROTOBUF.check(columns, "value")
        self._names = [c.name for c in columns]
        self._layout = Layout(columns)
        self._codec = _PROTOBUF.python(self._layout)

    def header(self) -> dict[str, str]:
        schema = schema_text(self._layout.struct, None, None)
        return {**super().header(), "protoSchema": schema}

    def element(self, row: ResultRow) -> str:
        if row.tombstone:
            return super().element(row)
        message = self._codec.encode(dict(zip(self._names, row.values, strict=True)))
        return f'{{"row":{{"protobufBytes":"{b64encode(message or b"").decode()}"}}}}'


def shown_schema(query: RunningQuery) -> Schema:
    """The schema of a header, in the order of the rows: ksqlDB's Java client takes its columns
    from there. A pull query marks the columns of the key, a push query does not."""
    if query.kind is QueryKind.PULL:
        return query.schema
    return Schema.of(type(c)(c.name, c.type) for c in query.schema)
