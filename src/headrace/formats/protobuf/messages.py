"""Protobuf messages as columns: ksqlDB's schemas written, messages of any schema read and built."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from decimal import Decimal as Number
from operator import attrgetter
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

from headrace.formats import connect
from headrace.formats import java_numbers as java
from headrace.formats.connect import DEFAULT_PRECISION, Mismatch, Reader, Shape
from headrace.model.errors import StatementError
from headrace.model.types import (
    EPOCH_DAY,
    MILLIS_PER_DAY,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
    base_name,
)
from headrace.schemas.protobuf import File

# ---------------------------------------------------------------- schemas that ksqlDB writes

_DEFAULT_NAME = "ConnectDefault"
_SCALARS: dict[str, tuple[str, str]] = {
    "BOOLEAN": ("bool", "BoolValue"),
    "INTEGER": ("int32", "Int32Value"),
    "BIGINT": ("int64", "Int64Value"),
    "DOUBLE": ("double", "DoubleValue"),
    "STRING": ("string", "StringValue"),
    "BYTES": ("bytes", "BytesValue"),
}
_MESSAGES: dict[str, tuple[str, str]] = {
    "DECIMAL": ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    "DATE": ("google.type.Date", "google/type/date.proto"),
    "TIME": ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    "TIMESTAMP": ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
_WRAPPERS = "google/protobuf/wrappers.proto"
_META = "confluent/meta.proto"
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def check_fields(fields: Sequence[Field]) -> None:
    """Refuses what no message can hold."""
    for f in fields:
        if not _NAME.fullmatch(f.name):
            raise StatementError(
                f'Invalid protobuf schema definition: "{f.name}" is not a valid identifier.'
            )
        _check_nesting(f.type)


def _check_nesting(type_: SqlType) -> None:
    match type_:
        case Array(Array() | Map()) | Map(_, Array() | Map()):
            raise StatementError("Array cannot be nested")
        case Array(element) | Map(_, element):
            _check_nesting(element)
        case Struct(fields):
            check_fields(fields)


def schema_text(row: Struct, full_name: str | None, nullable: str | None) -> str:
    """The schema of rows. `nullable` says how nulls differ from zeros: optional, wrapper or not."""
    return _Printer(nullable).file(row, full_name)


def bare_schema_text(type_: SqlType, nullable: str | None) -> tuple[str, str | None]:
    """The schema of a bare value and the name of its message, None for the first of the text."""
    if isinstance(type_, Struct):
        return schema_text(type_, None, nullable), None
    kind = base_name(type_)
    if kind in _MESSAGES:
        name, location = _MESSAGES[kind]
    elif kind in _SCALARS:
        name, location = f"google.protobuf.{_SCALARS[kind][1]}", _WRAPPERS
    else:
        raise StatementError(f"Unsupported root schema of type {kind}")
    return f'syntax = "proto3";\n\nimport "{location}";\n', name


class _Printer:
    """Writes one file as the registry's own library prints it."""

    def __init__(self, nullable: str | None) -> None:
        self._nullable = nullable
        self._names = 0
        self._imports: list[str] = []

    def file(self, row: Struct, full_name: str | None) -> str:
        if full_name is None or full_name.startswith(_DEFAULT_NAME):
            full_name = self._name()
        package, _, name = full_name.rpartition(".")
        body = "".join(line + "\n" for line in self._message(name, row.fields))
        parts = ['syntax = "proto3";\n']
        if package:
            parts.append(f"package {package};\n")
        if self._imports:
            parts.append("\n" + "".join(f'import "{i}";\n' for i in sorted(self._imports)))
        return "".join(parts) + "\n" + body

    def _name(self) -> str:
        self._names += 1
        return f"{_DEFAULT_NAME}{self._names}"

    def _message(self, name: str, fields: Sequence[Field], *, entry: bool = False) -> list[str]:
        lines = [f"message {name} {{"]
        nested: list[str] = []
        for number, f in enumerate(fields, 1):
            lines += self._indented(self._field(f, number, nested, entry=entry))
        if nested:
            lines += ["", *self._indented(nested)]
        return [*lines, "}"]

    @staticmethod
    def _indented(lines: list[str]) -> list[str]:
        return [f"  {line}" if line else line for line in lines]

    def _field(self, f: Field, number: int, nested: list[str], *, entry: bool) -> list[str]:
        type_, label = f.type, ""
        if isinstance(type_, Array):
            type_, label = type_.element, "repeated "
        elif isinstance(type_, Map):
            label = "repeated "
        elif self._nullable == "optional" and not entry:
            label = "optional "
        start = f"{label}{self._type(type_, f.name, nested)} {f.name} = {number}"
        if not isinstance(type_, Decimal):
            return [f"{start};"]
        self._import(_META)
        params = (("precision", type_.precision), ("scale", type_.scale))
        entries = [["  {", f'    value: "{v}",', f'    key: "{k}"', "  }"] for k, v in params]
        entries[0][-1] += ","
        inner = [f"  {line}" for entry in entries for line in entry]
        return [f"{start} [(confluent.field_meta) = {{", "  params: [", *inner, "  ]", "}];"]

    def _type(self, type_: SqlType, field_name: str, nested: list[str]) -> str:
        if isinstance(type_, Struct):
            name = self._name()
            name = f"{name}Message" if name == field_name else name
            nested += self._message(name, type_.fields)
            return name
        if isinstance(type_, Map):
            name = f"{self._name()}Entry"
            entry = (Field("key", type_.key), Field("value", type_.value))
            nested += self._message(name, entry, entry=True)
            return name
        kind = base_name(type_)
        if kind in _MESSAGES:
            message, location = _MESSAGES[kind]
            self._import(location)
            return message
        scalar, wrapper = _SCALARS[kind]
        if self._nullable != "wrapper":
            return scalar
        self._import(_WRAPPERS)
        return f"google.protobuf.{wrapper}"

    def _import(self, location: str) -> None:
        if location not in self._imports:
            self._imports.append(location)


# ---------------------------------------------------------------- any schema

_KINDS: dict[int, str] = {
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_SINT32: "int32",
    FieldDescriptor.TYPE_SFIXED32: "int32",
    FieldDescriptor.TYPE_UINT32: "int64",
    FieldDescriptor.TYPE_FIXED32: "int64",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT64: "int64",
    FieldDescriptor.TYPE_SINT64: "int64",
    FieldDescriptor.TYPE_FIXED64: "int64",
    FieldDescriptor.TYPE_SFIXED64: "int64",
    FieldDescriptor.TYPE_FLOAT: "float32",
    FieldDescriptor.TYPE_DOUBLE: "float64",
    FieldDescriptor.TYPE_BOOL: "boolean",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_ENUM: "string",
}
_UNSIGNED = frozenset({FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64})
_LOGICAL: dict[str, Shape] = {
    "google.type.Date": Shape("int32", "date", True),
    "google.type.TimeOfDay": Shape("int32", "time", True),
    "google.protobuf.Timestamp": Shape("int64", "timestamp", True),
}
_DECIMAL = "confluent.type.Decimal"
_WRAPPED: dict[str, str] = {
    f"google.protobuf.{name}Value": kind
    for name, kind in (
        ("Double", "float64"),
        ("Float", "float32"),
        ("Int64", "int64"),
        ("UInt64", "int64"),
        ("Int32", "int32"),
        ("UInt32", "int64"),
        ("Bool", "boolean"),
        ("String", "string"),
        ("Bytes", "bytes"),
    )
}


def shape(file: File, message: Descriptor, nullable: str | None = None) -> Shape:
    """The message in Connect's terms; wrappers and well-known types are what they stand for. Where
    it is told how nulls are told from zeros (`nullable`), other fields may not be null."""
    return _message_shape(file, message, (), nullable)


def _message_shape(
    file: File, message: Descriptor, outer: tuple[str, ...], nullable: str | None
) -> Shape:
    name = message.full_name
    if name in _WRAPPED:
        return Shape(_WRAPPED[name], optional=True)
    if name in _LOGICAL:
        return _LOGICAL[name]
    if name == _DECIMAL:
        return Shape("bytes", "decimal", True)
    if name in outer:
        raise Mismatch(f"Cyclic schemas are not supported: {name}")
    outer = (*outer, name)
    fields: list[tuple[str, Shape]] = []
    for oneof in _real_oneofs(message):
        members = tuple((f.name, _field_shape(file, f, outer, nullable)) for f in oneof.fields)
        fields.append((_oneof_name(oneof), Shape("struct", optional=True, fields=members)))
    for f in message.fields:
        if not _in_real_oneof(f):
            fields.append((f.name, _field_shape(file, f, outer, nullable)))
    return Shape("struct", optional=True, fields=tuple(fields))


def _real_oneofs(message: Descriptor) -> list[OneofDescriptor]:
    """Those that the schema declares, not those that stand for `optional`."""
    return [o for o in message.oneofs if _in_real_oneof(o.fields[0])]


def _in_real_oneof(f: FieldDescriptor) -> bool:
    oneof = f.containing_oneof
    return oneof is not None and not (len(oneof.fields) == 1 and oneof.name == f"_{f.name}")


def _oneof_name(oneof: OneofDescriptor) -> str:
    return f"{oneof.name}_{oneof.index}"


def _is_map(f: FieldDescriptor) -> bool:
    message = f.message_type
    return (
        f.is_repeated
        and message is not None
        and message.name.endswith("Entry")
        and [(x.name, x.is_repeated) for x in message.fields] == [("key", False), ("value", False)]
    )


def _field_shape(
    file: File, f: FieldDescriptor, outer: tuple[str, ...], nullable: str | None
) -> Shape:
    message = f.message_type
    params = file.params.get(f.full_name, {})
    if message is None:
        kind = _KINDS[f.type]
        kind = params.get("connect.type", kind) if kind == "int32" else kind
        found = Shape(kind, optional=_may_be_null(f, nullable))
    elif _is_map(f):
        key, value = (_field_shape(file, x, outer, nullable) for x in message.fields)
        return Shape("map", optional=True, key=key, value=value)
    elif message.full_name == _DECIMAL:
        precision = int(params.get("precision", DEFAULT_PRECISION))
        found = Shape("bytes", "decimal", True, precision, int(params.get("scale", 0)))
    else:
        found = _message_shape(file, message, outer, nullable)
    return Shape("array", optional=True, value=found) if f.is_repeated else found


def _may_be_null(f: FieldDescriptor, nullable: str | None) -> bool:
    if nullable is None or f.is_repeated or f.type == FieldDescriptor.TYPE_ENUM:
        return True
    return nullable == "optional" and f.has_presence


# ---------------------------------------------------------------- messages to values


def row_reader(struct: Struct, message: Descriptor, found: Shape) -> Reader:
    """How a message becomes a row: reading and converting at once, as most do not convert."""
    matched = connect.matched_fields(struct.fields, found)
    sources = {f.name: f for f in message.fields if not _in_real_oneof(f)}
    if any(name not in sources for name, _ in matched.values()):  # a oneof is a column
        convert, read_all = connect.reader(struct, found), message_reader(message)
        return lambda value: convert(read_all(value))
    parts: list[tuple[str, str, bool, Reader | None]] = []
    for column in struct.fields:
        if column.name in matched:
            name, part = matched[column.name]
            source = sources[name]
            read = _value_reader(source)
            if not connect.is_same(column.type, part):
                read = _then(read, connect.reader(column.type, part))
            parts.append((column.name, name, source.has_presence, read))
    missing = dict.fromkeys(f.name for f in struct.fields if f.name not in matched)
    columns = [column for column, *_ in parts]
    if len(parts) > 1 and all(read is None and not optional for _, _, optional, read in parts):
        take = attrgetter(*(name for _, name, _, _ in parts))
        if missing:
            return lambda value: {**missing, **dict(zip(columns, take(value), strict=True))}
        return lambda value: dict(zip(columns, take(value), strict=True))

    def read_row(value: Any) -> dict[str, object]:
        row: dict[str, object] = missing.copy()
        for column, name, optional, read in parts:
            if optional and not value.HasField(name):
                row[column] = None
            elif read is None:
                row[column] = getattr(value, name)
            else:
                row[column] = read(getattr(value, name))
        return row

    return read_row


def _then(first: Reader | None, second: Reader) -> Reader:
    return second if first is None else lambda value: second(first(value))


def message_reader(message: Descriptor) -> Reader:
    """How a message becomes a value in Connect's terms."""
    special = _special_reader(message)
    if special is not None:
        return special
    # What has presence is null where it is not there; other fields have a default.
    singles = [
        (f.name, f.has_presence, _value_reader(f)) for f in message.fields if not _in_real_oneof(f)
    ]
    oneofs = [
        (_oneof_name(o), o.name, {f.name: _value_reader(f) for f in o.fields})
        for o in _real_oneofs(message)
    ]

    def read(value: Any) -> dict[str, object]:
        row: dict[str, object] = {}
        for name, optional, read_field in singles:
            if optional and not value.HasField(name):
                row[name] = None
            elif read_field is None:
                row[name] = getattr(value, name)
            else:
                row[name] = read_field(getattr(value, name))
        for name, oneof, members in oneofs:
            chosen = value.WhichOneof(oneof)
            if chosen is None:
                row[name] = None
            else:
                read_member = members[chosen]
                found = getattr(value, chosen)
                row[name] = {chosen: found if read_member is None else read_member(found)}
        return row

    return read


def _value_reader(f: FieldDescriptor) -> Reader | None:
    """None where the value is taken as it is."""
    if _is_map(f):
        return _map_reader(f)
    read = _item_reader(f)
    if not f.is_repeated:
        return read
    return list if read is None else lambda items: [read(x) for x in items]


def _item_reader(f: FieldDescriptor) -> Reader | None:
    if f.message_type is not None:
        return message_reader(f.message_type)
    if f.type == FieldDescriptor.TYPE_ENUM:
        enum = f.enum_type
        assert enum is not None
        names = {v.number: v.name for v in enum.values}
        return lambda n: names.get(n, f"UNKNOWN_ENUM_VALUE_{enum.name}_{n}")
    if f.type in _UNSIGNED:
        return lambda n: java.narrow(n, java.LONG_BITS)
    return None


def _map_reader(f: FieldDescriptor) -> Reader:
    entry = f.message_type
    assert entry is not None
    key, value = entry.fields
    read_value = _item_reader(value)
    if entry.GetOptions().map_entry:
        if read_value is None:
            return dict
        return lambda entries: {k: read_value(v) for k, v in entries.items()}
    read_key = _item_reader(key)
    present = value.has_presence
    wrapped = key.has_presence

    def read(entries: Any) -> dict[object, object]:
        result = {}
        for e in entries:
            k = None if wrapped and not e.HasField("key") else e.key
            v = None if present and not e.HasField("value") else e.value
            k = k if k is None or read_key is None else read_key(k)
            result[k] = v if v is None or read_value is None else read_value(v)
        return result

    return read


def _special_reader(message: Descriptor) -> Reader | None:
    name = message.full_name
    if name == "google.protobuf.UInt64Value":
        return lambda m: java.narrow(m.value, java.LONG_BITS)
    if name in _WRAPPED:
        return lambda m: m.value
    return _LOGICAL_READERS.get(name)


def _read_date(m: Any) -> int:
    return datetime.date(m.year, m.month, m.day).toordinal() - EPOCH_DAY


def _read_time(m: Any) -> int:
    time = datetime.time(m.hours, m.minutes, m.seconds, m.nanos // 1000)
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    return seconds * 1000 + time.microsecond // 1000


_LOGICAL_READERS: dict[str, Reader] = {
    _DECIMAL: lambda m: connect.bytes_decimal(m.value, m.scale),
    "google.type.Date": _read_date,
    "google.type.TimeOfDay": _read_time,
    "google.protobuf.Timestamp": lambda m: m.seconds * 1000 + m.nanos // 1_000_000,
}


# ---------------------------------------------------------------- values to messages


def message_writer(message: Descriptor) -> Reader:
    """How a value in Connect's terms becomes what a message's constructor takes."""
    special = _special_writer(message)
    if special is not None:
        return special
    parts = {f.name: _value_writer(f) for f in message.fields if not _in_real_oneof(f)}
    oneofs = {
        _oneof_name(o): {f.name: _value_writer(f) for f in o.fields} for o in _real_oneofs(message)
    }
    if not oneofs and not any(parts.values()):
        return lambda row: {k: v for k, v in row.items() if v is not None}

    def write(row: Any) -> dict[str, object]:
        result = {}
        for name, value in row.items():
            if value is None:
                continue
            if name in oneofs:
                member, value = next((m, v) for m, v in value.items() if v is not None)
                result[member] = _applied(oneofs[name][member], value)
            else:
                result[name] = _applied(parts[name], value)
        return result

    return write


def _applied(write: Reader | None, value: object) -> object:
    return value if write is None else write(value)


def _value_writer(f: FieldDescriptor) -> Reader | None:
    """None where the value is taken as it is."""
    if _is_map(f):
        return _map_writer(f)
    write = _item_writer(f)
    if not f.is_repeated:
        return write

    def write_items(items: Any) -> list[object]:
        if None in items:
            raise ValueError(f"Repeated field {f.name} cannot hold null")
        return items if write is None else [write(x) for x in items]

    return write_items


def _item_writer(f: FieldDescriptor) -> Reader | None:
    if f.message_type is not None:
        return message_writer(f.message_type)
    if f.type == FieldDescriptor.TYPE_ENUM:
        enum = f.enum_type
        assert enum is not None
        numbers = {v.name: v.number for v in enum.values}

        def write_enum(value: str) -> int:
            if value not in numbers:
                raise ValueError(f"{value} is not a value of {enum.name}")
            return numbers[value]

        return write_enum
    if f.type in _UNSIGNED:
        return lambda n: n & (1 << java.LONG_BITS) - 1
    if f.type in (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32):
        return lambda n: n & (1 << java.INT_BITS) - 1
    return None


def _map_writer(f: FieldDescriptor) -> Reader:
    entry = f.message_type
    assert entry is not None
    key, value = (_item_writer(x) for x in entry.fields)
    if entry.GetOptions().map_entry:
        return lambda entries: {
            _applied(key, k): _applied(value, v) for k, v in entries.items() if v is not None
        }

    def write(entries: Any) -> list[dict[str, object]]:
        return [
            {"key": _applied(key, k)} | ({} if v is None else {"value": _applied(value, v)})
            for k, v in entries.items()
        ]

    return write


def _special_writer(message: Descriptor) -> Reader | None:
    if message.full_name in _WRAPPED:
        inner = _item_writer(message.fields[0])
        return lambda value: {"value": _applied(inner, value)}
    return _LOGICAL_WRITERS.get(message.full_name)


def _write_decimal(value: Number) -> dict[str, object]:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    data = connect.decimal_bytes(value)
    return {"value": data, "precision": len(digits), "scale": -exponent}


def _write_date(days: int) -> dict[str, int]:
    date = datetime.date.fromordinal(days + EPOCH_DAY)
    return {"year": date.year, "month": date.month, "day": date.day}


def _write_time(millis: int) -> dict[str, int]:
    java.fit_time(millis)
    seconds, rest = divmod(millis % MILLIS_PER_DAY, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return {"hours": hours, "minutes": minutes, "seconds": seconds, "nanos": rest * 1_000_000}


def _write_timestamp(millis: int) -> dict[str, int]:
    seconds, rest = divmod(millis, 1000)
    return {"seconds": seconds, "nanos": rest * 1_000_000}


_LOGICAL_WRITERS: dict[str, Reader] = {
    _DECIMAL: _write_decimal,
    "google.type.Date": _write_date,
    "google.type.TimeOfDay": _write_time,
    "google.protobuf.Timestamp": _write_timestamp,
}
