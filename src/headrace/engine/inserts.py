"""INSERT INTO … VALUES, and rows of `/inserts-stream`: checked, encoded, written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal as Number

from headrace.catalog.catalog import Catalog
from headrace.engine.constants import evaluate
from headrace.engine.layouts import source_layout
from headrace.engine.world import World
from headrace.formats.base import CodecError, Side
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.schema import ROWOFFSET, ROWPARTITION, ROWTIME, Column, Namespace
from headrace.model.sources import Source
from headrace.model.types import (
    BIGINT,
    STRING,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
    base_name,
    quote,
)
from headrace.plan.coercion import literal_value
from headrace.plan.view import alternatives
from headrace.sql import ast
from headrace.topics.records import NewRecord, RecordWriter

Row = Mapping[str, object]


class RowInserter:
    """Writes rows of one stream or table. Rows are plain values by column name."""

    def __init__(self, world: World, catalog: Catalog, name: str) -> None:
        self.source = _target(catalog, name)
        self._world = world
        self._writer = RecordWriter(world.kafka)
        self._encode = {side: self._encoder(side) for side in ("key", "value")}

    def _encoder(self, side: Side) -> Callable[[dict[str, object] | None], bytes | None]:
        format_, layout = source_layout(self._world, self.source, side)
        if not layout.columns:
            return lambda row: None
        return format_.python(layout).encode

    def record(self, row: Row) -> NewRecord:
        """The record of a row, whose values have their columns' types already."""
        schema = self.source.schema
        if self.source.is_table:
            missing = [c.name for c in schema.key if c.name not in row]
            if missing:
                raise StatementError(
                    f"Value for primary key column(s) {', '.join(missing)} is required for tables"
                )
        key = {c.name: row.get(c.name) for c in schema.key}
        value = {c.name: row.get(c.name) for c in schema.value}
        at = row.get(ROWTIME)
        try:
            no_key = all(v is None for v in key.values())
            key_bytes = None if no_key else self._encode["key"](key)
            value_bytes = self._encode["value"](value)
        except CodecError as e:
            raise StatementError(
                f"Failed to insert values into '{self.source.name}'. {e}"
            ) from None
        stamp = int(time.time() * 1000) if at is None else int(str(at))
        return NewRecord(self.source.topic, key_bytes, value_bytes, timestamp=stamp)

    def insert(self, row: Row) -> None:
        """Takes one row as JSON values, whatever the case of its column names."""
        self._writer.write(self.record(self.converted(row)))

    def converted(self, row: Row) -> dict[str, object]:
        columns = {c.name: c for c in self.source.schema}
        out: dict[str, object] = {}
        for given, value in row.items():
            name = given if given in columns else given.strip("`").upper()
            name = name if name in columns else given.strip("`")
            if name in columns and columns[name].namespace is Namespace.HEADERS:
                raise StatementError(f"Cannot insert into HEADER columns: {name}")
            if name not in columns:
                raise StatementError(f"Column name {given} does not exist.")
            out[name] = from_json(value, columns[name].type)
        return out

    def flush(self) -> None:
        """Every row is in the topic when `insert` returns."""

    def close(self) -> None:
        self._writer.close()


def insert_values(
    statement: ast.InsertValues, world: World, catalog: Catalog, enabled: bool
) -> None:
    if not enabled:
        raise StatementError("The server has disabled INSERT INTO ... VALUES functionality. ")
    try:
        _target(catalog, statement.target)
        inserter = RowInserter(world, catalog, statement.target)
        try:
            row = _row(statement, inserter.source, catalog, world)
            inserter._writer.write(inserter.record(row))
        finally:
            inserter.close()
    except HeadraceError as e:
        prefix = f"Failed to insert values into '{statement.target}'. "
        if str(e).startswith(prefix) or not isinstance(e, StatementError):
            raise
        raise StatementError(prefix + str(e)) from None


def _target(catalog: Catalog, name: str) -> Source:
    source = catalog.source(name)
    if source is None:
        raise StatementError(
            f"Cannot insert values into an unknown stream/table: {quote(name)}"
            + alternatives(catalog, name)
        )
    if source.window is not None:
        raise StatementError("Cannot insert values into windowed stream/table!")
    if source.read_only:
        raise StatementError(
            f"Cannot insert values into read-only {source.kind.value.lower()}: {name}"
        )
    return source


def _row(
    statement: ast.InsertValues, source: Source, catalog: Catalog, world: World
) -> dict[str, object]:
    schema = source.schema
    names = statement.columns or tuple(c.name for c in (*schema.key, *schema.value))
    for name in names:
        found = schema.find(name)
        if found is not None and found.namespace is Namespace.HEADERS:
            raise StatementError(f"Cannot insert into HEADER columns: {name}")
    if len(names) != len(statement.values):
        raise StatementError(
            "Expected a value for each column. Expected Columns: "
            f"[{', '.join(f'`{n}`' for n in statement.columns)}]. "
            f"Got [{', '.join(map(_shown, statement.values))}]"
        )
    columns: list[Column] = []
    for name in names:
        if name in (ROWPARTITION, ROWOFFSET):
            raise StatementError(f"Inserting into column `{name}` is not allowed.")
        found = Column(ROWTIME, BIGINT) if name == ROWTIME else schema.find(name)
        if found is None:
            raise StatementError(f"Column name `{name}` does not exist.")
        columns.append(found)
    values = evaluate(statement.values, columns, catalog, world.spark)
    return {c.name: v for c, v in zip(columns, values, strict=True)}


def _shown(expression: ast.Expression) -> str:
    from headrace.sql.printer import format_expression

    return format_expression(expression)


def from_json(value: object, type_: SqlType) -> object:
    """A JSON value as a value of a type; raises with ksqlDB's words where it is none."""
    if value is None:
        return None
    match type_, value:
        case Array(element), list():
            return [from_json(v, element) for v in value]
        case Map(key, item), dict():
            return {from_json(k, key): from_json(v, item) for k, v in value.items()}
        case Struct(fields), dict():
            upper = {k.upper(): v for k, v in value.items()}
            return {f.name: from_json(value.get(f.name, upper.get(f.name)), f.type) for f in fields}
    if isinstance(type_, Array | Map | Struct) or isinstance(value, list | dict):
        raise StatementError(f"Can't coerce a field of type {_json_type(value)} into type {type_}")
    source = _SCALARS.get(type(value))
    wanted = base_name(type_)
    if source is None or wanted not in _COERCIBLE[source]:
        raise StatementError(f"Can't coerce a field of type {_json_type(value)} into type {type_}")
    if isinstance(value, Number) and wanted == "DOUBLE":
        return float(value)
    plain = (
        int(value)
        if isinstance(value, Number)
        and value == value.to_integral()
        and wanted in ("INTEGER", "BIGINT")
        else value
    )
    return literal_value(plain, STRING if isinstance(plain, str) else _own_type(plain), type_)


def _own_type(value: object) -> SqlType:
    from headrace.model.types import BOOLEAN, DOUBLE

    match value:
        case bool():
            return BOOLEAN
        case int():
            return BIGINT
        case Number():
            digits = value.as_tuple()
            return Decimal(max(len(digits.digits), 1), max(-int(digits.exponent), 0))
    return DOUBLE


_SCALARS: dict[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    Number: "number",
    str: "string",
}
_COERCIBLE: dict[str, frozenset[str]] = {
    "boolean": frozenset({"BOOLEAN", "STRING"}),
    "number": frozenset({"INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "STRING"}),
    "string": frozenset(
        {
            "STRING",
            "BYTES",
            "DATE",
            "TIME",
            "TIMESTAMP",
            "DECIMAL",
            "BOOLEAN",
            "INTEGER",
            "BIGINT",
            "DOUBLE",
        }
    ),
}


def _json_type(value: object) -> str:
    return _SCALARS.get(type(value), "array" if isinstance(value, list) else "object")


def insert_all(inserter: RowInserter, rows: Sequence[Row]) -> None:
    inserter._writer.write_all([inserter.record(inserter.converted(r)) for r in rows])
