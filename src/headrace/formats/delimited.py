"""DELIMITED: values between delimiters, quoted where necessary; no nested types."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from headrace.formats import csv
from headrace.formats import java_numbers as java
from headrace.formats.base import (
    ColumnCodec,
    DecodeError,
    Feature,
    Format,
    Layout,
    Row,
    RowCodec,
    Side,
)
from headrace.formats.columns import NativeFirst
from headrace.model.errors import StatementError
from headrace.model.fallible import Fallible
from headrace.model.representation import spark_type
from headrace.model.schema import Column
from headrace.model.types import MILLIS_PER_DAY, Decimal, SqlType, base_name, quote

_NAMED_DELIMITERS = {"TAB": "\t", "SPACE": " "}
_EXAMPLE = "\nExample valid value: ';'"


class DelimitedFormat(Format):
    name = "DELIMITED"
    features = frozenset({Feature.UNWRAP})
    structured = False
    properties = frozenset({"delimiter"})
    inheritable = properties

    def check_columns(
        self, columns: Sequence[Column], side: Side, properties: Mapping[str, str]
    ) -> None:
        parse_delimiter(properties.get("delimiter"))
        for column in columns:
            if base_name(column.type) not in _READERS:
                raise StatementError(
                    f"The 'DELIMITED' format does not support type '{base_name(column.type)}', "
                    f"column: {quote(column.name)}"
                )

    def python(self, layout: Layout) -> RowCodec:
        return DelimitedRows(layout)

    def spark(self, layout: Layout) -> ColumnCodec:
        return DelimitedColumns(self.name, layout)


def parse_delimiter(text: str | None) -> str:
    """The delimiter that a property names; a comma if there is none."""
    if text is None:
        return ","
    if not text.strip():
        raise StatementError(
            "Delimiter cannot be empty, if you meant to have a tab or space for delimiter, please "
            f"use the special values 'TAB' or 'SPACE'{_EXAMPLE}"
        )
    if len(text) == 1:
        return text
    if text not in _NAMED_DELIMITERS:
        raise StatementError(
            f"Invalid delimiter value: '{text}'. Delimiter must be a single character or "
            f"{','.join(_NAMED_DELIMITERS)}{_EXAMPLE}"
        )
    return _NAMED_DELIMITERS[text]


# ---------------------------------------------------------------- rows

Reader = Callable[[str], object]


class DelimitedRows(RowCodec):
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._delimiter = parse_delimiter(layout.option("delimiter"))
        self._columns = [
            (c.name, _READERS[base_name(c.type)](c.type), _WRITERS.get(base_name(c.type), str))
            for c in layout.columns
        ]

    def decode(self, data: bytes | None) -> Row | None:
        if data is None:
            return None
        try:
            return self._row(data.decode("utf-8", "replace"))
        except ValueError as e:
            raise DecodeError(f"Error deserializing delimited\n{e}") from e

    def _row(self, text: str) -> Row:
        values = csv.parse_record(text, self._delimiter)
        if values is None:
            raise ValueError("No fields in record")
        if len(values) != len(self._columns):
            raise ValueError(
                f"Column count mismatch on deserialization. topic: {self._layout.topic}, "
                f"expected: {len(self._columns)}, got: {len(values)}"
            )
        return {
            name: read(value) if value else None
            for (name, read, _), value in zip(self._columns, values, strict=True)
        }

    def encode(self, row: Row | None) -> bytes | None:
        if row is None:
            return None
        texts = []
        for name, _, write in self._columns:
            value = row[name]
            if value is None:
                texts.append("")
            else:
                texts.append(csv.write_value(write(value), self._delimiter, first=not texts))
        return self._delimiter.join(texts).encode("utf-8", "replace")


def _integer(bits: int, check: Callable[[int], int] = lambda v: v) -> Callable[[SqlType], Reader]:
    def read(text: str) -> int:
        value = java.parse_integer(text, bits)
        if value is None:
            raise ValueError(f'For input string: "{text}"')
        return check(value)

    return lambda _: read


def _double(_: SqlType) -> Reader:
    def read(text: str) -> float:
        value = java.parse_double(text)
        if value is None:
            raise ValueError(f'For input string: "{text}"')
        return value

    return read


def _decimal(type_: SqlType) -> Reader:
    assert isinstance(type_, Decimal)

    def read(text: str) -> object:
        value = java.parse_decimal(text)
        if value is None:
            raise ValueError(f'For input string: "{text}"')
        return java.fit(value, type_.precision, type_.scale)

    return read


def _bytes(_: SqlType) -> Reader:
    def read(text: str) -> bytes:
        try:
            # Java's decoder takes values without padding too.
            padding = "" if text.endswith("=") else "=" * (-len(text) % 4)
            return base64.b64decode(text + padding, validate=True)
        except (binascii.Error, ValueError) as e:
            raise ValueError(f"Value is not a valid Base64 encoded string: {text}") from e

    return read


_READERS: dict[str, Callable[[SqlType], Reader]] = {
    "BOOLEAN": lambda _: lambda text: text.lower() == "true",
    "INTEGER": _integer(java.INT_BITS),
    "BIGINT": _integer(java.LONG_BITS),
    "DOUBLE": _double,
    "STRING": lambda _: lambda text: text,
    "BYTES": _bytes,
    "DECIMAL": _decimal,
    "DATE": _integer(java.INT_BITS),
    "TIME": _integer(java.LONG_BITS, java.fit_time),
    "TIMESTAMP": _integer(java.LONG_BITS),
}
_WRITERS: dict[str, Callable[[Any], str]] = {
    "BOOLEAN": lambda value: "true" if value else "false",
    "DOUBLE": java.double_text,
    "DECIMAL": java.plain_string,
    "BYTES": lambda value: base64.b64encode(value).decode("ascii"),
}


# ---------------------------------------------------------------- Spark columns


class DelimitedColumns(NativeFirst):
    """A split where the text has no quotes and every value reads back as it was written."""

    def attempt(self, data: SparkColumn) -> SparkColumn:
        return F.split(data.cast("string"), _literal(self._delimiter), -1)

    def settle(self, attempt: SparkColumn, data: SparkColumn) -> tuple[SparkColumn, SparkColumn]:
        text = data.cast("string")
        columns = self.layout.columns
        unsure = [
            F.size(attempt) != len(columns),
            text == "",
            *(text.contains(c) for c in ('"', "\n", "\r")),
            ~F.is_valid_utf8(text),
        ]
        values = []
        for i, column in enumerate(columns):
            # `get` gives null beyond the end, where the size is wrong anyway.
            part = F.nullif(F.get(attempt, F.lit(i)), F.lit(""))
            parsed = _NATIVE.get(base_name(column.type), _native_integer)(part, column.type)
            values.append(parsed.value.alias(column.name))
            if parsed.unsure is not None:
                unsure.append(part.isNotNull() & F.coalesce(parsed.unsure, F.lit(True)))
        return F.struct(*values), reduce(or_, unsure)

    def encode(self, row: SparkColumn) -> Fallible:
        delimiter = self._delimiter
        texts = []
        for i, column in enumerate(self.layout.columns):
            text = _native_text(row[column.name], column.type)
            quoting = _needs_quotes(text, column.type, delimiter, first=i == 0)
            if quoting is not None:
                doubled = F.replace(text, F.lit('"'), F.lit('""'))
                text = F.when(quoting, F.concat(F.lit('"'), doubled, F.lit('"'))).otherwise(text)
            texts.append(F.coalesce(text, F.lit("")))
        joined = F.concat_ws(delimiter, *texts)
        return Fallible(F.when(row.isNotNull(), joined).cast("binary"))

    @property
    def _delimiter(self) -> str:
        return parse_delimiter(self.layout.option("delimiter"))


def _literal(delimiter: str) -> str:
    """The delimiter as a Java regular expression that Java's split need not interpret."""
    return delimiter if delimiter.isalnum() or delimiter in ",;:\t " else f"\\{delimiter}"


def _needs_quotes(
    text: SparkColumn, type_: SqlType, delimiter: str, *, first: bool
) -> SparkColumn | None:
    """Whether the CSV library puts the text in quotes; None where it never does.

    Comparisons of whole texts stand for those of first characters: they are cheaper than patterns.
    """
    conditions = []
    free = base_name(type_) == "STRING"
    if free or delimiter.isalnum() or delimiter in "+-./=":
        conditions.append(text.contains(delimiter))
    if free:
        conditions += [text.contains(c) for c in ('"', "\n", "\r")]
        conditions.append((text != "") & ((text < "$") | (F.substring(text, -1, 1) <= " ")))
    if first and free:
        starts = (text.between(a, b + "\U0010ffff") for a, b in ("09", "AZ", "az"))
        conditions.append(~reduce(or_, starts))
    elif first:  # of other types, only what is negative starts with something else
        conditions.append(text < "0")
    return reduce(or_, conditions) if conditions else None


@dataclass(frozen=True)
class _Parsed:
    value: SparkColumn
    unsure: SparkColumn | None = None


def _native_integer(text: SparkColumn, type_: SqlType) -> _Parsed:
    value = text.cast(spark_type(type_))
    return _Parsed(value, value.isNull() | _is_lax(text))


def _is_lax(text: SparkColumn) -> SparkColumn:
    """Whether Spark may read a number from it where Java does not: fractions, spaces around."""
    return text.contains(".") | (text < "!") | (F.substring(text, -1, 1) < "!")


def _native_time(text: SparkColumn, type_: SqlType) -> _Parsed:
    value = text.cast("int")
    return _Parsed(value, ~value.between(0, MILLIS_PER_DAY) | _is_lax(text))


def _native_double(text: SparkColumn, type_: SqlType) -> _Parsed:
    value = text.cast("double")
    return _Parsed(value, value.isNull() | F.isnan(value) | (F.abs(value) == float("inf")))


def _native_decimal(text: SparkColumn, type_: SqlType) -> _Parsed:
    assert isinstance(type_, Decimal)
    # Equal text means that nothing was rounded; other spellings are Python's.
    value = text.cast(spark_type(type_))
    return _Parsed(value, value.cast("string") != text)


def _native_bytes(text: SparkColumn, type_: SqlType) -> _Parsed:
    # Spark's decoder and Java's disagree on what is wrong; Spark's `unbase64` may even fail.
    value = F.try_to_binary(text, F.lit("base64"))
    return _Parsed(value, F.base64(value) != text)


_NATIVE: dict[str, Callable[[SparkColumn, SqlType], _Parsed]] = {
    "BOOLEAN": lambda text, _: _Parsed(F.lower(text) == "true"),
    "STRING": lambda text, _: _Parsed(text),
    "DOUBLE": _native_double,
    "DECIMAL": _native_decimal,
    "BYTES": _native_bytes,
    "TIME": _native_time,
}


def _native_text(value: SparkColumn, type_: SqlType) -> SparkColumn:
    match base_name(type_):
        case "STRING":
            return value
        case "BYTES":
            return F.base64(value)
        case "DECIMAL":
            assert isinstance(type_, Decimal)
            return _decimal_text(value, type_)
    return value.cast("string")


def _decimal_text(value: SparkColumn, type_: Decimal) -> SparkColumn:
    """Without exponent, which Spark uses for what is below a millionth."""
    text = value.cast("string")
    if type_.scale <= 6:
        return text
    digits = F.regexp_extract(text, r"^-?([0-9.]+)E", 1)
    digits = F.replace(digits, F.lit("."), F.lit(""))
    sign = F.when(value < 0, F.lit("-")).otherwise(F.lit(""))
    written_out = F.concat(sign, F.lit("0."), F.lpad(digits, type_.scale, "0"))
    return F.when(text.contains("E"), written_out).otherwise(text)
