"""Regular expressions: Java's, which are Spark's too.

Spark raises on an expression that is none, on a group that is not there and on a replacement that
refers to one, and a raise would stop the query. So a constant expression is looked at by Java when
the query is made, and any other is tried by reflection, row by row, before Spark sees it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.columns import all_given, java, text
from headrace.functions.declare import (
    CallContext,
    Category,
    Fallible,
    call,
    failing,
    overload,
    scalar,
)

_NAMED = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")


@dataclass(frozen=True)
class _Regex:
    """An expression that can be given to Spark where `valid` holds.

    `groups` is how many groups it has, as a column; `highest` how many it has at least.
    """

    column: Column
    valid: Column
    groups: Column
    highest: int
    names: tuple[str, ...] = ()


def _regex(column: Column, known: object) -> _Regex:
    if isinstance(known, str):
        count = _group_count(known)
        return _Regex(
            column,
            F.lit(count is not None),
            F.lit(count or 0),
            count or 0,
            tuple(_NAMED.findall(known)),
        )
    # Empty groups at the end make sure that small group numbers exist, whatever the expression.
    extended = F.concat(F.lit("(?:"), column, F.lit(")" + "()" * 9))
    compiled = F.try_reflect(F.lit("java.util.regex.Pattern"), F.lit("compile"), extended)
    return _Regex(extended, compiled.isNotNull(), _counted(column), 9)


def _group_count(pattern: str) -> int | None:
    """How many groups a constant expression has; None if it is not one."""
    try:
        return int(java().java.util.regex.Pattern.compile(pattern).matcher("").groupCount())
    except PySparkException:
        return None


def _counted(pattern: Column) -> Column:
    """How many groups an expression opens, going by its look."""
    bare = F.regexp_replace(pattern, r"\\.|\[[^\]]*\]", "")
    opened = F.regexp_replace(bare, r"\((?!\?)|\(\?<(?![=!])", "\u0001")
    return F.length(opened) - F.length(F.replace(opened, F.lit("\u0001"), F.lit("")))


def _invalid(pattern: Column) -> Column:
    return text("Invalid regular expression pattern: ", pattern)


def _match(
    pattern: Column, value: Column, group: Column | None, context: CallContext, every: bool
) -> Fallible:
    """The first match, or every match, of a group (0: of the whole)."""
    known, number = context.literal(0), 0 if group is None else context.literal(2)
    regex = _regex(pattern, known)
    index = F.lit(0) if group is None else group
    if every:
        found = F.regexp_extract_all(value, regex.column, index)
    else:
        found = _first(value, regex.column, index)
    if isinstance(known, str) and isinstance(number, int):
        count = _group_count(known)
        if count is not None and 0 <= number <= count:
            return Fallible(found)
    there = index.between(F.lit(0), F.least(regex.groups, F.lit(regex.highest)))
    given = all_given(pattern, value, index)
    error = F.when(
        given,
        F.when(~regex.valid, _invalid(pattern)).when(index < 0, text("No group ", index)),
    )
    return Fallible(F.when(given & regex.valid & there, found), error)


def _first(value: Column, pattern: Column, group: Column) -> Column:
    """Null where nothing matches: Spark has an empty text then, as it has for an empty match."""
    found = F.call_function("regexp_extract", value, pattern, group)
    # Joined with the empty text, because what is in every branch Spark works out just once.
    empty = F.concat(found, F.when(F.rlike(value, pattern), F.lit("")))
    return F.when(found == "", empty).otherwise(found)


def _extract(
    pattern: Column, value: Column, group: Column | None = None, *, context: CallContext
) -> Fallible:
    return _match(pattern, value, group, context, every=False)


def _extract_all(
    pattern: Column, value: Column, group: Column | None = None, *, context: CallContext
) -> Fallible:
    return _match(pattern, value, group, context, every=True)


def _replace(value: Column, pattern: Column, new: Column, context: CallContext) -> Fallible:
    regex = _regex(pattern, context.literal(1))
    given = all_given(value, pattern, new)
    digits = f"0-{min(regex.highest, 9)}"
    names = "".join(rf"|\$\{{{name}\}}" for name in regex.names)
    # Possessive: Java goes back over nothing, and so needs no stack that a long text could exhaust.
    sound = new.rlike(rf"^(?s)(?:[^$\\]|\\.|\$[{digits}]{names})*+$")
    return Fallible(
        F.when(given & regex.valid & sound, F.regexp_replace(value, regex.column, new)),
        F.when(
            given,
            F.when(~regex.valid, _invalid(pattern)).when(
                ~sound, text("Illegal group reference in replacement: ", new)
            ),
        ),
    )


def _split(value: Column, pattern: Column, context: CallContext) -> Fallible:
    regex = _regex(pattern, context.literal(1))
    given = all_given(value, pattern)
    pieces = F.split(value, regex.column, -1)
    # An expression that matches nothing at all leaves no empty pieces at the end.
    last = F.array_max(F.transform(pieces, lambda p, i: F.when(p != "", i + 1).otherwise(F.lit(0))))
    trimmed = F.when(value == "", F.array(F.lit(""))).otherwise(F.slice(pieces, F.lit(1), last))
    known = context.literal(1)
    if known == "":
        split = trimmed
    else:
        split = F.when(F.rlike(F.lit(""), regex.column), trimmed).otherwise(pieces)
    return Fallible(
        F.when(given & regex.valid, split), F.when(given & ~regex.valid, _invalid(pattern))
    )


_REGEX = Category.REGULAR_EXPRESSION
_BROKEN = "Invalid regular expression pattern: ("

FUNCTIONS = (
    scalar(
        "REGEXP_EXTRACT",
        "The first part of a text that matches a regular expression, or what one of its groups "
        "matched there.",
        overload("(pattern STRING, input STRING) -> STRING", _extract),
        overload("(pattern STRING, input STRING, group INTEGER) -> STRING", _extract),
        category=_REGEX,
        examples=(
            call("(.*) (.*)", "hello there", 2, gives="there"),
            call("e.", "test message", gives="es"),
            call("x.", "test", gives=None),
            call("(e).", "test", 3, gives=None),
            failing("(", "test", error=_BROKEN),
        ),
    ),
    scalar(
        "REGEXP_EXTRACT_ALL",
        "All parts of a text that match a regular expression, or what one of its groups matched.",
        overload("(pattern STRING, input STRING) -> ARRAY<STRING>", _extract_all),
        overload("(pattern STRING, input STRING, group INTEGER) -> ARRAY<STRING>", _extract_all),
        category=_REGEX,
        examples=(
            call(r"(\w+) (\w+)", "hello there nice day", 2, gives=["there", "day"]),
            call("x", "test", gives=[]),
            failing("(", "test", error=_BROKEN),
        ),
    ),
    scalar(
        "REGEXP_REPLACE",
        "A text with every match of a regular expression replaced; $1 in the replacement is what "
        "the first group matched.",
        overload("(str STRING, regexp STRING, newStr STRING) -> STRING", _replace),
        category=_REGEX,
        examples=(
            call("baababaa", "(ab)+", "<$1>", gives="ba<ab>aa"),
            failing("test", "(", "x", error=_BROKEN),
            failing("test", "t", "$", error="Illegal group reference in replacement: $"),
        ),
    ),
    scalar(
        "REGEXP_SPLIT_TO_ARRAY",
        "The pieces of a text between the matches of a regular expression.",
        overload("(string STRING, regexp STRING) -> ARRAY<STRING>", _split),
        category=_REGEX,
        examples=(
            call("xAyBz", "[AB]", gives=["x", "y", "z"]),
            call("AxB", "[AB]", gives=["", "x", ""]),
            call("abc", "", gives=["a", "b", "c"]),
            failing("test", "(", error=_BROKEN),
        ),
    ),
)
