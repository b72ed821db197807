"""A running ksqlDB, by its REST API: what it has now, not how it came to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.client import Client, ClientError
from headrace.functions.registry import REGISTRY
from headrace.importing.recorded import (
    DEFAULT_SERVICE,
    History,
    Recorded,
    Unreadable,
    consumer_group,
)
from headrace.importing.type_statements import type_statement
from headrace.model.errors import HeadraceError, ParseError
from headrace.model.types import quote
from headrace.sql import ast
from headrace.sql.parser import parse_statement

Json = Mapping[str, Any]


def read_server(client: Client) -> History:
    """All or nothing: what cannot be asked to the end is not imported at all."""
    try:
        return _Server(client).history()
    except ClientError as error:
        raise HeadraceError(
            f"ksqlDB at {client.url} could not be read to the end, so that nothing was imported: "
            f"{error}"
        ) from None
    except (KeyError, TypeError, IndexError) as error:
        raise HeadraceError(
            f"What answers at {client.url} is not ksqlDB, or one of another kind: its answer has "
            f"no {error}. Nothing was imported."
        ) from None


class _Server:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._service = str(client.info().get("ksqlServiceId") or DEFAULT_SERVICE)
        self._settings = {
            p["name"]: p["value"] for p in self._ask("SHOW PROPERTIES;", "properties")
        }

    def history(self) -> History:
        types = self._ask("SHOW TYPES;", "types")
        sources = [
            *self._ask("SHOW STREAMS EXTENDED;", "sourceDescriptions"),
            *self._ask("SHOW TABLES EXTENDED;", "sourceDescriptions"),
        ]
        queries = self._ask("SHOW QUERIES EXTENDED;", "queryDescriptions")
        persistent = [q for q in queries if _is_statement(q)]
        writers = {sink: q for q in persistent for sink in q["sinks"] if _creates(q)}
        entries = [
            *(self._type(name, schema) for name, schema in types.items()),
            *(self._source(source, writers.get(source["name"])) for source in sources),
            *(self._query(query) for query in persistent if not _creates(query)),
        ]
        # A query's number tells when it was made; what has none was there before.
        ordered = sorted(entries, key=lambda e: _number(e) if isinstance(e, Recorded) else -1)
        origin = f"ksqlDB at {self._client.url}"
        return History(origin, tuple(ordered), functions=dict(self._functions()))

    def _ask(self, statement: str, answer: str) -> Any:
        return self._client.execute(statement)[0][answer]

    def _type(self, name: str, schema: Json) -> Recorded:
        return Recorded(type_statement(name, schema), f"type {name}", self._settings)

    def _source(self, source: Json, query: Json | None) -> Recorded | Unreadable:
        place = f"{source['type'].lower()} {source['name']}"
        text = str(source["statement"])
        try:
            statement = parse_statement(text)
        except ParseError as error:
            return Unreadable(place, f"{error}\nStatement: {text}")
        if isinstance(statement, ast.AlterSource):
            return Unreadable(
                place,
                "ksqlDB shows only the ALTER that was its last statement, and not how it was made. "
                "Its command topic has both: import from there (--command-topic).",
            )
        if query is not None:
            return self._query(query, place)
        ended = isinstance(statement, ast.CreateAsSelect)
        return Recorded(text, place, self._settings, ended=ended)

    def _query(self, query: Json, place: str | None = None) -> Recorded:
        id_ = str(query["id"])
        return Recorded(
            str(query["statementText"]),
            place or f"query {id_}",
            self._settings,
            query.get("overriddenProperties") or {},
            id_,
            query.get("consumerGroupId") or consumer_group(self._service, id_),
            paused=query.get("state") == "PAUSED",
        )

    def _functions(self) -> Iterator[tuple[str, Json]]:
        for function in self._ask("SHOW FUNCTIONS;", "functions"):
            name = str(function["name"])
            if REGISTRY.kind(name) is None:
                yield name.upper(), self._client.execute(f"DESCRIBE FUNCTION {quote(name)};")[0]


def _is_statement(query: Json) -> bool:
    """Whether a statement made the query for its own sake: ksqlDB also runs one for each CREATE
    SOURCE TABLE."""
    persistent = query.get("queryType", "PERSISTENT") == "PERSISTENT"
    return persistent and not str(query["id"]).startswith("CST_")


def _creates(query: Json) -> bool:
    return str(query["id"]).startswith(("CSAS_", "CTAS_"))


def _number(recorded: Recorded) -> int:
    _, _, number = (recorded.query_id or "").rpartition("_")
    return int(number) if number.isdecimal() else -1
