"""JSON: an object per row, or a bare value; names match whatever their case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal as Number
from typing import Any

from headrace.formats import java_numbers as java
from headrace.formats.base import (
    ColumnCodec,
    DecodeError,
    Feature,
    Format,
    Layout,
    Row,
    RowCodec,
    Show,
    Side,
)
from headrace.formats.json import text as jackson
from headrace.formats.json.columns import JsonColumns
from headrace.model.errors import StatementError
from headrace.model.java_text import valid_text
from headrace.model.schema import Column
from headrace.model.types import (
    Array,
    Decimal,
    Map,
    Primitive,
    SqlType,
    Struct,
    base_name,
    walk,
)


class JsonFormat(Format):
    name = "JSON"
    features = frozenset({Feature.WRAP, Feature.UNWRAP})

    def check_columns(
        self, columns: Sequence[Column], side: Side, properties: Mapping[str, str]
    ) -> None:
        check_map_keys(columns, "JSON only supports MAP types with STRING keys")

    def shows(self) -> Mapping[str, Show]:
        return {self.name: _show}

    def python(self, layout: Layout) -> RowCodec:
        return JsonRows(layout)

    def spark(self, layout: Layout) -> ColumnCodec:
        return JsonColumns(self.name, layout)


def _show(data: bytes) -> str:
    if not data or jackson.parse(data) is jackson.MISSING:
        raise ValueError("empty")
    return valid_text(data)


def check_map_keys(columns: Sequence[Column], reason: str) -> None:
    """No format but Spark itself can hold a map whose keys are not strings."""
    for type_ in (t for c in columns for t in walk(c.type)):
        if isinstance(type_, Map) and base_name(type_.key) != "STRING":
            raise StatementError(reason)


class _Refused(Exception):
    """A node that does not fit its type; the path grows on the way out."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


Reader = Callable[[jackson.Node], Any]
Writer = Callable[[Any], str]


class JsonRows(RowCodec):
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._read = reader(layout.type)
        self._write = writer(layout.type)
        self._name = "" if layout.wrapped else layout.columns[0].name

    def decode(self, data: bytes | None) -> Row | None:
        if data is None:
            return None
        try:
            value = self._read(jackson.parse(data))
        except _Refused as e:
            raise self._failure(f"{e.reason}, path: ${e.path}") from e
        except ValueError as e:
            raise self._failure(str(e)) from e
        if not self._layout.wrapped:
            return {self._name: value}
        if value is None:
            raise self._failure("null")
        return value  # type: ignore[no-any-return]

    def encode(self, row: Row | None) -> bytes | None:
        if row is None:
            return None
        value = row if self._layout.wrapped else row[self._name]
        return None if value is None else self._write(value).encode("utf-8", "replace")

    def _failure(self, reason: str) -> DecodeError:
        layout = self._layout
        return DecodeError(
            f"Failed to deserialize {layout.side} from topic: {layout.topic}. {reason}"
        )


def reader(type_: SqlType) -> Reader:
    """How a parsed node becomes a value of the type: ksqlDB's coercions and refusals."""
    read = _READERS[base_name(type_)](type_)

    def nullable(node: jackson.Node) -> object:
        return None if node is None else read(node)

    return nullable


def _conversion(node: jackson.Node, type_: SqlType) -> _Refused:
    return _Refused(
        f"Can't convert type. sourceType: {node_name(node)}, requiredType: {type_text(type_)}"
    )


def node_name(node: jackson.Node) -> str:
    """What ksqlDB's JSON library calls such a node."""
    if isinstance(node, int) and not isinstance(node, bool):
        for bits, name in ((java.INT_BITS, "IntNode"), (java.LONG_BITS, "LongNode")):
            if java.narrow(node, bits) == node:
                return name
        return "BigIntegerNode"
    return _NODE_NAMES[type(node)]


_NODE_NAMES: dict[type, str] = {
    bool: "BooleanNode",
    Number: "DecimalNode",
    str: "TextNode",
    list: "ArrayNode",
    dict: "ObjectNode",
    type(jackson.MISSING): "MissingNode",
}


def type_text(type_: SqlType) -> str:
    """The type as ksqlDB prints it in these errors, where leaves and containers differ."""
    match type_:
        case Primitive(name):
            return name
        case _:
            return _nested_text(type_)


def _nested_text(type_: SqlType) -> str:
    match type_:
        case Array(element):
            return f"ARRAY<{_nested_text(element)}>"
        case Map(key, value):
            return f"MAP<{_nested_text(key)}, {_nested_text(value)}>"
        case Struct(fields):
            return f"STRUCT<{', '.join(f'{f.name} {_nested_text(f.type)}' for f in fields)}>"
    physical = {"STRING": "VARCHAR", "DATE": "INT", "TIME": "INT", "TIMESTAMP": "BIGINT"}
    return physical.get(str(type_), "INT" if str(type_) == "INTEGER" else str(type_))


def _is_number(node: jackson.Node) -> bool:
    return isinstance(node, (int, Number)) and not isinstance(node, bool)


def _boolean(type_: SqlType) -> Reader:
    def read(node: jackson.Node) -> bool:
        if isinstance(node, bool):
            return node
        raise _conversion(node, type_)

    return read


def _integer(bits: int, check: Callable[[int], int] = lambda v: v) -> Callable[[SqlType], Reader]:
    def of(type_: SqlType) -> Reader:
        def read(node: jackson.Node) -> int:
            if isinstance(node, (int, Number)) and not isinstance(node, bool):
                return _checked(java.narrow(_truncated(node), bits))
            if isinstance(node, str):
                value = java.parse_integer(node, bits)
                if value is None:
                    raise _Refused(f"Can't coerce string to type. targetType: {type_}")
                return _checked(value)
            raise _conversion(node, type_)

        def _checked(value: int) -> int:
            try:
                return check(value)
            except ValueError as e:
                raise _Refused(str(e)) from e

        return read

    return of


def _truncated(node: int | Number) -> int:
    if isinstance(node, Number) and node.adjusted() > 400:
        raise _Refused("Number is out of range")
    return int(node)


def _days(value: int) -> int:
    return java.narrow(value, java.INT_BITS)


def _double(type_: SqlType) -> Reader:
    def read(node: jackson.Node) -> float:
        if isinstance(node, (int, Number)) and not isinstance(node, bool):
            try:
                return float(node)
            except OverflowError:
                return float("inf") if node > 0 else float("-inf")
        if isinstance(node, str):
            value = java.parse_double(node)
            if value is None:
                raise _Refused(f"Can't coerce string to type. targetType: {type_}")
            return value
        raise _conversion(node, type_)

    return read


def _decimal(type_: SqlType) -> Reader:
    assert isinstance(type_, Decimal)

    def read(node: jackson.Node) -> Number:
        if isinstance(node, str):
            number = java.parse_decimal(node)
            if number is None:
                raise _Refused(f"Can't coerce string to type. targetType: {base_name(type_)}")
        elif isinstance(node, (int, Number)) and not isinstance(node, bool):
            number = Number(node)
        else:
            raise _conversion(node, type_)
        try:
            return java.fit(number, type_.precision, type_.scale)
        except ValueError as e:
            raise _Refused(str(e)) from e

    return read


def _string(type_: SqlType) -> Reader:
    return node_text


def node_text(node: jackson.Node) -> str:
    """Any value as a string: objects as JSON, arrays in brackets, numbers as written."""
    if isinstance(node, str):
        # Half of a surrogate pair, which only an escape can smuggle in, is no character.
        return node if node.isascii() else node.encode("utf-8", "replace").decode("utf-8")
    if isinstance(node, dict):
        return jackson.dump(node)
    if isinstance(node, list):
        items = ("null" if item is None else node_text(item) for item in node)
        return f"[{', '.join(items)}]"
    if node is jackson.MISSING:
        return ""
    return jackson.dump(node)


def _bytes(type_: SqlType) -> Reader:
    def read(node: jackson.Node) -> bytes:
        if not isinstance(node, str):
            raise _conversion(node, type_)
        value = jackson.decode_bytes(node)
        if value is None:
            raise _Refused(f"Value is not a valid Base64 encoded string: {node}")
        return value

    return read


def _array(type_: SqlType) -> Reader:
    assert isinstance(type_, Array)
    read_item = reader(type_.element)

    def read(node: jackson.Node) -> list[object]:
        if not isinstance(node, list):
            raise _conversion(node, type_)
        items = []
        for i, item in enumerate(node):
            try:
                items.append(read_item(item))
            except _Refused as e:
                raise _Refused(e.reason, f"[{i}]{e.path}") from e
        return items

    return read


def _map(type_: SqlType) -> Reader:
    assert isinstance(type_, Map)
    read_value = reader(type_.value)

    def read(node: jackson.Node) -> dict[str, object]:
        if not isinstance(node, dict):
            raise _conversion(node, type_)
        result = {}
        for key, value in node.items():
            try:
                result[node_text(key)] = read_value(value)
            except _Refused as e:
                raise _Refused(e.reason, f".{key}.value{e.path}") from e
        return result

    return read


def _struct(type_: SqlType) -> Reader:
    assert isinstance(type_, Struct)
    fields = [(f.name, reader(f.type), f.name == f.name.upper()) for f in type_.fields]

    def read(node: jackson.Node) -> dict[str, object]:
        if not isinstance(node, dict):
            raise _conversion(node, type_)
        others: dict[str, jackson.Node] | None = None
        result = {}
        for name, read_field, any_case in fields:
            found = node.get(name)
            if found is None and any_case:
                found = node.get(name.lower())
                if found is None:
                    others = others if others is not None else _upper_cased(node)
                    found = others.get(name)
            try:
                result[name] = read_field(found)
            except _Refused as e:
                raise _Refused(e.reason, f".{name}{e.path}") from e
        return result

    return read


def _upper_cased(node: dict[str, jackson.Node]) -> dict[str, jackson.Node]:
    return {key.upper(): value for key, value in node.items() if value is not None}


_READERS: dict[str, Callable[[SqlType], Reader]] = {
    "BOOLEAN": _boolean,
    "INTEGER": _integer(java.INT_BITS),
    "BIGINT": _integer(java.LONG_BITS),
    "DOUBLE": _double,
    "DECIMAL": _decimal,
    "STRING": _string,
    "BYTES": _bytes,
    "DATE": _integer(java.LONG_BITS, _days),
    "TIME": _integer(java.LONG_BITS, java.fit_time),
    "TIMESTAMP": _integer(java.LONG_BITS),
    "ARRAY": _array,
    "MAP": _map,
    "STRUCT": _struct,
}


def writer(type_: SqlType) -> Writer:
    """How a value of the type is written; nulls are written as null."""
    write = _writer(type_)
    return lambda value: "null" if value is None else write(value)


def _label(key: str | None) -> str:
    """A map's key as a name: one that is null is called so."""
    return jackson.string("null" if key is None else key)


def _writer(type_: SqlType) -> Writer:
    match type_:
        case Array(element):
            write_item = writer(element)
            return lambda items: f"[{','.join(map(write_item, items))}]"
        case Map(_, value):
            write_value = writer(value)
            return lambda entries: (
                "{" + ",".join(f"{_label(k)}:{write_value(v)}" for k, v in entries.items()) + "}"
            )
        case Struct(fields):
            parts = [(f.name, jackson.string(f.name) + ":", writer(f.type)) for f in fields]
            return lambda row: (
                "{" + ",".join([text + write(row.get(name)) for name, text, write in parts]) + "}"
            )
    return _LEAF_WRITERS.get(base_name(type_), str)


_LEAF_WRITERS: dict[str, Writer] = {
    "BOOLEAN": lambda v: "true" if v else "false",
    "DOUBLE": jackson.double,
    "DECIMAL": java.decimal_text,
    "STRING": jackson.string,
    "BYTES": lambda v: f'"{jackson.encode_bytes(v)}"',
}
