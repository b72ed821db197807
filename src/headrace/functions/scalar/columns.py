"""Spark expressions that many functions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.declare.declaration import CallContext, Fallible
from headrace.model.types import SqlType

# More than this many elements or characters made from a few bytes of input is a mistake, and one
# that would take the whole executor with it.
LARGEST = 16_000_000
# What is longer than this does not exist.
LONGEST = 2**31 - 1


# What text arguments may name, in lower case.
Choices = dict[tuple[str, ...], Column]


def identity(value: Column) -> Column:
    return value


def same_as(index: int) -> Callable[[Sequence[SqlType]], SqlType]:
    """A return type that is the type of an argument."""
    return lambda types: types[index]


def text(*parts: Column | str) -> Column:
    """The parts in a row, nulls as `null`: for messages."""
    return F.concat(
        *(
            F.lit(p) if isinstance(p, str) else F.coalesce(p.cast("string"), F.lit("null"))
            for p in parts
        )
    )


def all_given(*columns: Column) -> Column:
    return reduce(and_, (c.isNotNull() for c in columns))


def fails_when(condition: Column, message: Column | str, value: Column) -> Fallible:
    """`value`, unless the condition holds."""
    said = F.lit(message) if isinstance(message, str) else message
    return Fallible(F.when(~F.coalesce(condition, F.lit(False)), value), F.when(condition, said))


def checked(value: Column, message: Column | str, *args: Column) -> Fallible:
    """A value that is null although no argument is, is a failure."""
    said = F.lit(message) if isinstance(message, str) else message
    return Fallible(value, F.when(all_given(*args) & value.isNull(), said))


def by_integer(
    context: CallContext, index: int, column: Column, choices: range, form: Callable[[int], Column]
) -> Column:
    """A form that needs to know an integer argument when the query is made.

    An argument that is no constant becomes a choice among all that make a difference: values
    beyond the range do what its ends do.
    """
    known = context.literal(index)
    if isinstance(known, int):
        return form(min(max(known, choices[0]), choices[-1]))
    cases = F.when(column <= choices[0], form(choices[0]))
    for choice in choices[1:-1]:
        cases = cases.when(column == choice, form(choice))
    return cases.when(column >= choices[-1], form(choices[-1]))


def by_text(
    context: CallContext,
    indexes: Sequence[int],
    columns: Sequence[Column],
    choices: Choices,
) -> Column:
    """The choice that text arguments name, in any case; null where they name none."""
    known = [context.literal(i) for i in indexes]
    if all(isinstance(k, str) for k in known):
        return choices.get(tuple(str(k).lower() for k in known), F.lit(None))
    given = [F.lower(c) for c in columns]
    cases = None
    for names, value in choices.items():
        here = reduce(and_, (g == n for g, n in zip(given, names, strict=True)))
        cases = F.when(here, value) if cases is None else cases.when(here, value)
    return F.lit(None) if cases is None else cases


# ------------------------------------------------------------------------------ text as Java's


def is_ascii(value: Column) -> Column:
    """Whether characters, bytes and UTF-16 units of a text are all the same in number."""
    return F.length(value) == F.octet_length(value)


def utf16_length(value: Column) -> Column:
    """Java's length: a character beyond the basic plane counts twice."""
    return F.when(is_ascii(value), F.length(value)).otherwise(
        (F.octet_length(F.encode(value, "UTF-16BE")) / 2).cast("int")
    )


def utf16_slice(value: Column, start: Column, length: Column) -> Column:
    """Java's `substring`: from `start` (from 0) so many UTF-16 units."""
    return F.when(~is_ascii(value), utf16_cut(value, start, length)).otherwise(
        F.substring(value, start + 1, length)
    )


def utf16_cut(value: Column, start: Column, length: Column | None) -> Column:
    """Java's `substring` of a text that is not all ASCII; without a length all that follows.

    Half a character at an end becomes `?`, as it does in Java when such a string is written.
    """
    head = _utf16_start(value, start)
    tail = F.substring(value, F.length(head) + 1, LONGEST)
    half = F.when(value.startswith(head), F.lit("")).otherwise(F.lit("?"))
    rest = F.concat(half, tail)
    return rest if length is None else _utf16_start(rest, length)


def _utf16_start(value: Column, length: Column) -> Column:
    """Java's formatter cuts texts as Java does, and Spark has it in its generated code."""
    cut = F.concat(F.lit("%."), length.cast("string"), F.lit("s"))
    return F.call_function("format_string", cut, value)


def utf16_text(units: Column) -> Column:
    """The text of UTF-16 units that were cut out of some.

    Half a character at an end becomes `?`, as it does in Java when such a string is written.
    """
    half, nothing = F.lit(bytearray(b"\0?")), F.lit(bytearray())
    cut_first = F.hex(F.substring(units, 1, 1)).between("DC", "DF")
    cut_last = F.hex(F.substring(units, -2, 1)).between("D8", "DB")
    start = F.when(cut_first, 3).otherwise(1)
    count = F.octet_length(units) + 1 - start - F.when(cut_last, 2).otherwise(0)
    return F.decode(
        F.concat(
            F.when(cut_first, half).otherwise(nothing),
            F.substring(units, start, count),
            F.when(cut_last, half).otherwise(nothing),
        ),
        "UTF-16BE",
    )


def quoted(value: Column) -> Column:
    """A regular expression that matches just this text."""
    return F.concat(F.lit(r"\Q"), F.replace(value, F.lit(r"\E"), F.lit(r"\E\\E\Q")), F.lit(r"\E"))


def java() -> Any:
    """The JVM of the running session, for what is asked once when a query is made."""
    context = SparkContext._active_spark_context
    assert context is not None, "functions are lowered within a session"
    return context._jvm
