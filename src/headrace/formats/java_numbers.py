"""Numbers as Java parses and prints them, which is what records of ksqlDB hold."""

from __future__ import annotations

import re
from decimal import Decimal as Number
from decimal import InvalidOperation

from headrace.model.types import MILLIS_PER_DAY

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DOUBLE = re.compile(
    r"[\x00-\x20]*([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"[fFdD]?))[\x00-\x20]*",
    re.ASCII,
)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)

INT_BITS = 32
LONG_BITS = 64
# What Java's parseInt allows in digits is bounded by the range; Python's own limit is far above.
_MAX_DIGITS = 40


def parse_integer(text: str, bits: int) -> int | None:
    """Integer.parseInt or Long.parseLong; None where they throw."""
    if not _INTEGER.fullmatch(text) or len(text.lstrip("+-0")) > _MAX_DIGITS:
        return None
    value = int(text)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def narrow(value: int, bits: int) -> int:
    """The low bits as a signed number, as Java's narrowing conversions give."""
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if low >> bits - 1 else low


def parse_double(text: str) -> float | None:
    """Double.parseDouble; None where it throws."""
    match = _DOUBLE.fullmatch(text)
    if match is None:
        return None
    digits = match[1]
    return float(digits if digits[-1] in "Ny" else digits.rstrip("fFdD"))


def parse_decimal(text: str) -> Number | None:
    """new BigDecimal(text); None where it throws."""
    if not _DECIMAL.fullmatch(text):
        return None
    try:
        return Number(text)
    except InvalidOperation:
        return None


def double_text(value: float) -> str:
    """Double.toString: at least one digit on each side of the point, exponents outside 1e-3…1e7."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Number(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0") or "0"
    # The value is 0.text × 10^point.
    point = len(digits) + exponent if text != "0" else 1
    if value == 0:
        body = "0.0"
    elif 1e-3 <= abs(value) < 1e7:
        if point <= 0:
            body = "0." + "0" * -point + text
        else:
            body = text[:point].ljust(point, "0") + "." + (text[point:] or "0")
    else:
        body = f"{text[0]}.{text[1:] or '0'}E{point - 1}"
    return ("-" if sign else "") + body


def decimal_text(value: Number) -> str:
    """BigDecimal.toString, which differs from Python's only in having no negative zero."""
    return str(value if value else value.copy_abs())


def plain_string(value: Number) -> str:
    """BigDecimal.toPlainString."""
    return format(value if value else value.copy_abs(), "f")


def fit(value: Number, precision: int, scale: int) -> Number:
    """The value at the given scale; ValueError, in ksqlDB's words, where digits would be lost."""
    if value and value.adjusted() >= precision - scale:
        raise ValueError(
            f"Numeric field overflow: A field with precision {precision} and scale {scale} must "
            f"round to an absolute value less than 10^{precision - scale}. Got {_bounded(value)}"
        )
    if not value:
        return Number((0, (0,), -scale))
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    shift = exponent + scale
    if shift >= 0:
        return Number((sign, (*digits, *([0] * shift)), -scale))
    if any(digits[shift:]):
        raise ValueError(
            f"Cannot fit decimal '{_bounded(value)}' into DECIMAL({precision}, {scale}) without "
            f"rounding. (Requires {len(digits)},{-exponent})"
        )
    return Number((sign, digits[:shift], -scale))


def _bounded(value: Number) -> str:
    return plain_string(value) if abs(value.adjusted()) < 400 else decimal_text(value)


def fit_time(millis: int) -> int:
    """A time of day in milliseconds; ValueError, in ksqlDB's words, if out of range."""
    if 0 <= millis <= MILLIS_PER_DAY:
        return millis
    raise ValueError(
        "Time values must use number of milliseconds greater than 0 and less than "
        f"{MILLIS_PER_DAY}."
    )
