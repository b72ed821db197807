"""CAST, as ksqlDB does it, in Spark columns: what cannot be cast is an error, not a null."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.scalar.binary import base64_bytes
from headrace.model.fallible import Fallible, coalesce_errors
from headrace.model.representation import spark_type
from headrace.model.types import (
    MILLIS_PER_DAY,
    STRING,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
    base_name,
)

# What Java's parsers accept, after the trim that ksqlDB does first.
_INTEGER = r"^[+-]?[0-9]+$"
_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?$"
_DATE = r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?$"
_TIME = r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?$"

# Types whose null may become a text: ksqlDB keeps it for decimals and times, whatever it is told.
_NULL_TEXTS = frozenset({"BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "ARRAY", "MAP", "STRUCT"})

Caster = Callable[[Column, SqlType, SqlType], Fallible]


def cast(value: Column, source: SqlType, target: SqlType, null_text: bool = False) -> Fallible:
    """The value as another type. The planner has already refused casts that do not exist.
    `null_text`: null becomes the text 'null', inside arrays, maps and structs too."""
    if source == target:
        return Fallible(value)
    family = base_name(source), base_name(target)
    if family in _NESTED:
        return _NESTED[family](value, source, target, null_text)
    caster = _CASTERS.get(family)
    if caster is not None:
        made = caster(value, source, target)
    else:  # NULL fits every type; same-family types differ in parameters only
        made = Fallible(value.cast(spark_type(target)))
    if null_text and target == STRING and family[0] in _NULL_TEXTS:
        return Fallible(F.coalesce(made.value, F.lit("null")), made.error)
    return made


def _checked(value: Column, result: Column, reason: Column) -> Fallible:
    """A result that is null although the value was not, is a failure."""
    return Fallible(result, F.when(value.isNotNull() & result.isNull(), reason))


def _parse(pattern: str) -> Caster:
    def parse(value: Column, source: SqlType, target: SqlType) -> Fallible:
        text = F.trim(value)
        number = text.cast(spark_type(target))
        if base_name(target) == "DOUBLE":
            number = F.when(~F.isnan(number) & (F.abs(number) != float("inf")), number)
        result = F.when(text.rlike(pattern), number)
        return _checked(value, result, F.concat(F.lit('For input string: "'), text, F.lit('"')))

    return parse


def _to_decimal(value: Column, source: SqlType, target: SqlType) -> Fallible:
    assert isinstance(target, Decimal)
    if base_name(source) == "DOUBLE":
        # Through the shortest text, as Java's BigDecimal.valueOf does, so that 1.1 stays 1.1.
        value = value.cast("string")
    elif base_name(source) == "STRING":
        value = F.trim(value)
    result = value.cast(spark_type(target))
    return _checked(
        value,
        result,
        F.concat(
            F.lit(
                f"Numeric field overflow: A field with precision {target.precision} and scale "
                f"{target.scale} must round to an absolute value less than "
                f"10^{target.precision - target.scale}. Got "
            ),
            value.cast("string"),
        ),
    )


def _to_boolean(value: Column, source: SqlType, target: SqlType) -> Fallible:
    text = F.lower(F.trim(value))
    return Fallible((text != "") & (F.lit("true").startswith(text) | F.lit("yes").startswith(text)))


def _to_bytes(value: Column, source: SqlType, target: SqlType) -> Fallible:
    made = base64_bytes(F.trim(value))
    wrong = F.when(value.isNotNull() & made.isNull(), F.lit("Illegal base64 text"))
    return Fallible(made, wrong)


def decimal_text(value: Column) -> Column:
    """A decimal's digits without exponent."""
    text = value.cast("string")
    return F.when(
        text.contains("E"), F.format_string("%s", value.cast("decimal(38,18)"))
    ).otherwise(text)


def format_timestamp(value: Column) -> Column:
    return F.date_format(F.timestamp_millis(value), "yyyy-MM-dd'T'HH:mm:ss.SSS")


def format_date(value: Column) -> Column:
    return F.date_format(F.date_from_unix_date(value), "yyyy-MM-dd")


def format_time(value: Column) -> Column:
    """Hours and minutes, and seconds unless they are zero, as Java's LocalTime prints."""
    at = F.timestamp_seconds((value / 1000).cast("bigint"))
    return F.when(F.second(at) == 0, F.date_format(at, "HH:mm")).otherwise(
        F.date_format(at, "HH:mm:ss")
    )


def parse_timestamp(value: Column) -> Fallible:
    """ISO date and time with every part after the year optional, and an optional zone."""
    text = F.trim(value)
    date = F.regexp_extract(text, r"^([^T]*)", 1)
    rest = F.regexp_extract(text, r"T(.*)$", 1)
    zone = F.regexp_extract(rest, r"([+-].*)$", 1)
    time = F.regexp_replace(F.regexp_extract(rest, r"^([^+-]*)", 1), "Z$", "")
    whole_time = F.concat(time, F.substring(F.lit("00:00:00.000"), F.length(time) + 1, F.lit(12)))
    instant = F.to_timestamp(
        F.concat(
            _whole_date(date),
            F.lit("T"),
            F.regexp_extract(whole_time, r"^(.{12})", 1),
            F.when(zone == "", F.lit("+0000")).otherwise(F.regexp_replace(zone, ":", "")),
        ),
        "yyyy-MM-dd'T'HH:mm:ss.SSSxx",
    )
    return _checked(
        value,
        F.unix_millis(instant),
        F.concat(F.lit("Failed to parse timestamp '"), text, F.lit("'")),
    )


def parse_date(value: Column) -> Fallible:
    text = F.trim(value)
    days = F.when(text.rlike(_DATE), F.unix_date(F.to_date(_whole_date(text), "yyyy-MM-dd")))
    return _checked(value, days, F.concat(F.lit("Failed to parse date '"), text, F.lit("'")))


def parse_time(value: Column) -> Fallible:
    text = F.trim(value)
    parts = [F.get(F.split(text, ":"), F.lit(i)) for i in range(3)]
    seconds = F.coalesce(parts[2], F.lit("0")).cast("decimal(12,9)")
    hours, minutes = parts[0].cast("int"), parts[1].cast("int")
    millis = hours * 3_600_000 + minutes * 60_000 + F.floor(seconds * 1000).cast("int")
    fits = text.rlike(_TIME) & (hours < 24) & (minutes < 60) & (seconds < 60)
    return _checked(
        value,
        F.when(fits, millis.cast("int")),
        F.concat(F.lit("Failed to parse time '"), text, F.lit("'")),
    )


def _whole_date(text: Column) -> Column:
    dashes = F.length(text) - F.length(F.replace(text, F.lit("-"), F.lit("")))
    return (
        F.when(dashes == 0, F.concat(text, F.lit("-01-01")))
        .when(dashes == 1, F.concat(text, F.lit("-01")))
        .otherwise(text)
    )


def _text(value: Column, source: SqlType) -> Column:
    """A value's text as Java prints it inside arrays, maps and structs too."""
    match source:
        case Array(element):
            items = F.transform(value, lambda x: F.coalesce(_text(x, element), F.lit("null")))
            return F.concat(F.lit("["), F.array_join(items, ", "), F.lit("]"))
        case Map(key, item):
            entries = F.transform(
                F.map_entries(value),
                lambda e: F.concat(
                    F.coalesce(_text(e["key"], key), F.lit("null")),
                    F.lit("="),
                    F.coalesce(_text(e["value"], item), F.lit("null")),
                ),
            )
            return F.concat(F.lit("{"), F.array_join(entries, ", "), F.lit("}"))
        case Struct(fields):
            shown = F.array(*(_field_text(value, f) for f in fields))
            present = F.filter(shown, lambda x: x.isNotNull())
            text = F.concat(F.lit("Struct{"), F.array_join(present, ","), F.lit("}"))
            return F.when(value.isNotNull(), text)
        case _:
            return cast(value, source, STRING).value


def _field_text(value: Column, field: Field) -> Column:
    return F.concat(F.lit(f"{field.name}="), _text(value.getField(field.name), field.type))


def _map_over_array(value: Column, source: SqlType, target: SqlType, null_text: bool) -> Fallible:
    assert isinstance(source, Array) and isinstance(target, Array)

    def item(x: Column) -> Fallible:
        return cast(x, source.element, target.element, null_text)

    if item(value).error is None:
        return Fallible(F.transform(value, lambda x: item(x).value))
    pairs = F.transform(value, lambda x: pair(item(x)))
    return Fallible(F.transform(pairs, lambda p: p["value"]), first_error(pairs))


def _map_over_map(value: Column, source: SqlType, target: SqlType, null_text: bool) -> Fallible:
    assert isinstance(source, Map) and isinstance(target, Map)
    keys = _map_over_array(F.map_keys(value), Array(source.key), Array(target.key), null_text)
    values = _map_over_array(
        F.map_values(value), Array(source.value), Array(target.value), null_text
    )
    return Fallible(
        F.map_from_arrays(keys.value, values.value), coalesce_errors(keys.error, values.error)
    )


def _map_over_struct(value: Column, source: SqlType, target: SqlType, null_text: bool) -> Fallible:
    assert isinstance(source, Struct) and isinstance(target, Struct)
    fields, errors = [], []
    for field in target.fields:
        old = source.field(field.name)
        if old is None:
            fields.append(F.lit(None).cast(spark_type(field.type)).alias(field.name))
            continue
        item = cast(value.getField(field.name), old.type, field.type, null_text)
        fields.append(item.value.alias(field.name))
        errors.append(item.error)
    return Fallible(F.when(value.isNotNull(), F.struct(*fields)), coalesce_errors(*errors))


def pair(item: Fallible) -> Column:
    """Value and error side by side, for use inside an array."""
    error = F.lit(None).cast("string") if item.error is None else item.error
    return F.struct(item.value.alias("value"), error.alias("error"))


def first_error(pairs: Column) -> Column:
    return F.get(
        F.filter(F.transform(pairs, lambda p: p["error"]), lambda e: e.isNotNull()), F.lit(0)
    )


def _to_string(convert: Callable[[Column], Column]) -> Caster:
    return lambda value, source, target: Fallible(convert(value))


_CASTERS: dict[tuple[str, str], Caster] = {
    ("STRING", "BOOLEAN"): _to_boolean,
    ("STRING", "INTEGER"): _parse(_INTEGER),
    ("STRING", "BIGINT"): _parse(_INTEGER),
    ("STRING", "DOUBLE"): _parse(_FLOAT),
    ("STRING", "DECIMAL"): _to_decimal,
    ("INTEGER", "DECIMAL"): _to_decimal,
    ("BIGINT", "DECIMAL"): _to_decimal,
    ("DOUBLE", "DECIMAL"): _to_decimal,
    ("DECIMAL", "DECIMAL"): _to_decimal,
    ("DECIMAL", "STRING"): _to_string(decimal_text),
    ("STRING", "BYTES"): _to_bytes,
    ("STRING", "TIMESTAMP"): lambda v, s, t: parse_timestamp(v),
    ("STRING", "DATE"): lambda v, s, t: parse_date(v),
    ("STRING", "TIME"): lambda v, s, t: parse_time(v),
    ("TIMESTAMP", "STRING"): _to_string(format_timestamp),
    ("TIMESTAMP", "DATE"): lambda v, s, t: Fallible(F.floor(v / MILLIS_PER_DAY).cast("int")),
    ("TIMESTAMP", "TIME"): lambda v, s, t: Fallible(F.pmod(v, F.lit(MILLIS_PER_DAY)).cast("int")),
    ("DATE", "TIMESTAMP"): lambda v, s, t: Fallible(v.cast("bigint") * MILLIS_PER_DAY),
    ("DATE", "STRING"): _to_string(format_date),
    ("TIME", "STRING"): _to_string(format_time),
    ("ARRAY", "STRING"): lambda v, s, t: Fallible(_text(v, s)),
    ("MAP", "STRING"): lambda v, s, t: Fallible(_text(v, s)),
    ("STRUCT", "STRING"): lambda v, s, t: Fallible(_text(v, s)),
}
_NESTED: dict[tuple[str, str], Callable[[Column, SqlType, SqlType, bool], Fallible]] = {
    ("ARRAY", "ARRAY"): _map_over_array,
    ("MAP", "MAP"): _map_over_map,
    ("STRUCT", "STRUCT"): _map_over_struct,
}
