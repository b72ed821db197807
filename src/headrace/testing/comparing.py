"""Whether a record is the expected one: JSON values, numbers by their value."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from headrace.testing.cases import Json


def same(expected: Json, actual: Json, *, lenient: bool = False) -> bool:
    """Numbers are equal if their values are, however written: an expected decimal may be a text.
    A missing field is a null one. `lenient`: names of fields are equal in any case."""
    match expected, actual:
        case bool(), _:
            return expected is actual
        case ((int() | float() | Decimal()), (int() | float() | Decimal())):
            return not isinstance(actual, bool) and _same_number(expected, actual)
        case str(), Decimal():
            return _is_decimal(expected, actual)
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


def _is_decimal(expected: str, actual: Decimal) -> bool:
    try:
        return Decimal(expected) == actual
    except InvalidOperation:
        return False


def _same_object(expected: dict[str, Json], actual: dict[str, Json], lenient: bool) -> bool:
    expected, actual = (
        {k.upper() if lenient else k: v for k, v in each.items() if v is not None}
        for each in (expected, actual)
    )
    return expected.keys() == actual.keys() and all(
        same(value, actual[name], lenient=lenient) for name, value in expected.items()
    )
