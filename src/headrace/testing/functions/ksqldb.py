# mypy: disable-error-code="untyped-decorator"
"""Functions that ksqlDB's own test files call, and that exist in ksqlDB's tests only."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.functions import udaf, udf, udtf

# ------------------------------------------------------------------------------------- scalar


@udf("(result BOOLEAN, evaluated BOOLEAN) -> BOOLEAN")
def whencondition(result: bool, evaluated: bool) -> bool:
    """The first argument; fails if it should not have been asked."""
    _check(evaluated)
    return result


@udf("(result INTEGER, evaluated BOOLEAN) -> INTEGER")
def whenresult(result: int, evaluated: bool) -> int:
    """The first argument; fails if it should not have been asked."""
    _check(evaluated)
    return result


def _check(evaluated: bool) -> None:
    if not evaluated:
        raise ValueError("When should not be evaluated")


@udf("(text STRING) -> STRING", vectorized="arrow")
def bad_udf(text: pa.Array) -> pa.Array:
    """Null for every other row."""
    values = text.to_pylist()
    return pa.array([v if i % 2 else None for i, v in enumerate(values)], pa.string())


@udf("(fails BOOLEAN) -> INTEGER", name="BAD_UDF")
def fail_if(fails: bool) -> int:
    """Fails if asked to."""
    if fails:
        raise ValueError("You asked me to throw...")
    return 0


@udf("(number INTEGER) -> STRING", name="BAD_UDF")
def fail(number: int) -> str:
    """Always fails."""
    raise ValueError("boom!")


@udf("(text STRING) -> STRUCT<A STRING>")
def tostruct(text: str) -> dict[str, str]:
    """A struct of one field."""
    return {"A": text}


@udf("(number INTEGER, text STRING) -> STRING", name="TEST_UDF")
def test_udf_int(number: int, text: str) -> str:
    """Tells which overload was chosen."""
    return "doStuffIntString"


@udf("(number BIGINT, text STRING) -> STRING", name="TEST_UDF")
def test_udf_long(number: int, text: str) -> str:
    """Tells which overload was chosen."""
    return "doStuffLongString"


@udf("(one BIGINT, other BIGINT, text STRING) -> STRING", name="TEST_UDF")
def test_udf_longs(one: int, other: int, text: str) -> str:
    """Tells which overload was chosen."""
    return "doStuffLongLongString"


@udf("(numbers BIGINT...) -> STRING", name="TEST_UDF")
def test_udf_any(*numbers: int) -> str:
    """Tells which overload was chosen."""
    return "doStuffLongVarargs"


@udf("(struct STRUCT<A STRING>) -> STRING", name="TEST_UDF")
def test_udf_struct(struct: dict[str, str]) -> str:
    """The struct's field."""
    return struct["A"]


# ------------------------------------------------------------------------------------- tables

_SIMPLE = [
    *["INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "STRING"],
    "DECIMAL(20, 10)",
    "STRUCT<A STRING>",
]


def _signature(shape: str) -> str:
    parameters = ", ".join(f"p{i} {shape.format(t)}" for i, t in enumerate(_SIMPLE))
    return f"({parameters}) -> STRING"


@udtf(_signature("{}"), _signature("ARRAY<{}>"), _signature("MAP<STRING, {}>"), name="TEST_UDTF")
def test_udtf_all(*values: Any) -> Iterator[str]:
    """Each argument as a text: of lists the first item, of maps what stands under k."""
    for value in values:
        if isinstance(value, list):
            yield _java(value[0])
        elif isinstance(value, dict) and "A" not in value:
            yield _java(value["k"])
        else:
            yield _java(value)


@udtf("(value INTEGER) -> INTEGER", name="TEST_UDTF")
def test_udtf_one(value: int) -> Iterator[int]:
    """The argument."""
    yield value


@udtf("(fails BOOLEAN) -> BOOLEAN")
def throwing_udtf(fails: bool) -> Iterator[bool]:
    """Fails if asked to."""
    if fails:
        raise ValueError("You asked me to throw...")
    yield fails


def _java(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case Decimal():
            return f"{value:.10f}"
        case dict():
            return "Struct{" + ",".join(f"{k}={v}" for k, v in value.items()) + "}"
    return str(value)


# --------------------------------------------------------------------------------- aggregates


class _Total:
    """Adds up numbers, and the lengths of texts, beginning with those of the constants."""

    def __init__(self, *constants: Any) -> None:
        self.start = sum(map(_size, constants))

    def initialize(self) -> int:
        return self.start

    def add(self, state: int, *values: Any) -> int:
        return state + sum(map(_size, values))

    def merge(self, left: int, right: int) -> int:
        return left + right - self.start

    def result(self, state: int) -> int:
        return state

    def undo(self, state: int, *values: Any) -> int:
        return state - sum(map(_size, values))


def _size(value: Any) -> int:
    if value is None:
        return 0
    return len(value) if isinstance(value, str) else int(value)


@udaf("(value BIGINT, text STRING, const start INTEGER, const more STRING...) -> BIGINT")
class MultiArg(_Total):
    """A total of two columns."""


@udaf(
    "(v BIGINT, a STRING, b STRING, c STRING, const start INTEGER, const more STRING...) -> BIGINT"
)
class FourArg(_Total):
    """A total of four columns."""


@udaf(
    "(v BIGINT, a STRING, b STRING, c STRING, d INTEGER, const start INTEGER, "
    "const more STRING...) -> BIGINT"
)
class FiveArg(_Total):
    """A total of five columns."""


@udaf("(value BIGINT, texts STRING...) -> BIGINT")
class VarArg(_Total):
    """A total of any number of columns."""


@udaf("(value BIGINT, texts STRING..., const one INTEGER, const other INTEGER) -> BIGINT")
class MidVarArg(_Total):
    """A total of any number of columns, with constants behind them."""


class _Firsts:
    """Collects the first column's values, of rows that have all of them."""

    def initialize(self) -> list[Any]:
        return []

    def add(self, state: list[Any], first: Any, *others: Any) -> list[Any]:
        return state if first is None or None in others else [*state, first]

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        return left + right

    def result(self, state: list[Any]) -> list[Any]:
        return state


@udaf("(first A, number INTEGER, others B...) -> ARRAY<A>")
class GenericVarArg(_Firsts):
    """Takes columns of any type, all but the first two of one."""


@udaf("(first INTEGER, others ANY...) -> ARRAY<INTEGER>")
class ObjColArg(_Firsts):
    """Takes columns of any types."""


@udaf("(value INTEGER) -> BIGINT", "(value BIGINT) -> BIGINT", name="TEST_UDAF")
class TestUdafNumber(_Total):
    """The sum of a column."""

    __test__ = False


@udaf("(text STRING) -> BIGINT", name="TEST_UDAF")
class TestUdafText(_Total):
    """The sum of the lengths of a column's texts."""

    __test__ = False


@udaf("(pair STRUCT<A INTEGER, B INTEGER>) -> STRUCT<A INTEGER, B INTEGER>", name="TEST_UDAF")
class TestUdafStruct:
    """The sums of two fields."""

    __test__ = False

    def initialize(self) -> list[int]:
        return [0, 0]

    def add(self, state: list[int], pair: dict[str, int] | None) -> list[int]:
        return state if pair is None else [state[0] + pair["A"], state[1] + pair["B"]]

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        return [left[0] + right[0], left[1] + right[1]]

    def result(self, state: list[int]) -> dict[str, int]:
        return {"A": state[0], "B": state[1]}
