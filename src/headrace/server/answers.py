"""The forms in which a query's rows go out, one class for each content type."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence

from headrace.model.entities import ErrorEntity
from headrace.model.requests import QueryKind, ResultRow
from headrace.model.schema import Schema
from headrace.server.ports import RunningQuery
from headrace.server.values import row_writer

DELIMITED = "application/vnd.ksqlapi.delimited.v1"
JSON = "application/json"
KSQL_JSON = "application/vnd.ksql.v1+json"


def dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def metadata(query: RunningQuery) -> str:
    return dumps(
        {
            "queryId": query.id,
            "columnNames": [c.name for c in query.schema],
            "columnTypes": [str(c.type) for c in query.schema],
        }
    )


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

    def error(self, error: ErrorEntity) -> str:
        return "," + dumps(error.to_json()) + "]"

    def end(self, message: str | None) -> str:
        return "]"


class StreamedAnswer(AnswerWriter):
    """One JSON array of objects (`header`, `row`, `finalMessage`, `errorMessage`), one a line."""

    content_type = KSQL_JSON
    idle = "\n"

    def start(self) -> str:
        schema = str(shown_schema(self.query))
        return "[" + dumps({"header": {"queryId": self.query.id, "schema": schema}})

    def rows(self, batch: Sequence[ResultRow]) -> str:
        return "".join([",\n" + self.element(r) for r in batch])

    def element(self, row: ResultRow) -> str:
        mark = ',"tombstone":true' if row.tombstone else ""
        return f'{{"row":{{"columns":{self.row(row.values)}{mark}}}}}'

    def error(self, error: ErrorEntity) -> str:
        return ",\n" + dumps({"errorMessage": error.to_json()}) + "]\n"

    def end(self, message: str | None) -> str:
        final = ",\n" + dumps({"finalMessage": message}) if message is not None else ""
        return final + "]\n"


def shown_schema(query: RunningQuery) -> Schema:
    """The schema of a header: a pull query marks key columns, a push query does not."""
    if query.kind is QueryKind.PULL:
        return query.schema
    return Schema.of(type(c)(c.name, c.type) for c in query.schema)
