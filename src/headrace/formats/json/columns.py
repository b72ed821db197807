"""JSON as Spark columns: `from_json` where it is right, and a sure sign where it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from headrace.formats.base import Layout
from headrace.formats.columns import NativeFirst
from headrace.formats.json import text as jackson
from headrace.model.fallible import Fallible
from headrace.model.representation import spark_type
from headrace.model.types import (
    MILLIS_PER_DAY,
    STRING,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
    base_name,
    walk,
)

# ksqlDB's JSON library reads strict JSON; Spark's is laxer unless told.
_CORRUPT = "$corrupt"
_ENVELOPE = "$value"
_STRICT = {
    "mode": "PERMISSIVE",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
    "columnNameOfCorruptRecord": _CORRUPT,
}
# A STRING field gets the text of whatever is there. Numbers come as Java prints doubles, which is
# not how they were written; so a text like that may have been a number.
_LIKE_A_DOUBLE = r"^-?\d+\.\d+(E-?\d+)?$|^-Infinity$"
# A bare value in its type's usual form needs no parser. What begins with -0 is an integer for some
# and not for others; long numbers are left to those who know how they overflow.
_PATTERNS = {
    "BOOLEAN": r"true|false",
    "INTEGER": r"0|-?[1-9]\d{0,8}",
    "BIGINT": r"0|-?[1-9]\d{0,17}",
    "DOUBLE": r"(?:0|-?[1-9]\d{0,17}|-?(?:0|[1-9]\d{0,17})\.\d{1,17})(?:[eE][+-]?\d{1,2})?",
    "STRING": r'"[^"\\\x00-\x1f]*+"',
}
_ESCAPED = r'["\\\x00-\x1f]'
_MAX_PRECISION = 38
# With fewer spare digits than this, rounding in the parser could pass unseen.
_SPARE_DIGITS = 10


class JsonColumns(NativeFirst):
    """`from_json` with typed fields, named in capitals or in lower case; all else is Python's.

    A field that Spark's parser does not take as it stands (a number in quotes, a fraction for an
    integer), that may be there in another spelling, or whose text may not have been a string,
    sends the one record to Python.
    """

    rows_never_fail = True  # what does not fit is null

    def attempt(self, data: SparkColumn) -> SparkColumn:
        return self._parser().attempt(data.cast("string"))

    def _parser(self) -> JsonParser:
        return JsonParser(self._parsed(), any_case=True)

    def settle(self, attempt: SparkColumn, data: SparkColumn) -> tuple[SparkColumn, SparkColumn]:
        parsed = self._parsed()
        value, unsure = self._parser().settle(attempt, data.cast("string"))
        if not self.layout.wrapped:
            return F.struct(value.alias(self.layout.columns[0].name)), unsure
        assert isinstance(parsed, Struct)
        if len(parsed.fields) == len(self.layout.columns):
            return value, unsure
        read = {f.name for f in parsed.fields}
        fields = [
            (value[c.name] if c.name in read else F.lit(None).cast("string")).alias(c.name)
            for c in self.layout.columns
        ]
        return F.struct(*fields), unsure

    def _parsed(self) -> SqlType:
        """What has to be parsed: nothing can be wrong with a STRING, so one that nobody reads
        need not be, as long as there is something else."""
        if not self.layout.wrapped:
            return self.layout.type
        fields = self.layout.struct.fields
        read = [f for f in fields if f.name not in self.layout.unread or f.type != STRING]
        return Struct(tuple(read or fields[:1]))

    def encode(self, row: SparkColumn) -> Fallible:
        return Fallible(json_text(self.layout, row).cast("binary"))


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


@dataclass(frozen=True)
class _Settled:
    """A value made of parsed fields; is it unsure, and might something be in another spelling?"""

    value: SparkColumn
    unsure: SparkColumn | None = None
    missing: SparkColumn | None = None


class JsonParser:
    """Reads texts as values of a type, and says of which it is not sure.

    With `any_case`, fields whose names were not quoted in SQL may be spelled in any case. A text
    is read with its names as declared, or all in lower case: most writers keep to one, and to
    find out which costs less than looking for both. A third spelling makes it unsure.
    """

    def __init__(self, type_: SqlType, *, any_case: bool) -> None:
        self._type = type_
        self._any_case = any_case
        self._capitals = _names_in_capitals(type_) if any_case else []

    def attempt(self, text: SparkColumn) -> SparkColumn:
        if (pattern := _PATTERNS.get(base_name(self._type))) is not None:
            value = F.when(text != "null", _matched_value(self._type, text)).alias(_ENVELOPE)
            return F.when(text.rlike(f"^(?:{pattern}|null)\\z"), F.struct(value))
        if isinstance(self._type, Struct):
            fields = _parse_fields(self._type)
        else:
            text = F.concat(F.lit(f'{{"{_ENVELOPE}":'), text, F.lit("}"))
            fields = [spark.StructField(_ENVELOPE, _parse_type(self._type))]
        fields.append(spark.StructField(_CORRUPT, spark.StringType()))
        declared = spark.StructType(fields)
        parsed = F.from_json(text, declared, _STRICT)
        if not self._capitals:
            return parsed
        # The same fields in the same order: casting gives them their names.
        in_lower = F.from_json(text, _in_lower_case(declared), _STRICT).cast(declared)
        return F.when(self._as_declared(text), parsed).otherwise(in_lower)

    def _as_declared(self, text: SparkColumn) -> SparkColumn:
        return reduce(or_, (text.contains(name) for name in self._capitals))

    def settle(self, attempt: SparkColumn, text: SparkColumn) -> tuple[SparkColumn, SparkColumn]:
        if base_name(self._type) in _PATTERNS:
            # Of texts whose bytes are none, Spark may find what is not there.
            unsure = attempt.isNull() | ~F.is_valid_utf8(text)
            return attempt[_ENVELOPE], F.coalesce(unsure, F.lit(False))
        unsure = attempt.isNull() | attempt[_CORRUPT].isNotNull() | ~F.is_valid_utf8(text)
        if isinstance(self._type, Struct):
            settled = self._settle_struct(self._type, attempt, text)
        else:
            settled = self._settle(self._type, attempt[_ENVELOPE], text, ())
            # More than one value would fit into the envelope as well.
            items = F.json_array_length(F.concat(F.lit("["), text, F.lit("]")))
            unsure |= ~items.eqNullSafe(1)
        if settled.missing is not None:
            unsure |= settled.missing & self._has_other_spelling(text)
        if settled.unsure is not None:
            unsure |= settled.unsure
        return settled.value, F.coalesce(unsure, F.lit(False))

    def _settle(
        self, type_: SqlType, parsed: SparkColumn, text: SparkColumn, names: tuple[str, ...]
    ) -> _Settled:
        match type_:
            case Array(element):
                return self._settle_array(element, parsed, text)
            case Map(_, value):
                return self._settle_map(value, parsed, text)
            case Struct():
                settled = self._settle_struct(type_, parsed, text)
                return replace(settled, value=F.when(parsed.isNotNull(), settled.value))
            case Decimal(precision, _):
                if precision > _MAX_PRECISION - _SPARE_DIGITS:
                    return _Settled(parsed.cast(spark_type(type_)), parsed.isNotNull())
                fitted = parsed.cast(spark_type(type_))
                return _Settled(fitted, parsed.isNotNull() & ~parsed.eqNullSafe(fitted))
        if base_name(type_) == "STRING":
            return _Settled(parsed, _maybe_no_string(parsed, text, names))
        if base_name(type_) == "TIME":
            return _Settled(parsed, ~parsed.between(0, MILLIS_PER_DAY))
        return _Settled(parsed)

    def _settle_array(self, element: SqlType, parsed: SparkColumn, text: SparkColumn) -> _Settled:
        if _is_final(element):
            return _Settled(parsed)

        def pick(part: str) -> Callable[[SparkColumn], SparkColumn]:
            return lambda item: _part(self._settle(element, item, text, ()), part)

        return _Settled(
            F.transform(parsed, pick("value")) if _is_rebuilt(element) else parsed,
            F.exists(parsed, pick("unsure")),
            F.exists(parsed, pick("missing")) if _has_struct(element) else None,
        )

    def _settle_map(self, value: SqlType, parsed: SparkColumn, text: SparkColumn) -> _Settled:
        keys = F.map_keys(parsed)
        doubled = F.size(keys) != F.size(F.array_distinct(keys))
        if _is_final(value):
            return _Settled(parsed, doubled)
        values = self._settle_array(value, F.map_values(parsed), text)
        unsure = doubled if values.unsure is None else doubled | values.unsure
        # A map with a doubled key cannot be built at all; its record is Python's anyway.
        rebuilt = F.when(~doubled, F.map_from_arrays(keys, values.value))
        return _Settled(rebuilt if _is_rebuilt(value) else parsed, unsure, values.missing)

    def _settle_struct(self, struct: Struct, parsed: SparkColumn, text: SparkColumn) -> _Settled:
        values: list[SparkColumn] = []
        unsure: list[SparkColumn] = []
        missing: list[SparkColumn] = []
        for f in struct.fields:
            spellings = (f.name, _lower(f.name)) if self._capitals else (f.name,)
            found = self._settle(f.type, parsed[f.name], text, tuple(dict.fromkeys(spellings)))
            values.append(found.value.alias(f.name))
            if found.unsure is not None:
                unsure.append(found.unsure)
            if found.missing is not None:
                missing.append(found.missing)
            if self._any_case and _is_unquoted(f.name):
                missing.append(found.value.isNull())
        return _Settled(F.struct(*values), _any(unsure), _any(missing))

    def _has_other_spelling(self, text: SparkColumn) -> SparkColumn:
        """Whether the text has a field in a spelling that was not looked for."""
        names = {
            f.name
            for t in walk(self._type)
            if isinstance(t, Struct)
            for f in t.fields
            if _is_unquoted(f.name)
        }
        as_declared = text.rlike(_other_spelling(names, names))
        if not self._capitals:
            return as_declared
        in_lower = text.rlike(_other_spelling(names, {_lower(name) for name in names}))
        return F.when(self._as_declared(text), as_declared).otherwise(in_lower)


def _other_spelling(names: set[str], known: set[str]) -> str:
    """Matches a text with one of the names in a spelling that is not known."""
    known_names, any_names = ("|".join(map(_regex, sorted(n))) for n in (known, names))
    escaped = r'"[^"\\]*\\u[^"]*"\s*:'
    return rf'"(?!(?:{known_names})")(?iu:{any_names})"\s*:|{escaped}'


def _names_in_capitals(type_: SqlType) -> list[str]:
    """The first few quoted names that a text in capitals has and one in lower case has not.

    None where lower case would make two columns one.
    """
    structs = [t for t in walk(type_) if isinstance(t, Struct)]
    for struct in structs:
        if len({_lower(f.name) for f in struct.fields}) < len(struct.fields):
            return []
    names = [f.name for f in structs[0].fields] if structs else []
    changed = [n for n in names if _is_unquoted(n) and n != n.lower()]
    return [jackson.string(n) for n in changed[:2]]


def _is_unquoted(name: str) -> bool:
    """Names that were not quoted in SQL are in capitals, and match in any case."""
    return name == name.upper()


def _lower(name: str) -> str:
    return name.lower() if _is_unquoted(name) else name


def _parse_fields(struct: Struct) -> list[spark.StructField]:
    return [spark.StructField(f.name, _parse_type(f.type)) for f in struct.fields]


def _parse_type(type_: SqlType) -> spark.DataType:
    match type_:
        case Array(element):
            return spark.ArrayType(_parse_type(element))
        case Map(_, value):
            return spark.MapType(spark.StringType(), _parse_type(value))
        case Struct():
            return spark.StructType(_parse_fields(type_))
        case Decimal(precision, scale):
            # As many digits as fit after the point: what does not fit the column shows.
            spare = max(_MAX_PRECISION - precision, 0)
            return spark.DecimalType(_MAX_PRECISION, min(scale + spare, _MAX_PRECISION))
    return spark_type(type_)


def _in_lower_case(type_: spark.DataType) -> Any:
    """The type with the names of fields, at every depth, as a writer of lower case has them."""
    match type_:
        case spark.StructType():
            return spark.StructType(
                [
                    spark.StructField(_lower(f.name), _in_lower_case(f.dataType))
                    for f in type_.fields
                ]
            )
        case spark.ArrayType():
            return spark.ArrayType(_in_lower_case(type_.elementType))
        case spark.MapType():
            return spark.MapType(type_.keyType, _in_lower_case(type_.valueType))
    return type_


def _matched_value(type_: SqlType, text: SparkColumn) -> SparkColumn:
    """A text that matched its pattern, as a value."""
    if type_ == STRING:
        return F.substring_index(F.substring_index(text, '"', 2), '"', -1)
    return text.cast(spark_type(type_))


def _maybe_no_string(value: SparkColumn, text: SparkColumn, names: tuple[str, ...]) -> SparkColumn:
    # Comparing is cheap, matching is not: only what starts like a number is matched.
    like_a_number = (value >= "-") & (value < ":") & value.rlike(_LIKE_A_DOUBLE)
    for name in names:
        for colon in (":", ": "):
            prefix = F.lit(f'{jackson.string(name)}{colon}"')
            like_a_number &= ~text.contains(F.concat(prefix, value, F.lit('"')))
    like_a_tree = value.startswith("{") | value.startswith("[")
    # A number too large for a double is "Infinity" for Spark, in quotes.
    return like_a_tree | like_a_number | value.startswith('"') | (value == "Infinity")


def _any(conditions: list[SparkColumn]) -> SparkColumn | None:
    return reduce(or_, conditions) if conditions else None


def _part(settled: _Settled, part: str) -> SparkColumn:
    column: SparkColumn | None = getattr(settled, part)
    return F.lit(False) if column is None else column


def _is_final(type_: SqlType) -> bool:
    """Whether a parsed value of the type is certain and final as it stands."""
    return not any(
        isinstance(t, (Struct, Map, Decimal)) or base_name(t) in ("STRING", "TIME")
        for t in walk(type_)
    )


def _is_rebuilt(type_: SqlType) -> bool:
    """Whether the parsed value has another Spark type than the column."""
    return any(isinstance(t, (Struct, Decimal)) for t in walk(type_))


def _has_struct(type_: SqlType) -> bool:
    return any(isinstance(t, Struct) for t in walk(type_))


def _regex(name: str) -> str:
    """The name as JSON writes it, quoted for Java's regular expressions."""
    return "".join(
        c if c.isalnum() or c == "_" else f"\\x{{{ord(c):x}}}" for c in jackson.string(name)[1:-1]
    )
