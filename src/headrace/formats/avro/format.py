"""AVRO: records of a registered schema, read as any writer wrote them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from headrace.formats import connect
from headrace.formats.avro import binary as avro_binary
from headrace.formats.avro import columns_of_schema as avro_schema
from headrace.formats.avro.columns_of_schema import is_map_entry
from headrace.formats.base import (
    ColumnCodec,
    Feature,
    Layout,
    RegistryFormat,
    RegistrySchema,
    RowCodec,
    Show,
    Side,
)
from headrace.formats.columns import NativeFirst, with_entries
from headrace.formats.connect import DEFAULT_PRECISION
from headrace.formats.json.format import check_map_keys
from headrace.formats.wire_format import (
    Decode,
    Encode,
    RegisteredRows,
    header_column,
    payload_column,
)
from headrace.model.fallible import Fallible
from headrace.model.representation import spark_type
from headrace.model.schema import Column
from headrace.model.types import (
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
    base_name,
)
from headrace.schemas import avro


class AvroFormat(RegistryFormat):
    name = "AVRO"
    schema_type = "AVRO"
    features = frozenset({Feature.WRAP, Feature.UNWRAP, Feature.INFERENCE})
    properties = frozenset({"fullSchemaName", "schemaId"})

    def default_properties(self, side: Side, source: str) -> Mapping[str, str]:
        if side == "value":
            return {}
        clean = "".join(c if c.isascii() and c.isalnum() else "_" for c in source)
        name = "".join(part.capitalize() for part in clean.split("_"))
        return {"fullSchemaName": f"{avro_schema.NAMESPACE}.{name}Key"}

    def show(self, schema: RegistrySchema) -> Show:
        read = avro_binary.decoder(avro_schema.parse(schema), connect=False)
        return lambda payload: _shown(read(avro_binary.Source(payload)))

    def check_columns(
        self, columns: Sequence[Column], side: Side, properties: Mapping[str, str]
    ) -> None:
        check_map_keys(columns, "Avro only supports MAPs with STRING keys")
        avro_schema.check_names([Field(c.name, c.type) for c in columns])

    def to_registry(self, layout: Layout) -> RegistrySchema:
        name = layout.option("fullSchemaName") or avro_schema.DEFAULT_NAME
        return RegistrySchema(avro_schema.schema_text(layout.type, name.strip()), self.schema_type)

    def shape(self, schema: RegistrySchema, properties: Mapping[str, str]) -> connect.Shape:
        return avro_schema.shape(avro_schema.parse(schema))

    def python(self, layout: Layout) -> RowCodec:
        return AvroRows(layout)

    def spark(self, layout: Layout) -> ColumnCodec:
        return AvroColumns(self.name, layout)


def _shown(value: object) -> str:
    """As Avro's own classes print it: a text bare, everything else as JSON."""
    if isinstance(value, str):
        return value
    return "<null>" if value is None else json.dumps(value, ensure_ascii=False, default=_as_json)


def _as_json(value: object) -> object:
    return {"bytes": value.decode("latin-1")} if isinstance(value, bytes) else str(value)


class AvroRows(RegisteredRows):
    def own_schema(self) -> RegistrySchema:
        return AvroFormat().to_registry(self.layout)

    def payload_reader(self, schema: RegistrySchema) -> Decode:
        node = avro_schema.parse(schema)
        type_ = self.layout.type
        convert = connect.reader(avro_type(type_), avro_schema.shape(node))
        restore = renamed(type_, back=True)
        read = avro_binary.decoder(node)
        topic = self.layout.topic

        def decode(payload: bytes) -> object:
            try:
                value = read(avro_binary.Source(payload))
            except (ValueError, RecursionError) as e:
                raise ValueError(
                    f"Failed to deserialize data for topic {topic} to Avro: \n{e}"
                ) from e
            return restore(convert(value))

        return decode

    def payload_writer(self, schema: RegistrySchema | None) -> Encode:
        type_ = self.layout.type
        if schema is None:
            node = avro_schema.parse(self.own_schema())
            prepare = renamed(type_)
        else:
            node = avro_schema.parse(schema)
            prepare = connect.writable(type_, avro_schema.shape(node), strict="Avro")
        write = avro_binary.encoder(node)

        def encode(value: object) -> bytes:
            out = bytearray()
            write(out, prepare(value))
            return bytes(out)

        return encode


def renamed(type_: SqlType, *, back: bool = False) -> connect.Reader:
    """Values with field names as Avro has them, or back; mostly nothing is to be done."""
    if avro_type(type_) == type_:
        return lambda value: value
    match type_:
        case Array(element):
            inner = renamed(element, back=back)
            return lambda items: items and [inner(x) for x in items]
        case Map(_, value):
            inner = renamed(value, back=back)
            return lambda entries: entries and {k: inner(v) for k, v in entries.items()}
        case Struct(fields):
            parts = [
                (f.name, avro_schema.field_name(f.name), renamed(f.type, back=back)) for f in fields
            ]
            if back:
                return lambda row: row and {name: f(row[avro]) for name, avro, f in parts}
            return lambda row: row and {avro: f(row.get(name)) for name, avro, f in parts}
    return lambda value: value


def avro_type(type_: SqlType) -> SqlType:
    """The type with field names as Avro has them."""
    match type_:
        case Array(element):
            return Array(avro_type(element))
        case Map(key, value):
            return Map(key, avro_type(value))
        case Struct(fields):
            return Struct(
                tuple(Field(avro_schema.field_name(f.name), avro_type(f.type)) for f in fields)
            )
    return type_


# ---------------------------------------------------------------- Spark columns

_MAX_PRECISION = 38


class AvroColumns(NativeFirst):
    """The column codec: `from_avro` with the writer's schema, where that fits the columns."""

    def attempt(self, data: SparkColumn) -> SparkColumn:
        from pyspark.sql.avro.functions import from_avro

        payload = payload_column(data)
        parsed = [
            F.when(
                (F.substring(data, 1, 5) == header_column(id_)) & ~_is_null(writer.node, payload),
                from_avro(payload, writer.text, {"mode": "PERMISSIVE"}),
            ).alias(f"w{id_}")
            for id_, writer in self._native_writers()
        ]
        return F.struct(F.lit(0).alias("none"), *parsed)

    def settle(self, attempt: SparkColumn, data: SparkColumn) -> tuple[SparkColumn, SparkColumn]:
        rows: list[SparkColumn] = []
        unsure: list[SparkColumn] = []
        for id_, writer in self._native_writers():
            parsed = attempt[f"w{id_}"]
            native = _native(self.layout.type, writer.node, parsed)
            assert native is not None
            row = native.value
            if not self.layout.wrapped:
                row = F.struct(row.alias(self.layout.columns[0].name))
            rows.append(F.when(_is_parsed(writer.node, parsed), row))
            if native.unsure is not None:
                unsure.append(F.coalesce(parsed.isNotNull() & native.unsure, F.lit(False)))
        if not rows:
            return F.lit(None).cast(spark_type(self.layout.struct)), F.lit(True)
        row = F.coalesce(*rows)
        return row, reduce(or_, unsure, row.isNull())

    def encode(self, row: SparkColumn) -> Fallible:
        layout = self.layout
        if layout.physical is not None or layout.schema_id is None:
            return super().encode(row)
        from pyspark.sql.avro.functions import to_avro

        value = row if layout.wrapped else row[layout.columns[0].name]
        text = _spark_text(avro_schema.parse(AvroFormat().to_registry(layout)))
        # Spark writes what it is given: the schema says the same for nested nulls, and a null
        # as a whole is no record.
        encoded = to_avro(with_entries(layout.type, value, avro_schema.field_name), text)
        return Fallible(
            F.when(value.isNotNull(), F.concat(header_column(layout.schema_id), encoded))
        )

    def _native_writers(self) -> list[tuple[int, _Writer]]:
        schemas = dict(self.layout.writers)
        layout = self.layout
        if layout.schema_id is not None:
            own = layout.physical or AvroFormat().to_registry(layout)
            schemas.setdefault(layout.schema_id, own)
        writers = []
        for id_, schema in schemas.items():
            try:
                node = avro_schema.parse(schema)
                connect.reader(avro_type(layout.type), avro_schema.shape(node))
            except ValueError:
                continue  # every record of it is an error, which Python words
            if _native(layout.type, node, F.lit(None)) is not None:
                writers.append((id_, _Writer(_spark_text(node), node)))
        return writers


def _is_null(node: avro.AvroType, payload: SparkColumn) -> SparkColumn:
    """Whether the value as a whole is a union's null: Spark would read it as zero or false."""
    branches = node.branches if isinstance(node, avro.Union) else ()
    places = [i for i, branch in enumerate(branches) if branch.kind == "null"]
    if not places:
        return F.lit(False)
    number = bytearray()
    avro_binary.write_long(number, places[0])
    return F.substring(payload, 1, len(number)) == F.lit(bytes(number))


def _is_parsed(node: avro.AvroType, parsed: SparkColumn) -> SparkColumn:
    """Spark gives a record of nulls for one that it cannot parse, so of such Python judges."""
    node = node.not_null or node
    if not isinstance(node, avro.Record):
        return parsed.isNotNull()
    return reduce(or_, (parsed[f.name].isNotNull() for f in node.fields), F.lit(False))


@dataclass(frozen=True)
class _Writer:
    text: str
    node: avro.AvroType


@dataclass(frozen=True)
class _Native:
    value: SparkColumn
    unsure: SparkColumn | None = None


def _spark_text(node: avro.AvroType) -> str:
    """The schema without what would make Spark read dates as dates; the bytes are the same."""
    return json.dumps(_without_logical_types(json.loads(avro.canonical(node))))


def _without_logical_types(schema: avro.Json) -> avro.Json:
    if isinstance(schema, list):
        return [_without_logical_types(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    precision = schema.get("precision", DEFAULT_PRECISION)
    small = isinstance(precision, int) and precision <= _MAX_PRECISION
    kept = {k: _without_logical_types(v) for k, v in schema.items() if k in _KEPT}
    if small and schema.get("logicalType") == "decimal":
        kept |= {k: schema[k] for k in ("logicalType", "precision", "scale") if k in schema}
    return kept


_KEPT = frozenset({"type", "name", "namespace", "fields", "items", "values", "symbols", "size"})


def _native(type_: SqlType, node: avro.AvroType, parsed: SparkColumn) -> _Native | None:
    """What Spark parsed as the type that the columns have; None where that is not plain."""
    if isinstance(node, avro.Union):
        only = node.not_null
        return None if only is None else _native(type_, only, parsed)
    match type_:
        case Array(element):
            if not isinstance(node, avro.Array) or is_map_entry(node.items):
                return None
            return _native_array(element, node.items, parsed)
        case Map(_, value):
            return _native_map(value, node, parsed)
        case Struct(fields):
            return _native_struct(fields, node, parsed)
        case Decimal():
            return _native_decimal(type_, node, parsed)
    if node.is_decimal:
        return None
    if base_name(type_) == "STRING" and node.kind in ("float", "double"):
        return None  # Java before 19 prints some with a digit too many
    if node.kind == "string":
        return _Native(F.make_valid_utf8(parsed))
    return _Native(parsed.cast(spark_type(type_)))


def _native_decimal(type_: Decimal, node: avro.AvroType, parsed: SparkColumn) -> _Native | None:
    precision, scale = node.number("precision", DEFAULT_PRECISION), node.number("scale")
    if precision > _MAX_PRECISION or type_.precision > _MAX_PRECISION or scale > precision:
        return None
    value = parsed.cast(spark_type(type_))
    if scale <= type_.scale and precision - scale <= type_.precision - type_.scale:
        return _Native(value)
    return _Native(value, parsed.isNotNull() & ~parsed.eqNullSafe(value))


def _native_array(element: SqlType, items: avro.AvroType, parsed: SparkColumn) -> _Native | None:
    probe = _native(element, items, F.lit(None))
    if probe is None:
        return None

    def pick(part: str) -> Callable[[SparkColumn], SparkColumn]:
        return lambda item: getattr(_native(element, items, item), part)

    unsure = None if probe.unsure is None else F.exists(parsed, pick("unsure"))
    return _Native(F.transform(parsed, pick("value")), unsure)


def _native_map(value: SqlType, node: avro.AvroType, parsed: SparkColumn) -> _Native | None:
    if isinstance(node, avro.Map):
        keys, values = F.map_keys(parsed), F.map_values(parsed)
        inner = _native_array(value, node.values, values)
        doubled = F.size(keys) != F.size(F.array_distinct(keys))
    elif isinstance(node, avro.Array) and is_map_entry(node.items):
        parts = {f.name: f.type for f in node.items.fields}
        key = parts["key"].not_null or parts["key"]
        if key.kind != "string":
            return None
        keys = F.transform(parsed, lambda entry: entry["key"])
        values = F.transform(parsed, lambda entry: entry["value"])
        inner = _native_array(value, parts["value"], values)
        doubled = F.size(keys) != F.size(F.array_distinct(keys))
        doubled |= F.exists(keys, lambda k: k.isNull())
    else:
        return None
    if inner is None:
        return None
    unsure = doubled if inner.unsure is None else doubled | inner.unsure
    # A map with doubled or null keys cannot be built at all; its record is Python's anyway.
    return _Native(F.when(~doubled, F.map_from_arrays(keys, inner.value)), unsure)


def _native_struct(
    fields: tuple[Field, ...], node: avro.AvroType, parsed: SparkColumn
) -> _Native | None:
    if not isinstance(node, avro.Record):
        return None
    parts = {f.name: f.type for f in node.fields}
    named = tuple(Field(avro_schema.field_name(f.name), f.type) for f in fields)
    matched = connect.matched_fields(named, avro_schema.shape(node))
    values: list[SparkColumn] = []
    unsure: list[SparkColumn] = []
    for f in fields:
        if avro_schema.field_name(f.name) not in matched:
            values.append(F.lit(None).cast(spark_type(f.type)).alias(f.name))
            continue
        name, _ = matched[avro_schema.field_name(f.name)]
        native = _native(f.type, parts[name], parsed[name])
        if native is None:
            return None
        values.append(native.value.alias(f.name))
        if native.unsure is not None:
            unsure.append(native.unsure)
    value = F.when(parsed.isNotNull(), F.struct(*values))
    return _Native(value, reduce(or_, unsure) if unsure else None)
