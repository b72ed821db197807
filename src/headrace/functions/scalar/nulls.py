"""Functions on nulls, and identity functions."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.declare.declaration import (
    CallContext,
    Category,
    call,
    overload,
    scalar,
)
from headrace.functions.scalar.collections import comparable
from headrace.functions.scalar.columns import identity


def _null_if(value: Column, other: Column, context: CallContext) -> Column:
    type_ = context.return_type
    same = comparable(value, type_) == comparable(other, type_)
    return F.when(~F.coalesce(same, F.lit(False)), value)


FUNCTIONS = (
    scalar(
        "AS_VALUE",
        "A copy of a key column in the value. Only of use in a projection.",
        overload("(keyColumn T) -> T", identity),
        category=Category.OTHER,
        examples=(call("key", gives="key"),),
    ),
    scalar(
        "COALESCE",
        "The first argument that is not null.",
        overload("(first T, others T...) -> T", F.coalesce),
        category=Category.CONDITIONAL,
        examples=(call(None, 2, 3, gives=2), call("a", gives="a")),
    ),
    scalar(
        "IFNULL",
        "An expression, or an alternative where it is null.",
        overload("(expression T, altValue T) -> T", F.coalesce),
        category=Category.CONDITIONAL,
        examples=(call(None, "b", gives="b"), call("a", "b", gives="a")),
    ),
    scalar(
        "NULLIF",
        "Null if two expressions are equal, the first one otherwise.",
        overload("(expr1 T, expr2 T) -> T", _null_if),
        category=Category.CONDITIONAL,
        examples=(
            call("a", "a", gives=None),
            call("a", None, gives="a"),
            call({"k": 1}, {"k": 1}, gives=None),
        ),
    ),
)
