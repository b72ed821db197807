"""Functions on arrays and maps."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

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
from headrace.functions.scalar.columns import all_given
from headrace.functions.scalar.java_text import primitive_text
from headrace.model.representation import spark_type
from headrace.model.types import Array, Map, SqlType, Struct, walk

_ARRAY, _MAP = Category.ARRAY, Category.MAP


# ------------------------------------------------------------------------------------- equality


def comparable(value: Column, type_: SqlType) -> Column:
    """The value in a form that Spark can compare: it cannot compare maps."""
    if not any(isinstance(t, Map) for t in walk(type_)):
        return value
    match type_:
        case Map(key, item):
            entries = F.transform(
                F.map_entries(value),
                lambda e: F.struct(
                    comparable(e.getField("key"), key).alias("key"),
                    comparable(e.getField("value"), item).alias("value"),
                ),
            )
            return F.array_sort(entries)
        case Array(element):
            return F.transform(value, lambda e: comparable(e, element))
        case Struct(fields):
            parts = (comparable(value.getField(f.name), f.type).alias(f.name) for f in fields)
            return F.when(value.isNotNull(), F.struct(*parts))
    return value


def _element(context: CallContext) -> SqlType:
    array = context.arg_types[0]
    return array.element if isinstance(array, Array) else array


def _holds_maps(context: CallContext) -> bool:
    return any(isinstance(t, Map) for t in walk(_element(context)))


def _contains(array: Column, value: Column, type_: SqlType) -> Column:
    sought = comparable(value, type_)
    return F.exists(array, lambda e: comparable(e, type_).eqNullSafe(sought))


def _array_contains(array: Column, value: Column, context: CallContext) -> Column:
    if context.literal(1) is not None:
        found = F.array_contains(array, value)
    else:
        found = _contains(array, value, _element(context))
    return F.coalesce(found, F.lit(False))


def _distinct(array: Column, context: CallContext) -> Column:
    return _unique(array, _element(context)) if _holds_maps(context) else F.array_distinct(array)


def _unique(array: Column, type_: SqlType) -> Column:
    """Distinct elements of a type that Spark does not compare, in order."""
    empty = F.slice(array, 1, 0)
    return F.aggregate(
        array,
        empty,
        lambda found, e: F.when(_contains(found, e, type_), found).otherwise(
            F.concat(found, F.array(e))
        ),
    )


def _set_form(
    native: Callable[[Column, Column], Column],
    with_maps: Callable[[Column, Column, SqlType], Column],
) -> Callable[..., Column]:
    def form(left: Column, right: Column, context: CallContext) -> Column:
        if not _holds_maps(context):
            return native(left, right)
        result = with_maps(left, right, _element(context))
        return F.when(all_given(left, right), result)

    return form


_except = _set_form(
    F.array_except,
    lambda left, right, t: _unique(F.filter(left, lambda e: ~_contains(right, e, t)), t),
)
_intersect = _set_form(
    F.array_intersect,
    lambda left, right, t: _unique(F.filter(left, lambda e: _contains(right, e, t)), t),
)
_union = _set_form(F.array_union, lambda left, right, t: _unique(F.concat(left, right), t))


def _concat(left: Column, right: Column) -> Column:
    return F.coalesce(F.concat(left, right), left, right)


def _remove(array: Column, victim: Column, context: CallContext) -> Column:
    type_ = _element(context)
    gone = comparable(victim, type_)
    return F.filter(array, lambda e: ~comparable(e, type_).eqNullSafe(gone))


# ------------------------------------------------------------------------------- order and cuts


def _sort(array: Column, direction: Column | None = None, *, context: CallContext) -> Column:
    up, down = F.sort_array(array, asc=True), F.sort_array(array, asc=False)
    # Spark puts nulls first when it sorts upwards.
    given = F.filter(up, lambda e: e.isNotNull())
    up = F.concat(given, F.filter(up, lambda e: e.isNull()))
    if direction is None:
        return up
    name = F.upper(direction)
    return F.when(name.isin("ASC", "ASCENDING"), up).when(name.isin("DESC", "DESCENDING"), down)


def _slice(array: Column, start: Column, end: Column) -> Column:
    first = F.coalesce(start, F.lit(1))
    last = F.coalesce(end, F.size(array))
    inside = (first >= 1) & (last <= F.size(array)) & (last >= first - 1)
    return F.when(
        inside & array.isNotNull(),
        F.slice(array, F.greatest(first, F.lit(1)), F.greatest(last - first + 1, F.lit(0))),
    )


def _join(
    array: Column, delimiter: Column | None = None, *, context: CallContext
) -> Column | Fallible:
    type_ = _element(context)
    shown = primitive_text(type_)
    if shown is None:
        filled = F.exists(array, lambda e: e.isNotNull())
        message = f"error: hit element of type {type_} which is currently not supported"
        nulls = F.transform(array, lambda e: F.lit("null"))
        return Fallible(F.when(~filled, _joined(nulls, delimiter)), F.when(filled, F.lit(message)))
    texts = F.transform(array, lambda e: F.coalesce(shown(e), F.lit("null")))
    return _joined(texts, delimiter)


def _joined(texts: Column, delimiter: Column | None) -> Column:
    if delimiter is None:
        return F.array_join(texts, ",")
    return F.call_function("array_join", texts, F.coalesce(delimiter, F.lit("")))


# ----------------------------------------------------------------------------------------- maps


def _as_map(keys: Column, values: Column) -> Fallible:
    """A missing value is null; the last of several values for a key counts."""
    pairs = F.transform(
        keys, lambda key, i: F.struct(key.alias("key"), F.get(values, i).alias("value"))
    )
    missing = F.exists(keys, lambda key: key.isNull())
    return Fallible(
        F.when(all_given(keys, values) & ~missing, F.map_from_entries(pairs)),
        F.when(values.isNotNull() & missing, F.lit("A map's key cannot be null")),
    )


def _map_union(left: Column, right: Column) -> Column:
    return F.coalesce(F.map_concat(left, right), left, right)


def _entries(map_: Column, is_sorted: Column, context: CallContext) -> Column:
    entries = F.transform(
        F.map_entries(map_),
        lambda e: F.struct(e.getField("key").alias("K"), e.getField("value").alias("V")),
    ).cast(spark_type(context.return_type))
    known = context.literal(1)
    if isinstance(known, bool):
        return _by_key(entries) if known else entries
    return F.when(is_sorted, _by_key(entries)).otherwise(entries)


def _by_key(entries: Column) -> Column:
    return F.array_sort(
        entries,
        lambda a, b: (
            F.when(a.getField("K") < b.getField("K"), F.lit(-1))
            .when(a.getField("K") > b.getField("K"), F.lit(1))
            .otherwise(F.lit(0))
        ),
    )


_ENTRY_VALUES = ("INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "STRING")

FUNCTIONS = (
    scalar(
        "ARRAY_CONCAT",
        "The elements of one array and then those of another. A null array counts for nothing.",
        overload("(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>", _concat),
        category=_ARRAY,
        examples=(
            call([1, 2], [2, 3], gives=[1, 2, 2, 3]),
            call(None, [2], gives=[2]),
        ),
    ),
    scalar(
        "ARRAY_CONTAINS",
        "Whether an array has a value among its elements.",
        overload("(array ARRAY<T>, val T) -> BOOLEAN", _array_contains),
        category=_ARRAY,
        examples=(
            call([1, 2, None], 2, gives=True),
            call(["a"], "b", gives=False),
            call([1, None], None, gives=True),
            call(Typed(None, "ARRAY<INTEGER>"), 1, gives=False),
        ),
    ),
    scalar(
        "ARRAY_DISTINCT",
        "The elements of an array, each once, in the order of their first occurrence.",
        overload("(input ARRAY<T>) -> ARRAY<T>", _distinct),
        category=_ARRAY,
        examples=(
            call([1, 1, None, 2, None], gives=[1, None, 2]),
            call([{"a": 1}, {"b": 1}, {"a": 1}], gives=[{"a": 1}, {"b": 1}]),
        ),
    ),
    scalar(
        "ARRAY_EXCEPT",
        "The distinct elements of an array that are not in another.",
        overload("(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>", _except),
        category=_ARRAY,
        examples=(call([1, 2, 3, 1, 2], [2, 3], gives=[1]),),
    ),
    scalar(
        "ARRAY_INTERSECT",
        "The distinct elements of an array that are also in another.",
        overload("(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>", _intersect),
        category=_ARRAY,
        examples=(call([1, 2, 3, 1, 2], [2, 1], gives=[1, 2]),),
    ),
    scalar(
        "ARRAY_JOIN",
        "The elements of an array as text, with a delimiter (a comma) between them.",
        overload("(array ARRAY<T>) -> STRING", _join),
        overload("(array ARRAY<T>, delimiter STRING) -> STRING", _join),
        category=_ARRAY,
        examples=(
            call([1, None, 3], gives="1,null,3"),
            call([True, False], "; ", gives="true; false"),
            call([1.0, 1e10], None, gives="1.01.0E10"),
            failing(
                [[1]],
                error="error: hit element of type ARRAY<INTEGER> which is currently not supported",
            ),
        ),
    ),
    scalar(
        "ARRAY_LENGTH",
        "How many elements an array has.",
        overload("(array ARRAY<T>) -> INTEGER", F.array_size),
        category=_ARRAY,
        examples=(call([1, None], gives=2), call(Typed(None, "ARRAY<STRING>"), gives=None)),
    ),
    scalar(
        "ARRAY_MAX",
        "The greatest element of an array that is not null.",
        overload("(input ARRAY<T>) -> T", F.array_max),
        category=_ARRAY,
        examples=(call([-1, 2, None, 0], gives=2), call(["Foo", "baz"], gives="baz")),
    ),
    scalar(
        "ARRAY_MIN",
        "The least element of an array that is not null.",
        overload("(input ARRAY<T>) -> T", F.array_min),
        category=_ARRAY,
        examples=(call([-1, 2, None, 0], gives=-1), call([True, False], gives=False)),
    ),
    scalar(
        "ARRAY_REMOVE",
        "An array without the elements that equal a value.",
        overload("(array ARRAY<T>, victim T) -> ARRAY<T>", _remove),
        category=_ARRAY,
        examples=(
            call([1, 2, None, 2], 2, gives=[1, None]),
            call([1, None], None, gives=[1]),
        ),
    ),
    scalar(
        "ARRAY_SORT",
        "An array in order, ascending (ASC) or descending (DESC); nulls come last.",
        overload("(input ARRAY<T>) -> ARRAY<T>", _sort),
        overload("(input ARRAY<T>, direction STRING) -> ARRAY<T>", _sort),
        category=_ARRAY,
        examples=(
            call([3, None, 1, 2], gives=[1, 2, 3, None]),
            call([3, None, 1, 2], "desc", gives=[3, 2, 1, None]),
            call([3, 1], "sideways", gives=None),
        ),
    ),
    scalar(
        "ARRAY_UNION",
        "The distinct elements of two arrays.",
        overload("(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>", _union),
        category=_ARRAY,
        examples=(call([1, 2, 1], [4, None, 1], gives=[1, 2, 4, None]),),
    ),
    scalar(
        "AS_MAP",
        "A map of keys and values that are given in two arrays.",
        overload("(keys ARRAY<STRING>, values ARRAY<T>) -> MAP<STRING, T>", _as_map),
        category=_MAP,
        examples=(
            call(["a", "b", "a"], [1, 2, 3], gives={"a": 3, "b": 2}),
            call(["a", "b"], [1], gives={"a": 1, "b": None}),
            failing(["a", None], [1], error="A map's key cannot be null"),
        ),
    ),
    scalar(
        "ENTRIES",
        "The entries of a map as an array of structs of K and V, in the order of the keys if so "
        "wanted.",
        *(
            overload(
                f"(map MAP<STRING, {t}>, sorted BOOLEAN!) -> ARRAY<STRUCT<K STRING, V {t}>>",
                _entries,
            )
            for t in _ENTRY_VALUES
        ),
        category=_MAP,
        examples=(call({"b": 2, "a": 1}, True, gives=[{"K": "a", "V": 1}, {"K": "b", "V": 2}]),),
    ),
    scalar(
        "MAP_KEYS",
        "The keys of a map.",
        overload("(input MAP<STRING, T>) -> ARRAY<STRING>", F.map_keys),
        category=_MAP,
        examples=(call({"a": 1, "b": 2}, gives=["a", "b"]),),
    ),
    scalar(
        "MAP_UNION",
        "All entries of two maps; where both have a key, the second one's.",
        overload("(map1 MAP<STRING, T>, map2 MAP<STRING, T>) -> MAP<STRING, T>", _map_union),
        category=_MAP,
        examples=(
            call({"a": 1, "b": 2}, {"a": 5}, gives={"a": 5, "b": 2}),
            call(None, {"a": 5}, gives={"a": 5}),
        ),
    ),
    scalar(
        "MAP_VALUES",
        "The values of a map.",
        overload("(input MAP<STRING, T>) -> ARRAY<T>", F.map_values),
        category=_MAP,
        examples=(call({"a": 1, "b": 2}, gives=[1, 2]),),
    ),
    scalar(
        "SLICE",
        "The elements of an array from one index to another, both from 1 and both included.",
        overload("(in ARRAY<T>, from INTEGER, to INTEGER) -> ARRAY<T>", _slice),
        category=_ARRAY,
        examples=(
            call([1, 2, 3, 4], 2, 3, gives=[2, 3]),
            call([1, 2, 3], None, 2, gives=[1, 2]),
            call([1, 2, 3], 2, 9, gives=None),
        ),
    ),
)
