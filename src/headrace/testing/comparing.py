"""Compares expected and actual JSON values, numbers by their value."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from headrace.kafka.records import EARLIEST
from headrace.testing.cases import Json


def same_time(expected: object, actual: object) -> bool:
    """Whether two times of records are the same: in Kafka, time 0 is written as the earliest."""
    return expected == actual or (expected == 0 and actual == EARLIEST)


def same(expected: Json, actual: Json, *, any_case: bool = False) -> bool:
    """Numbers are equal if their values are, however written: an expected decimal may be a text.
    A missing field is a null one. `any_case`: so may fields be spelled."""
    match expected, actual:
        case bool(), _:
            return expected is actual
        case ((int() | float() | Decimal()), (int() | float() | Decimal())):
            return not isinstance(actual, bool) and _same_number(expected, actual)
        case str(), Decimal():
            return _is_decimal(expected, actual)
        case dict(), dict():
            return _same_object(expected, actual, any_case)
        case list(), list():
            return len(expected) == len(actual) and all(
                same(e, a, any_case=any_case) for e, a in zip(expected, actual, strict=True)
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


def _same_object(expected: dict[str, Json], actual: dict[str, Json], any_case: bool) -> bool:
    expected, actual = ({k: v for k, v in x.items() if v is not None} for x in (expected, actual))
    if any_case and expected.keys() != actual.keys():
        expected, actual = ({k.upper(): v for k, v in x.items()} for x in (expected, actual))
    return expected.keys() == actual.keys() and all(
        same(value, actual[name], any_case=any_case) for name, value in expected.items()
    )
