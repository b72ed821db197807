"""Functions on JSON text: extracting, parsing and building it."""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headrace.functions.declare.declaration import (
    CallContext,
    Category,
    Fallible,
    Typed,
    call,
    failing,
    overload,
    scalar,
)
from headrace.functions.scalar.batches import batched
from headrace.functions.scalar.columns import text
from headrace.functions.scalar.java_text import decimal_digits, time_text
from headrace.model.types import Array, Decimal, Map, SqlType, Struct, base_name, walk

_JSON = Category.JSON


def _empty(value: Column) -> Column:
    """Nothing but white space: no JSON, but no failure either."""
    return ~value.rlike(r"\S")


def _broken(value: Column) -> Column:
    """Spark's stricter parser has the last word only on what the others made nothing of."""
    parsed = F.try_parse_json(value)
    return F.when(
        value.isNotNull() & parsed.isNull() & ~_empty(value), text("Invalid JSON format:", value)
    )


# ------------------------------------------------------------------------------ EXTRACTJSONFIELD

_SEGMENT = re.compile(r'\.([\w:@]+)|\[(\w+)\]|\["((?:[^"\\]|\\["\\])*)"\]')


@lru_cache(maxsize=1000)
def path_tokens(path: str) -> tuple[str, ...] | None:
    """The keys and indexes that a path names; None if it is not a path."""
    if not path.startswith("$"):
        return None
    tokens: list[str] = []
    at = 1
    while at < len(path):
        match = _SEGMENT.match(path, at)
        if match is None:
            return None
        name, subscript, quoted = match.groups()
        tokens.append(name or subscript or re.sub(r"\\(.)", r"\1", quoted))
        at = match.end()
    return tuple(tokens)


def _extract(value: Column, path: Column, context: CallContext) -> Fallible:
    known = context.literal(1)
    if not isinstance(known, str):
        return batched(extract, T.StringType(), (value, path))
    tokens = path_tokens(known)
    if tokens is None:
        message = F.when(value.isNotNull(), text(f"Invalid JSON path: '{known}'"))
        return Fallible(F.lit(None).cast("string"), message)
    if any(re.search(r"['?*\]]", token) for token in tokens):  # cannot be said to Spark
        return batched(extract, T.StringType(), (value, path))
    found = F.coalesce(*(_extracted(value, p) for p in _spark_paths(tokens)))
    error = F.when(found.isNull(), _broken(value))
    return Fallible(found, error)


def _spark_paths(tokens: Sequence[str]) -> list[str]:
    """A number may be an index or a key; Spark wants to be told."""
    keys = "$" + "".join(f"['{token}']" for token in tokens)
    indexes = "$" + "".join(
        f"[{int(token)}]" if _is_index(token) else f"['{token}']" for token in tokens
    )
    return [indexes] if indexes == keys else [indexes, keys]


def _is_index(token: str) -> bool:
    return token.isascii() and token.isdigit() and len(token) < 10


def _extracted(value: Column, path: str) -> Column:
    found = F.get_json_object(value, path)
    variant = F.try_variant_get(F.try_parse_json(value), path, "variant")
    is_text = F.coalesce(F.schema_of_variant(variant) == "STRING", F.lit(False))
    has_fraction = found.rlike(r"^-?\d+\.\d+(E-?\d+)?$")
    # In branches, so that Spark parses the document again only where it has to.
    fraction = F.when(has_fraction, F.when(~is_text, _as_written(value, found)))
    return (
        F.when(found.isNull(), F.when(F.is_variant_null(variant), F.lit("null")))
        .when(found.contains("."), F.coalesce(fraction, found))
        .otherwise(found)
    )


def _as_written(value: Column, found: Column) -> Column:
    """Spark writes a number with a fraction as a double; ksqlDB leaves it as it is.

    What stands in the document and is the same double is the number as it was written.
    """
    exponent = r"[eE][+-]?\d+"
    fraction = rf"-?\d+(?:\.\d+(?:{exponent})?|{exponent})"
    numbers = F.regexp_extract_all(value, F.lit(fraction), 0)
    same = F.array_position(numbers.cast("array<double>"), found.cast("double"))
    return F.get(numbers, F.when(same > 0, (same - 1).cast("int")))


# ------------------------------------------------------------------------- JSON as Jackson has it


class _Number(str):
    """A number as it was written, if it has a fraction or an exponent."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_float=_Number, strict=True)


def _no_constant(name: str) -> object:
    raise ValueError(name)


_DECODER.parse_constant = _no_constant
_DECODER.scan_once = json.scanner.make_scanner(_DECODER)  # type: ignore[attr-defined]

_MISSING = object()


def parse(value: str) -> Any:
    """The first JSON value in a text; what follows it does not matter, as for Jackson."""
    stripped = value.lstrip(" \t\r\n")
    if not stripped:
        return _MISSING
    try:
        return _DECODER.raw_decode(stripped)[0]
    except (ValueError, RecursionError) as e:
        raise ValueError(f"Invalid JSON format:{value}") from e


def _writer(number: Callable[[_Number], str]) -> Callable[[object], str]:
    """Writes what was parsed, without white space."""

    def of_object(value: dict[str, object]) -> str:
        inner = [f"{encode_basestring(k)}:{forms[type(v)](v)}" for k, v in value.items()]
        return "{" + ",".join(inner) + "}"

    def of_array(value: list[object]) -> str:
        return "[" + ",".join([forms[type(v)](v) for v in value]) + "]"

    forms: dict[type, Callable[[Any], str]] = {
        str: encode_basestring,
        int: int.__repr__,
        bool: lambda value: "true" if value else "false",
        type(None): lambda value: "null",
        dict: of_object,
        list: of_array,
        _Number: number,
    }
    return lambda value: forms[type(value)](value)


# Numbers with a fraction exactly, as Java's BigDecimal shows them: with an exponent or without.
write = _writer(lambda number: str(decimal.Decimal(number)))
write_without_exponent = _writer(lambda number: f"{decimal.Decimal(number):f}")


def extract(value: str, path: str) -> str | None:
    tokens = path_tokens(path)
    if tokens is None:
        raise ValueError(f"Invalid JSON path: '{path}'")
    node = parse(value)
    for token in tokens:
        if isinstance(node, list):
            if not _is_index(token) or int(token) >= len(node):
                return None
            node = node[int(token)]
        elif isinstance(node, dict) and token in node:
            node = node[token]
        else:
            return None
    if node is _MISSING:
        return ""
    return node if type(node) is str else write(node)


def items(value: str) -> list[str]:
    node = parse(value)
    if not isinstance(node, list):
        raise ValueError(f"Invalid JSON format:{value}")
    return [write(item) for item in node]


def concatenate(*values: str) -> str | None:
    nodes = [parse(value) for value in values]
    if not nodes or any(node is _MISSING for node in nodes):
        return None
    if all(isinstance(node, dict) for node in nodes):
        merged: dict[str, object] = {}
        for node in nodes:
            merged.update(node)
        return write_without_exponent(merged)
    if len(nodes) == 1:
        return write_without_exponent(nodes[0])
    joined = [item for node in nodes for item in (node if isinstance(node, list) else [node])]
    return write_without_exponent(joined)


# -------------------------------------------------------------------------------- by Spark alone


def _is_json(value: Column) -> Column:
    return F.coalesce(F.try_parse_json(value).isNotNull(), F.lit(False))


def _array_length(value: Column) -> Fallible:
    length = F.json_array_length(value)
    return Fallible(length, F.when(length.isNull(), _broken(value)))


def _keys(value: Column) -> Fallible:
    keys = F.array_distinct(F.json_object_keys(value))
    return Fallible(keys, F.when(keys.isNull(), _broken(value)))


def _records(value: Column) -> Fallible:
    top = F.from_json(value, "map<string,string>")
    whole = F.transform_values(top, lambda _, v: F.coalesce(v, F.lit("null")))
    found = F.when(F.json_object_keys(value).isNotNull(), whole)
    return Fallible(found, F.when(found.isNull(), _broken(value)))


def _array_contains(value: Column, sought: Column, context: CallContext) -> Column:
    """Only a value of the same kind is found: an integer is not a number with a fraction."""
    elements = F.try_variant_get(F.try_parse_json(value), "$", "array<variant>")
    matches = _MATCHES.get(base_name(context.arg_types[1]), _never)
    found = F.exists(
        elements,
        lambda e: F.when(sought.isNull(), F.is_variant_null(e)).otherwise(
            F.coalesce(matches(e, sought), F.lit(False))
        ),
    )
    return F.when(value.isNotNull(), F.coalesce(found, F.lit(False)))


def _never(element: Column, sought: Column) -> Column:
    return F.lit(False)


def _kind(element: Column, *kinds: str) -> Column:
    return F.schema_of_variant(element).rlike("^(" + "|".join(kinds) + ")")


_MATCHES: dict[str, Callable[[Column, Column], Column]] = {
    "BOOLEAN": lambda e, v: _kind(e, "BOOLEAN") & (F.try_variant_get(e, "$", "boolean") == v),
    "INTEGER": lambda e, v: _kind(e, "BIGINT") & (F.try_variant_get(e, "$", "bigint") == v),
    "BIGINT": lambda e, v: _kind(e, "BIGINT") & (F.try_variant_get(e, "$", "bigint") == v),
    "DOUBLE": lambda e, v: (
        _kind(e, "DECIMAL", "DOUBLE") & (F.try_variant_get(e, "$", "double") == v)
    ),
    "STRING": lambda e, v: _kind(e, "STRING") & (F.try_variant_get(e, "$", "string") == v),
    "NULL": lambda e, v: F.is_variant_null(e),
}


# -------------------------------------------------------------------------------- TO_JSON_STRING


def _to_json(value: Column, context: CallContext) -> Column:
    type_ = context.arg_types[0]
    written = F.to_json(F.array(_jsonable(value, type_)), {"ignoreNullFields": "false"})
    bare = F.substring(written, F.lit(2), F.length(written) - 2)
    marked = any(isinstance(t, Decimal) and t.scale > 6 for t in walk(type_))
    return F.regexp_replace(bare, f'"{_MARK}([^"]*)"', "$1") if marked else bare


# Before a decimal's digits, where Spark would write an exponent; the quotes go afterwards.
_MARK = "\ue000"


def _jsonable(value: Column, type_: SqlType) -> Column:
    """A value that Spark writes as Jackson does: fields and keys in order, times as text."""
    match type_:
        case Decimal() if type_.scale > 6:
            return F.concat(F.lit(_MARK), decimal_digits(value, type_))
        case Array(element):
            return F.transform(value, lambda e: _jsonable(e, element))
        case Map(key, item):
            entries = F.transform(
                F.map_entries(value),
                lambda e: F.struct(
                    _key_text(e.getField("key"), key).alias("k"),
                    _jsonable(e.getField("value"), item).alias("v"),
                ),
            )
            by_key = F.array_sort(
                entries,
                lambda a, b: F.when(a.getField("k") < b.getField("k"), F.lit(-1)).otherwise(
                    F.lit(1)
                ),
            )
            return F.map_from_entries(by_key)
        case Struct(fields):
            ordered = sorted(fields, key=lambda f: f.name)
            return F.when(
                value.isNotNull(),
                F.struct(
                    *(_jsonable(value.getField(f.name), f.type).alias(f.name) for f in ordered)
                ),
            )
    if base_name(type_) == "BYTES":
        return F.replace(F.base64(value), F.lit("\r\n"), F.lit(""))
    shown = time_text(type_)
    return value if shown is None else shown(value)


def _key_text(key: Column, type_: SqlType) -> Column:
    shown = time_text(type_)
    return key.cast("string") if shown is None else shown(key)


_INVALID = "Invalid JSON format:{"

FUNCTIONS = (
    scalar(
        "EXTRACTJSONFIELD",
        "The part of a JSON text that a path such as $.log.cloud or $[0] names, as text.",
        overload("(input STRING, path STRING) -> STRING", _extract),
        category=_JSON,
        examples=(
            call('{"log": {"cloud": "gcp", "id": 4}}', "$.log.cloud", gives="gcp"),
            call('{"log": {"cloud": "gcp", "id": 4}}', "$.log", gives='{"cloud":"gcp","id":4}'),
            call('{"a": [1, {"b": 12345678.5}]}', "$.a[1].b", gives="12345678.5"),
            call('{"a": 1.23450, "b": "1.0"}', "$.a", gives="1.23450"),
            call('{"a": 1.23450, "b": "1.0"}', "$.b", gives="1.0"),
            call('{"a b": {"0": null}}', '$["a b"].0', gives="null"),
            call('{"a": 1}', "$.b", gives=None),
            failing("{", "$.b", error=_INVALID),
            failing("{}", "b", error="Invalid JSON path: 'b'"),
        ),
    ),
    scalar(
        "IS_JSON_STRING",
        "Whether a text is JSON.",
        overload("(input STRING) -> BOOLEAN", _is_json),
        category=_JSON,
        examples=(
            call("[1, 2]", gives=True),
            call("abc", gives=False),
            call("", gives=False),
            call(Typed(None, "STRING"), gives=False),
        ),
    ),
    scalar(
        "JSON_ARRAY_CONTAINS",
        "Whether a JSON array has a value among its elements.",
        overload("(jsonArray STRING, val T) -> BOOLEAN", _array_contains),
        category=_JSON,
        examples=(
            call("[1, 2, 3]", 3, gives=True),
            call('["1"]', 1, gives=False),
            call("[1.5, true]", 1.5, gives=True),
            call("[1.5, true]", True, gives=True),
            call("[1.0]", 1, gives=False),
            call("[null]", None, gives=True),
            call("{", 1, gives=False),
        ),
    ),
    scalar(
        "JSON_ARRAY_LENGTH",
        "How many elements a JSON array has; null if the text is no array.",
        overload("(jsonArray STRING) -> INTEGER", _array_length),
        category=_JSON,
        examples=(
            call("[1, [1, [2]], 3]", gives=3),
            call("{}", gives=None),
            failing("{", error=_INVALID),
        ),
    ),
    scalar(
        "JSON_CONCAT",
        "JSON objects merged into one, the last value for a key counting; or arrays, and what is "
        "none as an array of one, one after the other.",
        overload(
            "(jsonStrings STRING...) -> STRING",
            lambda *values: batched(concatenate, T.StringType(), values),
        ),
        category=_JSON,
        examples=(
            call('{"a": 1}', '{"b": 2.50, "a": 3}', gives='{"a":3,"b":2.50}'),
            call("[1]", '{"a": "b"}', gives='[1,{"a":"b"}]'),
            call("[1]", None, gives=None),
            failing("[1]", "{", error=_INVALID),
        ),
    ),
    scalar(
        "JSON_ITEMS",
        "The elements of a JSON array, each as JSON.",
        overload(
            "(jsonItems STRING) -> ARRAY<STRING>",
            lambda value: batched(items, T.ArrayType(T.StringType()), (value,)),
        ),
        category=_JSON,
        examples=(
            call('[{"a": 1}, "x", 2.50]', gives=['{"a":1}', '"x"', "2.50"]),
            failing("{}", error="Invalid JSON format:{}"),
        ),
    ),
    scalar(
        "JSON_KEYS",
        "The keys of a JSON object; null if the text is no object.",
        overload("(jsonObj STRING) -> ARRAY<STRING>", _keys),
        category=_JSON,
        examples=(
            call('{"a": "abc", "b": {"c": 1}}', gives=["a", "b"]),
            call("[]", gives=None),
            failing("{", error=_INVALID),
        ),
    ),
    scalar(
        "JSON_RECORDS",
        "The keys of a JSON object and their values, as text; null if the text is no object.",
        overload("(jsonObj STRING) -> MAP<STRING, STRING>", _records),
        category=_JSON,
        examples=(
            call(
                '{"a": "abc", "b": {"c": "a"}, "d": 1, "e": null}',
                gives={"a": "abc", "b": '{"c":"a"}', "d": "1", "e": "null"},
            ),
            call("[]", gives=None),
            failing("{", error=_INVALID),
        ),
    ),
    scalar(
        "TO_JSON_STRING",
        "Any value as JSON.",
        overload("(input T) -> STRING", _to_json),
        category=_JSON,
        examples=(
            call(1, gives="1"),
            call('a"é', gives='"a\\"é"'),
            call(
                Typed({"B": 1, "A": None}, "STRUCT<B INTEGER, A STRING>"), gives='{"A":null,"B":1}'
            ),
            call({"c": 2, "a": 4}, gives='{"a":4,"c":2}'),
            call(decimal.Decimal("0.00000012"), gives="0.00000012"),
            call(b"Hi", gives='"SGk="'),
            call(Typed(18953, "DATE"), gives='"2021-11-22"'),
            call(Typed(3661001, "TIME"), gives='"01:01:01"'),
            call(Typed(1637538661001, "TIMESTAMP"), gives='"2021-11-21T23:51:01.001"'),
            call(None, gives="null"),
        ),
    ),
)
