"""JSON as Spark columns: decoded by a Java function of our own, written by `to_json`."""

from __future__ import annotations

import json

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from headrace.formats.base import Layout
from headrace.formats.columns import NativeFirst
from headrace.model.fallible import Fallible
from headrace.model.representation import spark_type
from headrace.model.types import STRING, Array, Decimal, Field, Map, SqlType, Struct, base_name

# The name under which sessions register it (`spark/runtime/java/JsonFunction.java`).
JSON_FUNCTION = "headrace_from_json"
_ENVELOPE = "$value"
_ESCAPED = r'["\\\x00-\x1f]'
# Types that are another one in JSON.
_KINDS = {"DATE": "INTEGER", "TIMESTAMP": "BIGINT"}
# A STRING that nobody reads is skipped: nothing can be wrong with it.
_UNREAD = "UNREAD"


class JsonColumns(NativeFirst):
    """What the Java function leaves undecided (a number in quotes, a field twice, an object for a
    STRING, a broken record) is decoded by the row codec."""

    rows_never_fail = True

    def attempt(self, data: SparkColumn) -> SparkColumn:
        return decode_json(self.layout.type, data, any_case=True, unread=self.layout.unread)

    def settle(self, attempt: SparkColumn, data: SparkColumn) -> tuple[SparkColumn, SparkColumn]:
        value = decoded_value(self.layout.type, attempt)
        if not self.layout.wrapped:
            value = F.struct(value.alias(self.layout.columns[0].name))
        return value, attempt.isNull()

    def encode(self, row: SparkColumn) -> Fallible:
        return Fallible(json_text(self.layout, row).cast("binary"))


def decode_json(
    type_: SqlType, data: SparkColumn, *, any_case: bool, unread: frozenset[str] = frozenset()
) -> SparkColumn:
    """Binary JSON, decoded; null where the row codec has to decide.

    With `any_case`, fields whose names were not quoted in SQL may be spelled in any case.
    """
    rows = type_ if isinstance(type_, Struct) else Struct((Field(_ENVELOPE, type_),))
    described = _described(type_, any_case, unread)
    return F.call_function(
        JSON_FUNCTION, data, F.lit(spark_type(rows).json()), F.lit(json.dumps(described))
    )


def decoded_value(type_: SqlType, decoded: SparkColumn) -> SparkColumn:
    """The value of the type in what `decode_json` gives."""
    return decoded if isinstance(type_, Struct) else decoded[_ENVELOPE]


def _described(
    type_: SqlType, any_case: bool, unread: frozenset[str] = frozenset()
) -> dict[str, object]:
    """The type as `JsonType.java` reads it."""
    kind = _KINDS.get(base_name(type_), base_name(type_))
    match type_:
        case Array(element) | Map(_, element):
            return {"kind": kind, "element": _described(element, any_case)}
        case Decimal(precision, scale):
            return {"kind": kind, "precision": precision, "scale": scale}
        case Struct(fields):
            described = []
            for f in fields:
                skipped = f.type == STRING and f.name in unread
                inner = {"kind": _UNREAD} if skipped else _described(f.type, any_case)
                matches = any_case and f.name == f.name.upper()
                described.append({**inner, "name": f.name, "anyCase": matches})
            return {"kind": kind, "fields": described}
    return {"kind": kind}


def json_text(layout: Layout, row: SparkColumn) -> SparkColumn:
    """The row, or its bare column, as JSON text; null for null."""
    options = {"ignoreNullFields": "false"}
    if layout.wrapped:
        return F.to_json(row, options)
    value = row[layout.columns[0].name]
    if isinstance(layout.type, (Struct, Map, Array)):
        return F.to_json(value, options)
    return F.when(value.isNotNull(), _bare_text(base_name(layout.type), value, options))


def _bare_text(type_: str, value: SparkColumn, options: dict[str, str]) -> SparkColumn:
    """A value that is not null and has no parts, as JSON; there are shorter ways for most."""
    whole = F.to_json(F.struct(value.alias("v")), options)
    text = F.substr(whole, F.lit(6), F.length(whole) - 6)  # {"v":…}
    match type_:
        case "INTEGER" | "BIGINT" | "BOOLEAN":
            return value.cast("string")
        case "DOUBLE":
            finite = F.abs(value) < float("inf")  # NaN is greater than all
            return F.when(finite, value.cast("string")).otherwise(text)
        case "STRING":
            unescaped = ~value.rlike(_ESCAPED)
            return F.when(unescaped, F.concat(F.lit('"'), value, F.lit('"'))).otherwise(text)
    return text
