"""Functions on numbers: arithmetic, rounding, trigonometry, greatest and least."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.declare.declaration import (
    CallContext,
    Category,
    Example,
    Fallible,
    Function,
    Overload,
    Typed,
    call,
    failing,
    overload,
    scalar,
    varying,
)
from headrace.functions.scalar.columns import (
    LARGEST,
    all_given,
    by_integer,
    fails_when,
    identity,
    same_as,
)
from headrace.model.errors import StatementError
from headrace.model.representation import spark_type
from headrace.model.types import (
    EXACT_DECIMALS,
    NULL,
    Decimal,
    SqlType,
    wider_decimal,
)

_NUMBERS = ("INTEGER", "BIGINT", "DOUBLE")


def _of_doubles(
    name: str,
    description: str,
    form: Callable[..., Column],
    *examples: Example,
    parameters: tuple[tuple[str, str], ...] = (("value", "The value."),),
) -> Function:
    """A function of numbers whose result is a DOUBLE."""
    return scalar(name, description, *_doubles(form, parameters), category=_MATH, examples=examples)


def _doubles(
    form: Callable[..., Column], parameters: tuple[tuple[str, str], ...]
) -> tuple[Overload, ...]:
    def of_doubles(*args: Column) -> Column:
        return form(*(a.cast("double") for a in args))

    return tuple(
        overload(
            f"({', '.join(f'{name} {type_}' for name, _ in parameters)}) -> DOUBLE",
            of_doubles,
            parameters=dict(parameters),
        )
        for type_ in _NUMBERS
    )


_MATH = Category.MATHEMATICAL
_RADIANS = (("value", "The value in radians."),)


# ----------------------------------------------------------------------------------- logarithms


def _java_math(name: str) -> Callable[..., Column]:
    """A function of `java.lang.Math`, where Spark's differs from it.

    Spark takes `StrictMath`, which is off by one in the last digit here and there, and has null
    where Java has an infinity or NaN.
    """

    def form(*args: Column) -> Column:
        return F.try_reflect(F.lit("java.lang.Math"), F.lit(name), *args).cast("double")

    return form


_ln = _java_math("log")


def _log(base: Column, value: Column) -> Column:
    quotient = _divide(_ln(value), _ln(base))
    return F.when((base <= 0) | (base == 1), F.when(value.isNotNull(), F.lit(math.nan))).otherwise(
        quotient
    )


def _divide(left: Column, right: Column) -> Column:
    """Spark has null for x / 0; Java an infinity, or NaN."""
    at_zero = F.when(left > 0, F.lit(math.inf)).when(left < 0, F.lit(-math.inf))
    return F.when(right == 0, F.coalesce(at_zero, F.when(left == 0, F.lit(math.nan)))).otherwise(
        left / right
    )


# ------------------------------------------------------------------------------------- rounding

_HALF = decimal.Decimal("0.5")
# A double has no digits beyond these places, on either side of the point.
_PLACES = range(-309, 324)
# Of a place that is no constant only these are told apart: what a double can show.
_USUAL_PLACES = range(-18, 19)


def _whole(value: Column) -> Column:
    """Java's `Math.round`: to the nearest, and a half upwards."""
    near = F.rint(value)  # a half to the even one, which may be below
    return F.when(value - near == 0.5, near + 1.0).otherwise(near).cast("bigint")


def _round_double(value: Column, places: Column, context: CallContext) -> Column:
    return by_integer(context, 1, places, _places(context), lambda p: _rounded(value, p))


def _places(context: CallContext) -> range:
    return _PLACES if isinstance(context.literal(1), int) else _USUAL_PLACES


def _rounded(value: Column, places: int) -> Column:
    """Spark rounds a half away from zero; ksqlDB upwards, so negative halves differ."""
    away = F.round(value, places)
    if not -17 <= places <= 17:
        return away
    unit = decimal.Decimal(1).scaleb(-places)
    exact, rounded = value.cast("decimal(37,18)"), away.cast("decimal(37,18)")
    half = (value < 0) & (exact - rounded == F.lit(unit * _HALF).cast("decimal(38,18)"))
    return F.when(half, F.round(away + float(unit), places)).otherwise(away)


def _truncated(value: Column, places: int) -> Column:
    near = F.round(value, places)
    unit = float(decimal.Decimal(1).scaleb(-places))
    back = F.round(near - F.signum(value) * unit, places)
    return F.when(F.abs(near) > F.abs(value), back).otherwise(near)


def _truncate_double(value: Column, places: Column, context: CallContext) -> Column:
    return by_integer(context, 1, places, _places(context), lambda p: _truncated(value, p))


def _round_decimal(value: Column, context: CallContext) -> Column:
    return _decimal_to(value, 0).cast(spark_type(context.return_type))


def _round_decimal_places(value: Column, places: Column, context: CallContext) -> Column:
    return _each_place(value, places, context, _decimal_to)


def _decimal_to(value: Column, places: int) -> Column:
    half = decimal.Decimal(1).scaleb(-places) * _HALF
    return F.floor(value + F.lit(half), F.lit(places))


def _truncate_decimal(value: Column, context: CallContext) -> Column:
    return _decimal_cut(value, 0).cast(spark_type(context.return_type))


def _truncate_decimal_places(value: Column, places: Column, context: CallContext) -> Column:
    return _each_place(value, places, context, _decimal_cut)


def _decimal_cut(value: Column, places: int) -> Column:
    return F.when(value < 0, F.ceil(value, F.lit(places))).otherwise(F.floor(value, F.lit(places)))


def _each_place(
    value: Column, places: Column, context: CallContext, form: Callable[[Column, int], Column]
) -> Column:
    type_ = context.arg_types[0]
    assert isinstance(type_, Decimal)
    wanted = spark_type(context.return_type)

    def at(place: int) -> Column:
        return (value if place >= type_.scale else form(value, place)).cast(wanted)

    return by_integer(
        context, 1, places, range(type_.scale - type_.precision - 1, type_.scale + 1), at
    )


def _whole_decimal(types: Sequence[SqlType]) -> SqlType:
    source = types[0]
    assert isinstance(source, Decimal)
    precision = source.precision - source.scale
    if precision < 1:
        raise StatementError(f"DECIMAL precision must be >= 1: DECIMAL({precision},0)")
    return Decimal(precision, 0)


def _to_scale(form: Callable[[Column], Column]) -> Callable[..., Column]:
    def of_decimal(value: Column, context: CallContext) -> Column:
        return form(value).cast(spark_type(context.return_type))

    return of_decimal


def _ceil_double(value: Column) -> Column:
    """Spark's CEIL of a double is a BIGINT, which does not hold every double."""
    near = F.rint(value)
    return F.when(near < value, near + 1.0).otherwise(near)


def _floor_double(value: Column) -> Column:
    near = F.rint(value)
    return F.when(near > value, near - 1.0).otherwise(near)


# --------------------------------------------------------------------------- greatest and least

# ksqlDB compares bytes as signed numbers: this order of characters is the order of its bytes.
_BYTES = "".join(map(chr, range(256)))
_SIGNED = "".join(chr(0x100 + (byte ^ 0x80)) for byte in range(256))


def _extreme(pick: Callable[..., Column]) -> Callable[..., Column]:
    return lambda *args: pick(*args) if len(args) > 1 else args[0]


def _extreme_decimal(pick: Callable[..., Column]) -> Callable[..., Column]:
    def of_decimals(*args: Column, context: CallContext) -> Column:
        same = spark_type(context.return_type)
        return _extreme(pick)(*(a.cast(same) for a in args))

    return of_decimals


def _extreme_bytes(pick: Callable[..., Column]) -> Callable[..., Column]:
    def of_bytes(*args: Column) -> Column:
        keyed = (
            F.when(
                a.isNotNull(),
                F.struct(F.translate(F.decode(a, "ISO-8859-1"), _BYTES, _SIGNED), a.alias("bytes")),
            )
            for a in args
        )
        return _extreme(pick)(*keyed).getField("bytes")

    return of_bytes


def _widest(types: Sequence[SqlType]) -> SqlType:
    given = (EXACT_DECIMALS.get(t, t) for t in types if t != NULL)
    return reduce(wider_decimal, (t for t in given if isinstance(t, Decimal)))


def _extremes(name: str, word: str, pick: Callable[..., Column], *examples: Example) -> Function:
    of = "(val {0}, vals {0}...) -> {0}"
    ordered = ("INTEGER", "BIGINT", "DOUBLE", "STRING", "DATE", "TIME", "TIMESTAMP")
    return scalar(
        name,
        f"The {word} value among the arguments that are not null.",
        *(overload(of.format(t), _extreme(pick)) for t in ordered),
        overload(of.format("BYTES"), _extreme_bytes(pick)),
        overload(of.format("DECIMAL"), _extreme_decimal(pick), returns=_widest),
        category=_MATH,
        examples=examples,
    )


# -------------------------------------------------------------------------------------- series


def _series(start: Column, end: Column, step: Column | None = None) -> Fallible:
    if step is None:
        step = F.when(end > start, F.lit(1)).otherwise(F.lit(-1))
    # Counted in doubles, which do not overflow.
    size = (end.cast("double") - start.cast("double")) / step
    wrong = ((end > start) & (step < 0)) | ((end < start) & (step > 0))
    error = (
        F.when(step == 0, F.lit("GENERATE_SERIES step cannot be zero"))
        .when(wrong, F.lit("GENERATE_SERIES step has wrong sign"))
        .when(size > LARGEST, F.lit(f"GENERATE_SERIES has more than {LARGEST} elements"))
    )
    fine = all_given(start, end, step) & error.isNull()
    # A series of one element has a step of no consequence, which Spark still checks.
    sound = F.when(start == end, F.lit(1)).otherwise(step)
    return Fallible(F.when(fine, F.sequence(start, end, sound)), error)


# ------------------------------------------------------------------------------------- geometry

_KILOMETRES = ("km", "kilometer", "kilometers", "kilometre", "kilometres")
_MILES = ("mi", "mile", "miles")
_UNITS = ", ".join((*_MILES, *_KILOMETRES[:-1])) + f" or {_KILOMETRES[-1]}"


def _distance(
    lat1: Column, lon1: Column, lat2: Column, lon2: Column, units: Column | None = None
) -> Fallible:
    def out_of_range(limit: float, *values: Column) -> Column:
        return reduce(lambda a, b: a | b, ((v < -limit) | (v > limit) for v in values))

    radius: Column = F.lit(6371.0)
    unknown = F.lit(False)
    if units is not None:
        name = F.lower(F.btrim(F.coalesce(units, F.lit(""))))
        unknown = ~name.isin("", *_MILES, *_KILOMETRES)
        radius = F.when(name.isin(*_MILES), F.lit(3959.0)).otherwise(radius)
    angle = _haversine(lat2 - lat1) + _haversine(lon2 - lon1) * F.cos(_radians(lat1)) * F.cos(
        _radians(lat2)
    )
    message = (
        F.when(
            out_of_range(90.0, lat1, lat2),
            F.lit(
                "valid latitude values for GeoDistance function are in the range of -90 to 90 "
                "decimal degrees"
            ),
        )
        .when(
            out_of_range(180.0, lon1, lon2),
            F.lit(
                "valid longitude values for GeoDistance function are in the range of -180 to +180 "
                "decimal degrees"
            ),
        )
        .when(
            unknown,
            F.lit(
                f"GeoDistance function units parameter must be one of {_UNITS}. "
                "Values are case-insensitive."
            ),
        )
    )
    return fails_when(message.isNotNull(), message, F.asin(F.sqrt(angle)) * 2 * radius)


def _haversine(degrees: Column) -> Column:
    return F.pow(F.sin(_radians(degrees) / 2), F.lit(2.0))


def _radians(degrees: Column) -> Column:
    """As Java 8 computed them: the last digit of a distance depends on it."""
    return degrees / 180.0 * math.pi


_POINTS = "lat1 DOUBLE!, lon1 DOUBLE!, lat2 DOUBLE!, lon2 DOUBLE!"
_POINT_NAMES = {
    "lat1": "The latitude of the first point in decimal degrees.",
    "lon1": "The longitude of the first point in decimal degrees.",
    "lat2": "The latitude of the second point in decimal degrees.",
    "lon2": "The longitude of the second point in decimal degrees.",
    "units": "The unit of the result: miles or kilometres.",
}


def _random_of_record(record: Column) -> Column:
    """53 bits of the record's hash, as Java makes a double of random bits."""
    return F.shiftrightunsigned(F.xxhash64(record), 11).cast("double") * F.lit(2.0**-53)


FUNCTIONS = (
    scalar(
        "ABS",
        "The absolute value of a number.",
        *(overload(f"(val {t}) -> {t}", F.abs) for t in _NUMBERS),
        overload("(val DECIMAL) -> DECIMAL", F.abs, returns=same_as(0)),
        category=_MATH,
        examples=(call(-3, gives=3), call(decimal.Decimal("-1.50"), gives=decimal.Decimal("1.50"))),
    ),
    _of_doubles("ACOS", "The inverse cosine of a value, in radians.", F.acos, call(1, gives=0.0)),
    _of_doubles("ASIN", "The inverse sine of a value, in radians.", F.asin, call(0, gives=0.0)),
    _of_doubles("ATAN", "The inverse tangent of a value, in radians.", F.atan, call(0, gives=0.0)),
    _of_doubles(
        "ATAN2",
        "The angle, in radians, between the x axis and the point (x, y).",
        lambda y, x: F.atan2(y, x),
        call(1, 1, gives=math.pi / 4),
        parameters=(("y", "The ordinate."), ("x", "The abscissa.")),
    ),
    _of_doubles("CBRT", "The cube root of a value.", F.cbrt, call(8, gives=2.0)),
    scalar(
        "CEIL",
        "The smallest whole number that is not below a number.",
        overload("(val INTEGER) -> INTEGER", identity),
        overload("(val BIGINT) -> BIGINT", identity),
        overload("(val DOUBLE) -> DOUBLE", _ceil_double),
        overload("(val DECIMAL) -> DECIMAL", _to_scale(F.ceil), returns=same_as(0)),
        category=_MATH,
        examples=(
            call(1.2, gives=2.0),
            call(-1.7, gives=-1.0),
            call(decimal.Decimal("1.23"), gives=decimal.Decimal("2.00")),
        ),
    ),
    _of_doubles("COS", "The cosine of a value.", F.cos, call(0, gives=1.0), parameters=_RADIANS),
    _of_doubles(
        "COSH", "The hyperbolic cosine of a value.", F.cosh, call(0, gives=1.0), parameters=_RADIANS
    ),
    _of_doubles(
        "COT",
        "The cotangent of a value.",
        lambda value: _divide(F.lit(1.0), F.tan(value)),
        call(math.pi / 4, gives=1.0000000000000002),
        parameters=_RADIANS,
    ),
    _of_doubles(
        "DEGREES",
        "A value in radians, as degrees.",
        F.degrees,
        call(math.pi, gives=180.0),
        parameters=_RADIANS,
    ),
    _of_doubles(
        "EXP",
        "Euler's number raised to the power of a value.",
        _java_math("exp"),
        call(1, gives=math.e),
        parameters=(("exponent", "The exponent."),),
    ),
    scalar(
        "FLOOR",
        "The greatest whole number that is not above a number.",
        overload("(val INTEGER) -> INTEGER", identity),
        overload("(val BIGINT) -> BIGINT", identity),
        overload("(val DOUBLE) -> DOUBLE", _floor_double),
        overload("(val DECIMAL) -> DECIMAL", _to_scale(F.floor), returns=same_as(0)),
        category=_MATH,
        examples=(call(1.7, gives=1.0), call(-1.2, gives=-2.0)),
    ),
    scalar(
        "GENERATE_SERIES",
        "An array of the numbers from one to another, in even steps.",
        overload("(start INTEGER!, end INTEGER!) -> ARRAY<INTEGER>", _series),
        overload("(start INTEGER!, end INTEGER!, step INTEGER!) -> ARRAY<INTEGER>", _series),
        overload("(start BIGINT!, end BIGINT!) -> ARRAY<BIGINT>", _series),
        overload("(start BIGINT!, end BIGINT!, step INTEGER!) -> ARRAY<BIGINT>", _series),
        category=Category.ARRAY,
        examples=(
            call(1, 5, gives=[1, 2, 3, 4, 5]),
            call(5, 1, -2, gives=[5, 3, 1]),
            failing(1, 5, -1, error="GENERATE_SERIES step has wrong sign"),
            failing(1, 5, 0, error="GENERATE_SERIES step cannot be zero"),
        ),
    ),
    scalar(
        "GEO_DISTANCE",
        "The great-circle distance between two points on the earth, given as decimal degrees.",
        overload(f"({_POINTS}, units STRING) -> DOUBLE", _distance, parameters=_POINT_NAMES),
        overload(f"({_POINTS}) -> DOUBLE", _distance, parameters=_POINT_NAMES),
        category=Category.OTHER,
        examples=(
            call(37.4439, -122.1663, 51.5257, -0.1122, gives=8634.659796579544),
            failing(
                91.0,
                0.0,
                0.0,
                0.0,
                "KM",
                error="valid latitude values for GeoDistance function are in the range of -90 to 90"
                " decimal degrees",
            ),
        ),
    ),
    _extremes("GREATEST", "greatest", F.greatest, call(3, None, 5, gives=5)),
    _extremes(
        "LEAST",
        "least",
        F.least,
        call("b", "a", gives="a"),
        call(decimal.Decimal("1.5"), decimal.Decimal("12.25"), gives=decimal.Decimal("1.50")),
    ),
    _of_doubles(
        "LN", "The natural logarithm of a value.", _ln, call(1, gives=0.0), call(0, gives=-math.inf)
    ),
    scalar(
        "LOG",
        "The natural logarithm of a value, or its logarithm to a base.",
        *_doubles(_ln, (("value", "The value."),)),
        *_doubles(_log, (("base", "The base of the logarithm."), ("value", "The value."))),
        category=_MATH,
        examples=(call(2, 8, gives=2.0794415416798357 / 0.6931471805599453),),
    ),
    scalar(
        "PI",
        "The ratio of a circle's circumference to its diameter.",
        overload("() -> DOUBLE", lambda: F.lit(math.pi)),
        category=_MATH,
        examples=(call(gives=math.pi),),
    ),
    _of_doubles(
        "POWER",
        "A base raised to the power of an exponent.",
        _java_math("pow"),
        call(2, 10, gives=1024.0),
        parameters=(("base", "The base."), ("exponent", "The exponent.")),
    ),
    _of_doubles(
        "RADIANS",
        "A value in degrees, as radians.",
        F.radians,
        call(180, gives=math.pi),
        parameters=(("value", "The value in degrees."),),
    ),
    scalar(
        "RANDOM",
        "A random number from 0.0 up to, but not including, 1.0.",
        overload("() -> DOUBLE", lambda: F.rand(), of_record=_random_of_record),
        category=_MATH,
        examples=(varying(),),
    ),
    scalar(
        "ROUND",
        "A number rounded to a whole one, or to so many decimal places (left of the point if "
        "negative). A half is rounded upwards.",
        overload("(val BIGINT!) -> BIGINT", identity),
        overload("(val INTEGER!) -> BIGINT", lambda value: value.cast("bigint")),
        overload("(val DOUBLE) -> BIGINT", _whole),
        overload("(val DOUBLE, decimalPlaces INTEGER) -> DOUBLE", _round_double),
        overload("(val DECIMAL) -> DECIMAL", _round_decimal, returns=_whole_decimal),
        overload(
            "(val DECIMAL, decimalPlaces INTEGER) -> DECIMAL",
            _round_decimal_places,
            returns=same_as(0),
        ),
        category=_MATH,
        examples=(
            call(1.5, gives=Typed(2, "BIGINT")),
            call(-1.5, gives=Typed(-1, "BIGINT")),
            call(2.345, 2, gives=2.35),
            call(-2.345, 2, gives=-2.34),
            call(decimal.Decimal("-1.55"), 1, gives=decimal.Decimal("-1.50")),
            call(decimal.Decimal("12.50"), gives=decimal.Decimal("13")),
        ),
    ),
    scalar(
        "SIGN",
        "The sign of a number: 1, 0 or -1.",
        *(
            overload(f"(value {t}) -> INTEGER", lambda value: F.signum(value).cast("int"))
            for t in _NUMBERS
        ),
        category=_MATH,
        examples=(call(-2.5, gives=-1), call(0, gives=0)),
    ),
    _of_doubles("SIN", "The sine of a value.", F.sin, call(0, gives=0.0), parameters=_RADIANS),
    _of_doubles(
        "SINH", "The hyperbolic sine of a value.", F.sinh, call(0, gives=0.0), parameters=_RADIANS
    ),
    _of_doubles("SQRT", "The square root of a value.", F.sqrt, call(9, gives=3.0)),
    _of_doubles("TAN", "The tangent of a value.", F.tan, call(0, gives=0.0), parameters=_RADIANS),
    _of_doubles(
        "TANH",
        "The hyperbolic tangent of a value.",
        F.tanh,
        call(0, gives=0.0),
        parameters=_RADIANS,
    ),
    scalar(
        "TRUNC",
        "A number without its fraction, or with only so many decimal places.",
        overload("(val BIGINT) -> BIGINT", identity),
        overload("(val INTEGER) -> BIGINT", lambda value: value.cast("bigint")),
        overload("(val DOUBLE) -> BIGINT", lambda value: value.cast("bigint")),
        overload("(val DOUBLE, decimalPlaces INTEGER) -> DOUBLE", _truncate_double),
        overload("(val DECIMAL) -> DECIMAL", _truncate_decimal, returns=_whole_decimal),
        overload(
            "(val DECIMAL, decimalPlaces INTEGER) -> DECIMAL",
            _truncate_decimal_places,
            returns=same_as(0),
        ),
        category=_MATH,
        examples=(
            call(-1.9, gives=Typed(-1, "BIGINT")),
            call(1.299, 2, gives=1.29),
            call(decimal.Decimal("-1.29"), 1, gives=decimal.Decimal("-1.20")),
        ),
    ),
)
