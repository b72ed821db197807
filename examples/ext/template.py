"""A start for your own functions: copy this file into the directory `ext/` and change it.

Every file there is loaded when the server starts. What it declares is used in SQL like any
built-in function; `SHOW FUNCTIONS;` lists it and `DESCRIBE FUNCTION FORMULA;` shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from headrace.functions import udaf, udf, udtf


# A scalar function: one value for each row. The annotations are its types.
@udf
def initials(name: str) -> str:
    """The first letter of each word of a name."""
    return "".join(word[0].upper() for word in name.split())


# SQL's own types, several ways to call it, and a setting. A server that is started with
# ksql.functions.formula.base.value=10 adds 10.
@udf(
    "(v1 INTEGER, v2 INTEGER) -> BIGINT",
    "(v1 DOUBLE, v2 DOUBLE) -> BIGINT",
    description="A formula that matters to the business.",
    author="example user",
    version="1.0.2",
    parameters={"v1": "the first factor", "v2": "the second factor"},
)
def formula(v1: float, v2: float, *, config: Mapping[str, object]) -> int:
    base = config.get("ksql.functions.formula.base.value", 0)
    return int(v1 * v2) + int(str(base))


# The same on whole columns: nothing is faster in Python. "arrow" gives pyarrow arrays.
@udf("(celsius DOUBLE) -> DOUBLE", vectorized="pandas")
def fahrenheit(celsius: pd.Series) -> pd.Series:
    """Degrees Celsius in Fahrenheit."""
    return celsius * 1.8 + 32


# A table function: any number of rows for each row.
@udtf
def words(text: str) -> Iterator[str]:
    """One row for each word of a text."""
    yield from text.split()


# An aggregate. It takes a constant (ROLLING_SUM(amount, 3)), and because it can take a row back it
# also works on tables. Its state is plain data: numbers, strings, lists, dicts. Its name in SQL is
# ROLLING_SUM.
@udaf("(val BIGINT, const size INTEGER) -> BIGINT", "(val INTEGER, const size INTEGER) -> BIGINT")
class RollingSum:
    """The sum of the last values of a column."""

    def __init__(self, size: int) -> None:
        self.size = size

    def initialize(self) -> list[int]:
        return []

    def add(self, state: list[int], val: int | None) -> list[int]:
        if val is not None:
            state.append(val)
        return state[-self.size :]

    def undo(self, state: list[int], val: int | None) -> list[int]:
        if val in state:
            state.remove(val)
        return state

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        return (left + right)[-self.size :]

    def result(self, state: list[int]) -> int:
        return sum(state)
