"""Functions on regular expressions, in Java's syntax.

Spark raises on an expression that is none, on a group that is not there and on a replacement that
refers to one, and a raise would stop the query. And with some expressions Java does not come to an
end (docs/design/0005-regular-expressions.md). So Spark is given the constant ones for which it is
known that all is well, because it is quick with them; the others are for Java functions of ours,
which count their steps and raise nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.bounded import (
    BOUNDED_EXTRACT,
    BOUNDED_EXTRACT_ALL,
    BOUNDED_REPLACE,
    BOUNDED_SPLIT,
    bounded,
)
from headrace.functions.declare.declaration import (
    CallContext,
    Category,
    Fallible,
    call,
    failing,
    overload,
    scalar,
)
from headrace.functions.scalar.columns import all_given, java, text

_NAMED = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")

# An expression with which Java never goes back far: at most one of its letters or classes may be
# there any number of times, and that is the last, or the expression can match at one place only.
_LETTER = r"(?:\\[^0-9A-Za-z]|\\[dDsSwWtnrf]|\[\^?(?:[^\[\]\\&]|\\[^QE])++\]|[^\\\[\](){}*+?|])"
_GROUP = r"(?:\((?:\?:|\?<[a-zA-Z][a-zA-Z0-9]*>)?|\)(?![*+?{]))"
_FIXED = rf"(?:{_LETTER}(?:\{{[0-9]{{1,3}}\}})?(?![*+?{{])|{_GROUP})*+"
_REPEATED = rf"{_LETTER}[*+?][+?]?"
_QUICK = re.compile(rf"{_FIXED}(?:{_REPEATED}\)*)?|\^{_FIXED}(?:{_REPEATED}{_FIXED})?", re.DOTALL)


def is_quick(pattern: str) -> bool:
    """Whether an expression, if it is one, takes time in proportion to the text."""
    return _QUICK.fullmatch(pattern) is not None


def _groups(pattern: object) -> int | None:
    """How many groups a constant expression has that Spark may be given as it is; None for all
    others, which are for Java functions of ours."""
    if not isinstance(pattern, str) or not is_quick(pattern):
        return None
    try:
        return int(java().java.util.regex.Pattern.compile(pattern).matcher("").groupCount())
    except PySparkException:
        return None


def _extract(
    pattern: Column, value: Column, group: Column | None = None, *, context: CallContext
) -> Fallible:
    return _match(pattern, value, group, context, BOUNDED_EXTRACT, _first)


def _extract_all(
    pattern: Column, value: Column, group: Column | None = None, *, context: CallContext
) -> Fallible:
    return _match(pattern, value, group, context, BOUNDED_EXTRACT_ALL, F.regexp_extract_all)


def _match(
    pattern: Column,
    value: Column,
    group: Column | None,
    context: CallContext,
    function: str,
    quick: Callable[[Column, Column, Column], Column],
) -> Fallible:
    """The first match, or every match, of a group (0: of the whole)."""
    number = 0 if group is None else context.literal(2)
    index = F.lit(0) if group is None else group
    groups = _groups(context.literal(0))
    if groups is not None and isinstance(number, int) and 0 <= number <= groups:
        return Fallible(quick(value, pattern, index))
    return bounded(function, pattern, value, index)


def _first(value: Column, pattern: Column, group: Column) -> Column:
    """Null where nothing matches: Spark has an empty text then, as it has for an empty match."""
    found = F.call_function("regexp_extract", value, pattern, group)
    # Joined with the empty text, because what is in every branch Spark works out just once.
    empty = F.concat(found, F.when(F.rlike(value, pattern), F.lit("")))
    return F.when(found == "", empty).otherwise(found)


def _replace(value: Column, pattern: Column, new: Column, context: CallContext) -> Fallible:
    known = context.literal(1)
    groups = _groups(known)
    if groups is None:
        return bounded(BOUNDED_REPLACE, value, pattern, new)
    digits = f"0-{min(groups, 9)}"
    names = "".join(rf"|\$\{{{name}\}}" for name in _NAMED.findall(str(known)))
    # Possessive: Java goes back over nothing, and so needs no stack that a long text could exhaust.
    sound = new.rlike(rf"^(?s)(?:[^$\\]|\\.|\$[{digits}]{names})*+$")
    return Fallible(
        F.when(sound, F.regexp_replace(value, pattern, new)),
        F.when(
            all_given(value, new) & ~sound,
            text("Illegal group reference in replacement: ", new),
        ),
    )


def _split(value: Column, pattern: Column, context: CallContext) -> Fallible:
    known = context.literal(1)
    if _groups(known) is None:
        return bounded(BOUNDED_SPLIT, value, pattern)
    pieces = F.split(value, pattern, -1)
    # An expression that matches nothing at all leaves no empty pieces at the end.
    last = F.array_max(F.transform(pieces, lambda p, i: F.when(p != "", i + 1).otherwise(F.lit(0))))
    trimmed = F.when(value == "", F.array(F.lit(""))).otherwise(F.slice(pieces, F.lit(1), last))
    if known == "":
        return Fallible(trimmed)
    return Fallible(F.when(F.rlike(F.lit(""), pattern), trimmed).otherwise(pieces))


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
