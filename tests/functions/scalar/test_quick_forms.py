"""Spark forms that take a shorter way for common arguments give what the long way gives."""

import decimal
import math

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T
from scalar_session import start

from headrace.functions.declare.declaration import CallContext, Fallible
from headrace.functions.registry import REGISTRY
from headrace.functions.scalar import json as json_functions
from headrace.functions.scalar.time import rows as time_rows
from headrace.model.types import DOUBLE, INTEGER, MILLIS_PER_DAY, STRING


@pytest.fixture(scope="module")
def spark():
    session = start()
    yield session
    session.stop()


def answers(spark, function, type_, values, *args, first=0):
    """Values and failures of a call on each value, the other arguments being constants."""
    types = [STRING if isinstance(a, str) else INTEGER for a in args]
    types.insert(first, type_)
    resolution = REGISTRY.resolve(function, types)
    parameters, returned = resolution.finish({})
    literals = [*args[:first], None, *args[first:]]
    columns = [F.col("v") if i == first else F.lit(a) for i, a in enumerate(literals)]
    made = resolution.overload.spark(columns, CallContext(parameters, returned, literals))
    result = made if isinstance(made, Fallible) else Fallible(made)
    error = F.lit(None).cast("string") if result.error is None else result.error
    simple = T.DoubleType() if type_ == DOUBLE else T.StringType()
    rows = spark.createDataFrame(
        list(enumerate(values)), T.StructType().add("n", T.IntegerType()).add("v", simple)
    )
    shown = F.when(error.isNull(), result.value)
    return [
        tuple(row)[1:] for row in rows.select("n", shown, error).orderBy("n").coalesce(1).collect()
    ]


def values_of(found):
    return [value for value, _ in found]


TEXTS = [
    "",
    "a",
    "stream",
    "é",
    "ß😀",
    "a😀b",
    "😀😀😀",
    "日本語のテキスト",
    "x" * 500,
    "😀" * 300,
    None,
]


def _java_substring(text, position, length=None):
    units = text.encode("utf-16-be")
    size = len(units) // 2
    start = max(size + position, 0) if position < 0 else min(max(position - 1, 0), size)
    end = size if length is None else min(start + max(length, 0), size)
    cut = units[2 * start : 2 * end].decode("utf-16-be", "surrogatepass")
    return cut.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\ufffd", "?")


@pytest.mark.heavy
@pytest.mark.parametrize(
    "args",
    [(1,), (2,), (3,), (-2,), (0,), (1, 2), (3, 2), (2, 0), (2, -1), (-3, 2), (2, 2**31 - 1)],
    ids=str,
)
def test_substring(spark, args):
    wanted = [None if t is None else _java_substring(t, *args) for t in TEXTS]
    assert values_of(answers(spark, "SUBSTRING", STRING, TEXTS, *args)) == wanted


@pytest.mark.heavy
def test_trim(spark):
    texts = [
        "",
        "  ",
        " a ",
        "\t a\n",
        "a\x00",
        "\x1fa b\x1f ",
        "\xa0a",
        " é ",
        "a\x7f",
        "\n",
        None,
    ]
    wanted = [None if t is None else t.strip("".join(map(chr, range(33)))) for t in texts]
    assert values_of(answers(spark, "TRIM", STRING, texts)) == wanted


@pytest.mark.heavy
@pytest.mark.parametrize(
    "delimiter", [",", ".", "|", "\\", "^", "]", "}", "é", "😀", "ab", ".*", "\\E", "a.", " ", "\n"]
)
def test_split(spark, delimiter):
    texts = [
        "",
        "a,b,,c,",
        "a.b|c\\d^e]f}g",
        "éaé",
        "x😀y",
        "cabab",
        "a.*b\\Ec",
        " a \n b ",
        delimiter,
    ]
    wanted = [t.split(delimiter) for t in texts]
    assert values_of(answers(spark, "SPLIT", STRING, texts, delimiter)) == wanted


@pytest.mark.heavy
def test_round(spark):
    numbers = [0.5, -0.5, 1.5, 2.5, -1.5, -2.5, 0.49999999999999994, -0.49999999999999994]
    numbers += [2.0**52 + 1, 2.0**53 + 2, 4503599627370495.5, -4503599627370495.5, 1e300, -1e300]
    numbers += [math.nan, math.inf, -math.inf, 0.1, 7.999999, -0.0]
    assert values_of(answers(spark, "ROUND", DOUBLE, numbers)) == [_java_round(n) for n in numbers]


def _java_round(number):
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return 2**63 - 1 if number > 0 else -(2**63)
    up = (decimal.Decimal(number) + decimal.Decimal("0.5")).to_integral_value(decimal.ROUND_FLOOR)
    return max(min(int(up), 2**63 - 1), -(2**63))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (("[0-9]+",), ["12", None, None, None]),
        (("[0-9]*",), ["", "", "", None]),
        (("(b)?([0-9]+)", 1), ["b", None, None, None]),
        (("([a-z])(x)?", 2), ["", "", None, None]),
        (("a", 1), [None] * 4),
    ],
    ids=str,
)
def test_regexp_extract(spark, args, wanted):
    found = answers(spark, "REGEXP_EXTRACT", STRING, ["ab12c3", "ab", "", None], *args, first=1)
    assert found == [(value, None) for value in wanted]


@pytest.mark.heavy
def test_urls_tell_what_is_missing_from_what_is_broken(spark):
    urls = ["https://a.b:1/c?d", "mailto:a@b", "x/y", "", "http://a b", None]
    message = "URL input has invalid syntax: http://a b"
    assert answers(spark, "URL_EXTRACT_HOST", STRING, urls) == [
        ("a.b", None),
        (None, None),
        (None, None),
        (None, None),
        (None, message),
        (None, None),
    ]
    ports = answers(spark, "URL_EXTRACT_PORT", STRING, urls)
    assert ports == [(1, None), *[(None, None)] * 3, (None, message), (None, None)]


def _python(function, *args):
    try:
        return function(*args), None
    except ValueError as e:
        return None, str(e)


@pytest.mark.heavy
def test_json_fields_are_those_of_the_python_form(spark):
    documents = ['{"a":1}', '{"a":"x.y"}', '{"a":"1.50"}', '{"a":1.50}', '{"a":-2.5,"b":1.0}']
    documents += ['{"a":null}', '{"b":1.5}', "{", "", '{"a":{"b":[1,"c.d"]}}', '{"a":true}', "[1]"]
    found = answers(spark, "EXTRACTJSONFIELD", STRING, documents, "$.a")
    wanted = [_python(json_functions.extract, d, "$.a") for d in documents]
    # An empty text is nothing for the one and an empty text for the other.
    assert [f for f, d in zip(found, documents, strict=True) if d] == [
        w for w, d in zip(wanted, documents, strict=True) if d
    ]


MOMENTS = [
    *("2020-02-29", "2021-02-29", "2021-02-30", "0000-01-01", "0001-01-01", "-001-01-01"),
    *("9999-12-31", "+12020-01-01", "2020-1-01", " 2020-01-01", "2020-01-01 ", "2020-13-01"),
    *("2020-01-32", "1582-10-10", "2020-01-01T23:59:59.125", "2020-01-01T23:59:59.1"),
    *("2020-01-01t23:59:59.125", "2020-01-01T24:00:00.000", "2020-01-01T24:00:00.001"),
    *("+12020-01-01T00:00:00.1", "2020-01-01T23:60:00.000", "nonsense", ""),
]


@pytest.mark.heavy
@pytest.mark.parametrize("pattern", ["yyyy-MM-dd", "yyyy-MM-dd'T'HH:mm:ss.SSS"])
def test_times_are_those_of_the_python_form(spark, pattern):
    found = answers(spark, "PARSE_TIMESTAMP", STRING, MOMENTS, pattern)
    wanted = [_python(time_rows.parse_timestamp, m, pattern, "GMT") for m in MOMENTS]
    assert values_of(found) == values_of(wanted)
    assert [e is None for _, e in found] == [e is None for _, e in wanted]
    days = answers(spark, "STRINGTODATE", STRING, MOMENTS, pattern)
    assert values_of(days) == [None if v is None else v // MILLIS_PER_DAY for v, _ in found]


@pytest.mark.heavy
def test_dates_are_those_of_the_python_form(spark):
    found = answers(spark, "PARSE_DATE", STRING, MOMENTS, "yyyy-MM-dd")
    wanted = [_python(time_rows.parse_date, m, "yyyy-MM-dd") for m in MOMENTS]
    assert values_of(found) == values_of(wanted)
