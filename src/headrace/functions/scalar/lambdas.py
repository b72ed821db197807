"""Functions that take lambdas: TRANSFORM, FILTER and REDUCE, on arrays and maps.

A lambda whose body can fail gives its value and its failure together, as a struct, for each
element; the first failure is the failure of the call.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.declare.declaration import (
    CallContext,
    Category,
    Fallible,
    LambdaArgument,
    call,
    overload,
    scalar,
)
from headrace.model.representation import spark_type
from headrace.model.types import BIGINT, BOOLEAN, INTEGER, STRING

Body = Callable[..., Column | Fallible]

_NULL_KEY = "A map's key cannot be null"


def _pair(result: Column | Fallible) -> Column:
    """Value and failure of one application, as a struct of `v` and `e`."""
    if isinstance(result, Fallible) and result.error is not None:
        return F.struct(result.value.alias("v"), result.error.alias("e"))
    value = result.value if isinstance(result, Fallible) else result
    return F.struct(value.alias("v"), F.lit(None).cast("string").alias("e"))


def _fails(result: Column | Fallible) -> bool:
    return isinstance(result, Fallible) and result.error is not None


def _value(result: Column | Fallible) -> Column:
    return result.value if isinstance(result, Fallible) else result


def _probe(body: Body, arity: int) -> bool:
    """Whether the body can fail, which it only says when it is built."""
    return _fails(body(*(F.lit(None) for _ in range(arity))))


def _first_failure(pairs: Column, error: Callable[[Column], Column]) -> Column:
    failures = F.filter(F.transform(pairs, error), lambda e: e.isNotNull())
    return F.get(failures, F.lit(0))


def _over_array(array: Column, body: Body) -> Fallible:
    """The body's values for all elements, as an array."""
    if not _probe(body, 1):
        return Fallible(F.transform(array, lambda x: _value(body(x))))
    pairs = F.transform(array, lambda x: _pair(body(x)))
    failure = _first_failure(pairs, lambda p: p.getField("e"))
    values = F.transform(pairs, lambda p: p.getField("v"))
    return Fallible(F.when(failure.isNull(), values), failure)


def _transform_array(array: Column, body: Body) -> Fallible:
    return _over_array(array, body)


def _transform_map(map_: Column, key_body: Body, value_body: Body) -> Fallible:
    def entry(e: Column) -> tuple[Column, Column]:
        return e.getField("key"), e.getField("value")

    entries = F.map_entries(map_)
    keys = _over_array(entries, lambda e: key_body(*entry(e)))
    values = _over_array(entries, lambda e: value_body(*entry(e)))
    no_key = F.exists(keys.value, lambda k: k.isNull())
    repeated = F.array_size(F.array_distinct(keys.value)) < F.array_size(keys.value)
    sound = ~F.coalesce(no_key, F.lit(False)) & ~F.coalesce(repeated, F.lit(False))
    found = F.when(sound, F.map_from_arrays(keys.value, values.value))
    errors = [e for e in (keys.error, values.error) if e is not None]
    # As in Java, where two entries must not become one.
    ours = F.when(no_key, F.lit(_NULL_KEY)).when(repeated, F.lit("Duplicate key"))
    return Fallible(found, F.coalesce(*errors, ours))


def _filter_array(array: Column, body: Body) -> Fallible:
    if not _probe(body, 1):
        kept = F.filter(array, lambda x: _value(body(x)))
        return _null_is_failure(kept, F.exists(array, lambda x: _value(body(x)).isNull()))
    pairs = F.transform(array, lambda x: F.struct(x.alias("x"), _pair(body(x)).alias("p")))
    failure = _first_failure(pairs, lambda p: p.getField("p").getField("e"))
    kept = F.filter(pairs, lambda p: p.getField("p").getField("v"))
    return Fallible(F.when(failure.isNull(), F.transform(kept, lambda p: p.getField("x"))), failure)


def _filter_map(map_: Column, body: Body) -> Fallible:
    if not _probe(body, 2):
        kept = F.map_filter(map_, lambda k, v: _value(body(k, v)))
        unknown = F.exists(
            F.map_entries(map_),
            lambda e: _value(body(e.getField("key"), e.getField("value"))).isNull(),
        )
        return _null_is_failure(kept, unknown)
    filtered = _filter_array(
        F.map_entries(map_), lambda e: body(e.getField("key"), e.getField("value"))
    )
    return Fallible(F.map_from_entries(filtered.value), filtered.error)


def _null_is_failure(value: Column, unknown: Column) -> Fallible:
    """A predicate that is neither true nor false stops Java."""
    error = F.when(unknown, F.lit("A lambda's condition was null"))
    return Fallible(F.when(error.isNull(), value), error)


def _reduce(
    elements: Column, state: Column, body: Callable[[Column, Column], Column | Fallible], type_: str
) -> Fallible:
    initial = state.cast(type_)

    def step(s: Column, x: Column) -> Column | Fallible:
        result = body(s, x)
        if isinstance(result, Fallible):
            return Fallible(result.value.cast(type_), result.error)
        return result.cast(type_)

    if not _probe(step, 2):
        folded = F.aggregate(elements, initial, lambda s, x: _value(step(s, x)))
        return Fallible(
            F.when(state.isNotNull(), F.coalesce(folded, _untouched(elements, initial)))
        )

    def next_pair(p: Column, x: Column) -> Column:
        return F.when(p.getField("e").isNotNull(), p).otherwise(_pair(step(p.getField("v"), x)))

    pair = F.aggregate(elements, _pair(initial), next_pair)
    value = F.coalesce(pair.getField("v"), _untouched(elements, initial))
    failure = F.when(state.isNotNull(), pair.getField("e"))
    return Fallible(F.when(state.isNotNull() & failure.isNull(), value), failure)


def _untouched(elements: Column, state: Column) -> Column:
    """Without a collection the state stays what it was."""
    return F.when(elements.isNull(), state)


def _reduce_array(array: Column, state: Column, body: Body, context: CallContext) -> Fallible:
    type_ = spark_type(context.return_type).simpleString()
    return _reduce(array, state, body, type_)


def _reduce_map(map_: Column, state: Column, body: Body, context: CallContext) -> Fallible:
    type_ = spark_type(context.return_type).simpleString()
    return _reduce(
        F.map_entries(map_),
        state,
        lambda s, e: body(s, e.getField("key"), e.getField("value")),
        type_,
    )


_LAMBDA = Category.LAMBDA


FUNCTIONS = (
    scalar(
        "FILTER",
        "The elements of an array, or the entries of a map, for which a function gives true.",
        overload("(array ARRAY<T>, function LAMBDA (T) => BOOLEAN) -> ARRAY<T>", _filter_array),
        overload("(map MAP<K, V>, biFunction LAMBDA (K, V) => BOOLEAN) -> MAP<K, V>", _filter_map),
        category=_LAMBDA,
        examples=(
            call([1, 5, 3], LambdaArgument("x => x > 2", lambda x: x > 2, BOOLEAN), gives=[5, 3]),
            call(
                {"a": 1, "b": 2},
                LambdaArgument("(k, v) => v > 1", lambda k, v: v > 1, BOOLEAN),
                gives={"b": 2},
            ),
        ),
    ),
    scalar(
        "REDUCE",
        "What a state has become after a function took it, and each element of an array or each "
        "entry of a map, to a new one.",
        overload(
            "(list ARRAY<T>, initialState S, biFunction LAMBDA (S, T) => S) -> S", _reduce_array
        ),
        overload(
            "(map MAP<K, V>, initialState S, triFunction LAMBDA (S, K, V) => S) -> S", _reduce_map
        ),
        category=_LAMBDA,
        examples=(
            call(
                [1, 2, 3],
                10,
                LambdaArgument("(s, x) => s + x", lambda s, x: s + x, INTEGER),
                gives=16,
            ),
            call(
                {"a": 1, "b": 2},
                10,
                LambdaArgument("(s, k, v) => s + v", lambda s, k, v: s + v, INTEGER),
                gives=13,
            ),
            call(None, 7, LambdaArgument("(s, x) => s", lambda s, x: s, INTEGER), gives=7),
        ),
    ),
    scalar(
        "TRANSFORM",
        "The results of a function for each element of an array, or of two for each entry of a "
        "map: the new key and the new value.",
        overload("(array ARRAY<T>, function LAMBDA (T) => R) -> ARRAY<R>", _transform_array),
        overload(
            "(map MAP<K, V>, biFunction1 LAMBDA (K, V) => R, biFunction2 LAMBDA (K, V) => T) "
            "-> MAP<R, T>",
            _transform_map,
        ),
        category=_LAMBDA,
        examples=(
            call([1, 2], LambdaArgument("x => x * 10", lambda x: x * 10, INTEGER), gives=[10, 20]),
            call(
                {"a": 1},
                LambdaArgument("(k, v) => UCASE(k)", lambda k, v: F.upper(k), STRING),
                LambdaArgument(
                    "(k, v) => CAST(v AS BIGINT)", lambda k, v: v.cast("bigint"), BIGINT
                ),
                gives={"A": 1},
            ),
        ),
    ),
)
