"""Whether a record is the expected one: JSON values, numbers by their value."""

from __future__ import annotations

from decimal import Decimal

from headrace.testing.cases import Json


def same(expected: Json, actual: Json, *, lenient: bool = False) -> bool:
    """Numbers are equal if their values are, however written. `lenient`: names of fields in any
    case, and a missing field is a null one."""
    match expected, actual:
        case bool(), _:
            return expected is actual
        case ((int() | float() | Decimal()), (int() | float() | Decimal())):
            return not isinstance(actual, bool) and _same_number(expected, actual)
        case dict(), dict():
            return _same_object(expected, actual, lenient)
        case list(), list():
            return len(expected) == len(actual) and all(
                same(e, a, lenient=lenient) for e, a in zip(expected, actual, strict=True)
            )
    return type(expected) is type(actual) and bool(expected == actual)


def _same_number(one: int | float | Decimal, other: int | float | Decimal) -> bool:
    if one == other:
        return True
    if isinstance(one, int) and isinstance(other, int):
        return False
    # A double is written with as few digits as tell it from its neighbours.
    a, b = float(one), float(other)
    return a == b or (a != a and b != b)


def _same_object(expected: dict[str, Json], actual: dict[str, Json], lenient: bool) -> bool:
    if lenient:
        expected = {k.upper(): v for k, v in expected.items() if v is not None}
        actual = {k.upper(): v for k, v in actual.items() if v is not None}
    return expected.keys() == actual.keys() and all(
        same(value, actual[name], lenient=lenient) for name, value in expected.items()
    )
