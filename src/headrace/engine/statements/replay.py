"""Plans statements of the command log again; keeps those that can no longer be planned.

Planning them asks neither Kafka nor the registry: they were checked when they were made, and what
has changed since is a matter of running, not of knowing them. What can no longer be planned, say
because a function is gone, stays known by what its command tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.catalog.catalog import Catalog, QueryRecord
from headrace.catalog.command_log import Command
from headrace.engine.statements.changes import Change, Intent, plan_change
from headrace.engine.statements.planning_facts import RecordedFacts
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.schema import Column, Namespace, Schema
from headrace.model.sources import (
    Serde,
    Source,
    SourceKind,
    TimestampColumn,
    WindowedKey,
    WindowType,
)
from headrace.plan.query import Planned
from headrace.sql import ast
from headrace.sql.parser import parse_statement, parse_type

_NO_FORMAT = Serde("NONE")


@dataclass(frozen=True)
class Replay:
    """A command to be planned again. `settings` are texts, as planning reads them."""

    command: Command
    settings: Mapping[str, str]

    @property
    def text(self) -> str:
        return self.command.text or self.command.statement

    def plan(self, catalog: Catalog) -> Change:
        number = self.command.number
        number = self.command.sequence if number is None else number
        statement = parse_statement(self.command.statement)
        intent = Intent(self.text, self.settings, number)
        return plan_change(statement, catalog, intent, RecordedFacts())

    def plan_query(self, catalog: Catalog) -> Planned:
        """The plan of its query, against a catalog that knows what the statement made. A statement
        that replaced a source does so again: it keeps how single fields are written."""
        id_ = self.command.query_id
        statement = parse_statement(self.command.statement)
        if id_ is not None:
            catalog = catalog.without_query(id_)
        if isinstance(statement, ast.CreateAsSelect) and not statement.or_replace:
            catalog = catalog.without_source(statement.name)
        change = self.plan(catalog)
        if change.starts is None:
            raise StatementError("The statement starts no query.")
        return change.starts.planned

    def keep(self, catalog: Catalog) -> Catalog:
        """The catalog with what the command made, as far as it tells; raises if that is nothing."""
        statement = parse_statement(self.command.statement)
        match statement:
            case ast.CreateSource():
                return catalog.with_source(self._source(statement))
            case ast.CreateAsSelect():
                kept = catalog.with_source(self._source(statement))
                return self._with_query(kept, statement.query, statement.name, creates_sink=True)
            case ast.InsertInto():
                return self._with_query(catalog, statement.query, statement.target)
        raise StatementError("The statement makes nothing that could be kept.")

    def _with_query(
        self, catalog: Catalog, query: ast.Query, sink: str, *, creates_sink: bool = False
    ) -> Catalog:
        id_ = self.command.query_id
        if id_ is None:
            raise StatementError("The command does not tell the id of its query.")
        record = QueryRecord(id_, self.text, _read_by(query), sink, creates_sink)
        return catalog.with_query(record)

    def _source(self, statement: ast.CreateSource | ast.CreateAsSelect) -> Source:
        if self.command.creates is not None:
            return source_from_json(self.command.creates, self.text)
        given = {name.upper(): str(literal.value) for name, literal in statement.properties}
        return Source(
            statement.name,
            statement.source_kind,
            Schema(),
            given.get("KAFKA_TOPIC", statement.name),
            _NO_FORMAT,
            _NO_FORMAT,
            is_sink=isinstance(statement, ast.CreateAsSelect),
            statement=self.text,
        )


def reason_for(statement: str, failure: Exception) -> str:
    """Why a statement of the log cannot be planned, in a sentence."""
    told = str(failure) if isinstance(failure, HeadraceError) else repr(failure)
    return f"The statement cannot be planned any more: {told}\nStatement: {statement}"


def _read_by(query: ast.Query) -> tuple[str, ...]:
    relation = query.source
    if isinstance(relation, ast.Join):
        return (relation.left.name, *(joined.relation.name for joined in relation.sources))
    return (relation.name,)


# ------------------------------------------------------------------------------- sources


def source_to_json(source: Source) -> dict[str, object]:
    """A source as its command records it, without the statement."""
    return {
        "name": source.name,
        "kind": source.kind.value,
        "columns": [
            [column.name, str(column.type), column.namespace.value, column.header_key]
            for column in source.schema
        ],
        "topic": source.topic,
        "key": _serde_to_json(source.key),
        "value": _serde_to_json(source.value),
        "timestamp": source.timestamp and [source.timestamp.name, source.timestamp.format],
        "window": source.window and [source.window.type.value, source.window.size_ms],
        "readOnly": source.read_only,
        "isSink": source.is_sink,
    }


def source_from_json(told: Mapping[str, Any], statement: str) -> Source:
    window, timestamp = told["window"], told["timestamp"]
    return Source(
        told["name"],
        SourceKind(told["kind"]),
        Schema.of(
            Column(name, parse_type(type_), Namespace(namespace), header_key)
            for name, type_, namespace, header_key in told["columns"]
        ),
        told["topic"],
        _serde_from_json(told["key"]),
        _serde_from_json(told["value"]),
        timestamp and TimestampColumn(*timestamp),
        window and WindowedKey(WindowType(window[0]), window[1]),
        told["readOnly"],
        told["isSink"],
        statement,
    )


def _serde_to_json(serde: Serde) -> list[object]:
    return [serde.format, serde.wrap, [list(p) for p in serde.properties], serde.wrap_inherited]


def _serde_from_json(told: list[Any]) -> Serde:
    format_, wrap, properties, wrap_inherited = told
    return Serde(format_, wrap, tuple((name, value) for name, value in properties), wrap_inherited)
