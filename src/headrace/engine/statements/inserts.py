"""INSERT INTO … VALUES, and rows of `/inserts-stream`: checked, encoded, written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property

from confluent_kafka import KafkaError, Message
from pyspark.sql import SparkSession

from headrace.catalog.catalog import Catalog
from headrace.engine.environment import Environment
from headrace.engine.layouts import source_layout
from headrace.engine.statements.constants import evaluate
from headrace.engine.statements.handling import StatementContext, handles
from headrace.engine.statements.value_coercion import (
    CoercionError,
    field_name,
    from_json,
    misfit,
)
from headrace.formats.base import CodecError, RowCodec, Side
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import NewRecord, RecordWriter
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.schema import ROWOFFSET, ROWPARTITION, ROWTIME, Column, Namespace
from headrace.model.settings import Settings
from headrace.model.sources import Source
from headrace.model.types import BIGINT, quote
from headrace.plan.language.binder import Binder
from headrace.plan.language.catalog_view import alternatives
from headrace.plan.language.messages import text
from headrace.sql import ast

Row = Mapping[str, object]
# Told of every record that is in its topic: topic, partition, offset.
Wrote = Callable[[str, int, int], None]

_DISABLED = (
    "The server has disabled INSERT INTO ... VALUES functionality. To enable it, restart your "
    "ksqlDB server with 'ksql.insert.into.values.enabled'=true"
)
POLL_SECONDS = 0.1


@handles(ast.InsertValues)
def _insert(statement: ast.InsertValues, context: StatementContext) -> None:
    context.inserts.values(statement, context.catalog, context.settings)


class Inserts:
    """Writes rows for the clients of one server."""

    def __init__(
        self, env: Environment, wrote: Wrote = lambda topic, partition, offset: None
    ) -> None:
        self._env = env
        self._wrote = wrote
        self._encoders: dict[str, RowEncoder] = {}

    def values(self, statement: ast.InsertValues, catalog: Catalog, settings: Settings) -> None:
        """Writes one row, and returns when it is in the topic."""
        source = insert_target(statement, catalog, self._env.service_id, self._env.log_topic)
        if not settings.flag("ksql.insert.into.values.enabled"):
            raise StatementError(_DISABLED)
        try:
            binder = Binder.of({}, catalog.type, settings)
            row = inserted_row(statement, source, binder, self._env.spark, settings)
            record = self._encoder(source).record(row)
        except HeadraceError as e:
            reason = f"Failed to insert values into '{statement.target}'. {e}"
            raise StatementError(reason) from None
        written = self._writer.write(record)
        self._wrote(record.topic, written.partition, written.offset)

    def stream(self, target: str, catalog: Catalog, settings: Settings) -> RowStream:
        """Takes rows, many of them, as JSON values."""
        if not settings.flag("ksql.insert.into.values.enabled"):
            raise HeadraceError(_DISABLED)
        names = self._env.service_id, self._env.log_topic
        source = _target(catalog, field_name(target), *names, "windowed stream/table")
        return RowStream(self._env.kafka, self._encoder(source), self._wrote)

    def close(self) -> None:
        if "_writer" in self.__dict__:
            self._writer.close()

    @cached_property
    def _writer(self) -> RecordWriter:
        return RecordWriter(self._env.kafka, linger_ms=0)

    def _encoder(self, source: Source) -> RowEncoder:
        """Made once for a source, because schemas are asked for over HTTP."""
        encoder = self._encoders.get(source.name)
        if encoder is None or encoder.source != source:
            encoder = self._encoders[source.name] = RowEncoder(self._env, source)
        return encoder


def insert_target(
    statement: ast.InsertValues, catalog: Catalog, service_id: str, log_topic: str
) -> Source:
    """The source that the statement may insert into."""
    source = _target(catalog, statement.target, service_id, log_topic, "windowed stream/table!")
    _check_no_headers(statement.columns, source)
    return source


def _target(catalog: Catalog, name: str, service_id: str, log_topic: str, windowed: str) -> Source:
    source = catalog.source(name)
    if source is None:
        raise StatementError(
            f"Cannot insert values into an unknown stream/table: {quote(name)}"
            + alternatives(catalog, name)
        )
    if source.window is not None:
        raise StatementError(f"Cannot insert values into {windowed}")
    internal = (f"_headrace-{service_id}", f"_confluent-ksql-{service_id}")
    if source.topic == log_topic or source.topic.startswith(internal):
        raise StatementError(f"Cannot insert values into read-only topic: {source.topic}")
    if source.read_only:
        kind = source.kind.value.lower()
        raise StatementError(f"Cannot insert values into read-only {kind}: {name}")
    return source


class RowEncoder:
    """Rows of one source as records of its topic."""

    def __init__(self, env: Environment, source: Source) -> None:
        self.source = source
        self.topic = env.in_kafka(source.topic)
        self.key_names = [c.name for c in source.schema.key]
        self.value_names = [c.name for c in source.schema.value]
        self._key = _codec(env, source, "key")
        self._value = _codec(env, source, "value")

    def record(self, row: Row) -> NewRecord:
        """The record of a row, whose values have their columns' types already."""
        get = row.get
        key = {name: get(name) for name in self.key_names}
        value = {name: get(name) for name in self.value_names}
        at = get(ROWTIME)
        no_key = all(v is None for v in key.values())
        return NewRecord(
            self.topic,
            None if no_key or self._key is None else _encoded(self._key, key, "key"),
            None if self._value is None else _encoded(self._value, value, "value"),
            timestamp=int(time.time() * 1000) if at is None else int(str(at)),
        )


def _codec(env: Environment, source: Source, side: Side) -> RowCodec | None:
    format_, layout = source_layout(env, source, side)
    return format_.python(layout) if layout.columns else None


def _encoded(codec: RowCodec, row: dict[str, object], side: Side) -> bytes | None:
    try:
        return codec.encode(row)
    except CodecError as e:
        raise HeadraceError(f"Could not serialize {side}\nCaused by: {e}") from None


# ---------------------------------------------------------------------------- INSERT … VALUES


def _check_no_headers(names: tuple[str, ...], source: Source) -> None:
    headers = [c.name for c in source.schema.headers if not names or c.name in names]
    if headers:
        raise StatementError(f"Cannot insert into HEADER columns: {', '.join(headers)}")


def inserted_row(
    statement: ast.InsertValues,
    source: Source,
    binder: Binder,
    spark: SparkSession | None,
    settings: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """The values by column. Without Spark, those that only Spark can work out are null."""
    schema = source.schema
    names = statement.columns or tuple(c.name for c in (*schema.key, *schema.value))
    if len(names) != len(statement.values):
        raise StatementError(
            "Expected a value for each column. Expected Columns: "
            f"[{', '.join(map(quote, statement.columns))}]. "
            f"Got [{', '.join(map(text, statement.values))}]"
        )
    columns = [_column(name, source) for name in names]
    values = evaluate(statement.values, columns, binder, spark, settings or {})
    row = {c.name: v for c, v in zip(columns, values, strict=True)}
    missing = [c.name for c in schema.key if c.name not in row]
    if source.is_table and missing:
        raise StatementError(
            f"Value for primary key column(s) {', '.join(missing)} is required for tables"
        )
    return row


def _column(name: str, source: Source) -> Column:
    if name == ROWTIME:
        return Column(ROWTIME, BIGINT)
    if name in (ROWPARTITION, ROWOFFSET):
        raise StatementError(f"Inserting into column {quote(name)} is not allowed.")
    found = source.schema.find(name)
    if found is None:
        raise StatementError(f"Column name {quote(name)} does not exist.")
    return found


# --------------------------------------------------------------------------- /inserts-stream


class RowStream:
    """Inserts rows into one topic as they come; one caller at a time."""

    def __init__(self, connection: KafkaConnection, encoder: RowEncoder, wrote: Wrote) -> None:
        self._connection = connection
        self._encoder = encoder
        self._wrote = wrote
        self._topic = encoder.topic
        self._producer = connection.idempotent_producer()
        self._failure: KafkaError | None = None
        self._last: dict[int, int] = {}
        schema = encoder.source.schema
        columns = [c for c in schema if c.namespace is not Namespace.HEADERS]
        self._headers = frozenset(c.name for c in schema.headers)
        self._columns = {c.name: (c.type, from_json(c.type)) for c in columns}
        self._names: dict[str, str] = {}  # as clients spell them

    def insert(self, row: Row) -> None:
        """Takes one row, whatever the case of its column names; others than columns are ignored."""
        typed: dict[str, object] = {}
        for given, value in row.items():
            name = self._name(given)
            column = self._columns.get(name)
            if name in self._headers:
                raise HeadraceError(f"Cannot insert into HEADER columns: {name}")
            if column is None:
                continue
            if name in typed:
                raise HeadraceError(f"Found duplicate column / struct field name: {name}")
            try:
                typed[name] = column[1](value)
            except CoercionError:
                raise misfit(value, column[0]) from None
        for name in self._encoder.key_names:
            if typed.get(name) is None:
                raise HeadraceError(f"Key field must be specified: {name}")
        self._send(self._encoder.record(typed))

    def _name(self, given: str) -> str:
        name = self._names.get(given)
        if name is None:
            name = field_name(given)
            if name in self._columns:
                self._names[given] = name
        return name

    def _send(self, record: NewRecord) -> None:
        while True:
            try:
                with self._connection.reaching(self._topic):
                    self._producer.produce(
                        record.topic,
                        record.value,
                        record.key,
                        timestamp=record.timestamp or 0,
                        on_delivery=self._delivered,
                    )
                return
            except BufferError:  # the local queue is full: let some of it go out
                self._producer.poll(POLL_SECONDS)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failure = error
            return
        partition, offset = message.partition(), message.offset()
        if partition is not None and offset is not None:
            self._last[partition] = offset

    def flush(self) -> None:
        """Returns when every row taken so far is in the topic."""
        left = self._producer.flush(self._connection.timeout)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise self._connection.error(failure, self._topic)
        if left:
            raise self._connection.unavailable("rows were not acknowledged in time")
        for partition, offset in self._last.items():
            self._wrote(self._topic, partition, offset)
        self._last.clear()

    def close(self) -> None:
        self._producer.flush(self._connection.timeout)
        self._producer.close()
