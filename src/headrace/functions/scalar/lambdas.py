"""Functions that take lambdas: TRANSFORM, FILTER and REDUCE, on arrays and maps.

A lambda whose body can fail gives an outcome for each element: a struct of its value, its failure
and the failure of a part that left the value whole. The first failure is the failure of the call,
which is null then, whatever became of the other elements.
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
from headrace.model.fallible import coalesce_errors
from headrace.model.representation import spark_type
from headrace.model.types import BIGINT, BOOLEAN, INTEGER, STRING, Map

Body = Callable[..., Column | Fallible]

_VALUE, _ERROR, _NOTE = "v", "e", "n"
_NULL_VALUE = "A map's value cannot be null"  # where Java collects entries to a map


def _outcome(result: Column | Fallible) -> Column:
    """One application of a lambda, as a struct."""
    made, none = _fallible(result), F.lit(None).cast("string")
    return F.struct(
        made.value.alias(_VALUE),
        (none if made.error is None else made.error).alias(_ERROR),
        (none if made.note is None else made.note).alias(_NOTE),
    )


def _fallible(result: Column | Fallible) -> Fallible:
    return result if isinstance(result, Fallible) else Fallible(result)


def _shape(body: Body, arity: int) -> Fallible:
    """The body on no values: whether it, or a part of it, can fail only shows when it is built."""
    return _fallible(body(*(F.lit(None) for _ in range(arity))))


def _is_sure(shape: Fallible) -> bool:
    return shape.error is None and shape.note is None


def _once(made: Column, then: Callable[[Column], Column]) -> Column:
    """What comes of a column that is worked out once, however often it is named."""
    return F.get(F.transform(F.array(made), then), F.lit(0))


def _first(outcomes: Column, field: str) -> Column:
    texts = F.transform(outcomes, lambda o: o.getField(field))
    return F.get(F.filter(texts, lambda text: text.isNotNull()), F.lit(0))


def _only_if_sound(value: Column, error: Column, note: Column | None) -> Column:
    """The outcome of a call: no value where it failed."""
    return _outcome(Fallible(F.when(error.isNull(), value), error, note))


def _answer(outcome: Column, shape: Fallible) -> Fallible:
    """The parts of an outcome. Each names the whole, so that there should be few."""
    note = None if shape.note is None else outcome.getField(_NOTE)
    return Fallible(outcome.getField(_VALUE), outcome.getField(_ERROR), note)


def _transform_array(array: Column, body: Body) -> Fallible:
    shape = _shape(body, 1)
    if _is_sure(shape):
        return Fallible(F.transform(array, lambda x: _fallible(body(x)).value))

    def together(outcomes: Column) -> Column:
        values = F.transform(outcomes, lambda o: o.getField(_VALUE))
        note = None if shape.note is None else _first(outcomes, _NOTE)
        return _only_if_sound(values, _first(outcomes, _ERROR), note)

    return _answer(_once(F.transform(array, lambda x: _outcome(body(x))), together), shape)


def _transform_map(
    map_: Column, key_body: Body, value_body: Body, context: CallContext
) -> Fallible:
    assert isinstance(context.return_type, Map)
    texts = context.return_type.key == STRING

    def entry(old: Column) -> Fallible:
        arguments = old.getField("key"), old.getField("value")
        key, value = _fallible(key_body(*arguments)), _fallible(value_body(*arguments))
        # Spark knows no null keys; a text says what all formats write for one.
        name = F.coalesce(key.value, F.lit("null")) if texts else key.value
        new = F.struct(name.alias("key"), value.value.alias("value"))
        no_key = None if texts else F.when(key.value.isNull(), F.lit("A map's key cannot be null"))
        no_value = F.when(value.value.isNull(), F.lit(_NULL_VALUE))
        error = coalesce_errors(key.error, no_key, value.error, no_value)
        return Fallible(new, error, coalesce_errors(key.note, value.note))

    def as_map(entries: Column) -> Column:
        keys = F.transform(entries, lambda e: e.getField("key"))
        # As in Java, where two entries must not become one.
        repeated = F.array_size(F.array_distinct(keys)) < F.array_size(keys)
        found = F.when(~repeated, F.map_from_entries(entries))
        return _outcome(Fallible(found, F.when(repeated, F.lit("Duplicate key"))))

    entries = _transform_array(F.map_entries(map_), entry)
    made = _once(entries.value, as_map)
    error = coalesce_errors(entries.error, made.getField(_ERROR))
    return Fallible(made.getField(_VALUE), error, entries.note)


def _filter_array(array: Column, body: Body) -> Fallible:
    """A condition that is neither true nor false is a failure: it stops Java."""
    reason = "A lambda's condition cannot be null"
    if _is_sure(_shape(body, 1)):
        unknown = F.exists(array, lambda x: _fallible(body(x)).value.isNull())
        error = F.when(unknown, F.lit(reason))
        found = F.filter(array, lambda x: _fallible(body(x)).value)
        return Fallible(F.when(error.isNull(), found), error)

    def judged(x: Column) -> Fallible:
        verdict = _fallible(body(x))
        unknown = F.when(verdict.value.isNull(), F.lit(reason))
        kept = F.struct(x.alias("x"), verdict.value.alias("kept"))
        return Fallible(kept, coalesce_errors(verdict.error, unknown), verdict.note)

    every = _transform_array(array, judged)
    kept = F.filter(every.value, lambda x: x.getField("kept"))
    return Fallible(F.transform(kept, lambda x: x.getField("x")), every.error, every.note)


def _filter_map(map_: Column, body: Body) -> Fallible:
    def kept(entry: Column) -> Fallible:
        verdict = _fallible(body(entry.getField("key"), entry.getField("value")))
        no_value = F.when(verdict.value & entry.getField("value").isNull(), F.lit(_NULL_VALUE))
        return Fallible(verdict.value, coalesce_errors(verdict.error, no_value), verdict.note)

    entries = _filter_array(F.map_entries(map_), kept)
    return Fallible(F.map_from_entries(entries.value), entries.error, entries.note)


def _reduce(elements: Column, state: Column, body: Body, context: CallContext) -> Fallible:
    type_ = spark_type(context.return_type).simpleString()
    initial = state.cast(type_)

    def step(s: Column, x: Column) -> Fallible:
        made = _fallible(body(s, x))
        return Fallible(made.value.cast(type_), made.error, made.note)

    def next_outcome(last: Column, x: Column) -> Column:
        made = step(last.getField(_VALUE), x)
        noted = coalesce_errors(last.getField(_NOTE), made.note)
        new = _outcome(Fallible(made.value, made.error, noted))
        return F.when(last.getField(_ERROR).isNotNull(), last).otherwise(new)

    # Without a collection the state stays what it was.
    elements = F.when(state.isNotNull(), F.coalesce(elements, F.array()))
    shape = _shape(step, 2)
    if _is_sure(shape):
        return Fallible(F.aggregate(elements, initial, lambda s, x: step(s, x).value))

    def finished(last: Column) -> Column:
        return _only_if_sound(*(last.getField(part) for part in (_VALUE, _ERROR, _NOTE)))

    return _answer(F.aggregate(elements, _outcome(initial), next_outcome, finished), shape)


def _reduce_map(map_: Column, state: Column, body: Body, context: CallContext) -> Fallible:
    def of_entry(s: Column, entry: Column) -> Column | Fallible:
        return body(s, entry.getField("key"), entry.getField("value"))

    entries = F.map_entries(map_)
    type_ = context.arg_types[0]
    if isinstance(type_, Map) and type_.key == STRING:
        entries = _once(entries, _as_java_visits)
    return _reduce(entries, state, of_entry, context)


def _as_java_visits(entries: Column) -> Column:
    """Entries in the order of a Java hash map that was made for as many, as of a JSON object.

    They lie in its buckets as they came. There are so many buckets that three of four suffice, and
    a power of two: the last bits of a key's hash say which is its.
    """
    least = F.floor((F.size(entries) * 4 + 2) / 3).cast("int")
    last = F.pow(F.lit(2), F.length(F.bin(least - 1))).cast("int") - 1

    def place(entry: Column, index: Column) -> Column:
        code = _java_hash(entry.getField("key"))
        bucket = code.bitwiseXOR(F.shiftrightunsigned(code, 16)).bitwiseAND(last)
        return F.struct(bucket.alias("bucket"), index.alias("index"))

    places = F.array_sort(F.transform(entries, place))
    return F.transform(places, lambda p: F.get(entries, p.getField("index")))


def _java_hash(text: Column) -> Column:
    """The hash of a text in Java, which counts a character beyond the 16 bits as two."""

    def add(code: Column, character: Column) -> Column:
        point = F.ascii(character)
        beyond = point - 0x10000
        two = (code * 31 + F.shiftright(beyond, 10) + 0xD800) * 31
        two = two + beyond.bitwiseAND(F.lit(0x3FF)) + 0xDC00
        return F.when(beyond >= 0, two).otherwise(code * 31 + point)

    return F.aggregate(F.split(text, ""), F.lit(0), add)


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
        "entry of a map, to a new one. The entries come in the order of a Java hash map.",
        overload("(list ARRAY<T>, initialState S, biFunction LAMBDA (S, T) => S) -> S", _reduce),
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
