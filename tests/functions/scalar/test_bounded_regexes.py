"""Regular expressions and LIKE patterns that would go back without end fail, and stop nothing."""

import random
import re
import time

import pytest
from pyspark.sql import functions as F
from scalar_session import start

from headrace.functions.bounded import BOUNDED_LIKE
from headrace.functions.declare.declaration import CallContext
from headrace.functions.registry import REGISTRY
from headrace.functions.scalar.regexes import is_quick
from headrace.model.types import BOOLEAN, INTEGER, STRING
from headrace.plan.language.expressions import ColumnValue, Like, Literal
from headrace.spark.lower.expressions import lower


@pytest.fixture(scope="module")
def spark():
    session = start()
    yield session
    session.stop()


def answer(spark, function, *args, known=True):
    """Of a call with a constant expression, or with one that comes with the record."""
    types = [INTEGER if isinstance(a, int) else STRING for a in args]
    resolution = REGISTRY.resolve(function, types)
    parameters, returned = resolution.finish({})
    rows = spark.createDataFrame([args], [f"c{i}" for i in range(len(args))])
    columns = [F.col(f"c{i}") for i in range(len(args))]
    columns = [c.cast("int") if t == INTEGER else c for c, t in zip(columns, types, strict=True)]
    pattern = 0 if "EXTRACT" in function else 1
    literals = [a if known and i == pattern else None for i, a in enumerate(args)]
    columns = [c if v is None else F.lit(v) for c, v in zip(columns, literals, strict=True)]
    made = resolution.overload.spark(columns, CallContext(parameters, returned, literals))
    error = F.lit(None).cast("string") if made.error is None else made.error
    return tuple(rows.select(made.value, error).collect()[0])


@pytest.mark.parametrize(
    ("pattern", "quick"),
    [
        ("[0-9]+", True),
        ("", True),
        (r"(\w)-\d{3}", True),
        ("^[^=]*=", True),
        ("^(?<name>[a-z]+): x$", True),
        ("(x+)", True),
        (".*", True),
        ("a+$", False),  # once for each a
        ("(a+)+$", False),
        ("(a|a)b", False),
        ("(ab)+", False),
        ("(?i)a", False),
        ("x*y*", False),
        (r"^a*\1", False),
        ("a{2,}b", False),
        (r"\Qa+\E", False),
        ("[a&&[b]]", False),
    ],
)
def test_which_expressions_spark_is_given(pattern, quick):
    assert is_quick(pattern) is quick


def test_to_find_that_out_takes_no_time():
    started = time.thread_time()
    for piece in ("(", "a", "[a", "a*", "\\", "(?<a", "[^", "a{1"):
        is_quick(piece * 20_000 + "*+")
    assert time.thread_time() - started < 1


# To divide a text among these there are more ways than anybody can try.
EVIL = "(a*)(a*)(a*)(a*)(a*)(a*)(a*)b"
TEXT = "a" * 500
TOO_LONG = f"Regular expression takes too many steps with this text: {EVIL}"


@pytest.mark.heavy
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("function", "args", "good", "wanted"),
    [
        ("REGEXP_EXTRACT", (EVIL, TEXT), (EVIL, "-aab"), "aab"),
        ("REGEXP_EXTRACT", (EVIL, TEXT, 1), (EVIL, "-aab", 1), "aa"),
        ("REGEXP_EXTRACT_ALL", (EVIL, TEXT), (EVIL, "-aab"), ["aab"]),
        ("REGEXP_REPLACE", (TEXT, EVIL, "c"), ("-aab", EVIL, "c"), "-c"),
        ("REGEXP_SPLIT_TO_ARRAY", (TEXT, EVIL), ("-aab", EVIL), ["-", ""]),
    ],
)
def test_what_goes_back_without_end_fails(spark, function, args, good, wanted, known):
    started = time.monotonic()
    assert answer(spark, function, *args, known=known) == (None, TOO_LONG)
    assert time.monotonic() - started < 20
    assert answer(spark, function, *good, known=known) == (wanted, None)


# A loop in a loop: of so many a's there are 2 ** 5000 divisions, and behind them is no end.
NESTED = "(a+)+$"
NEARLY = "a" * 5000 + "b"


@pytest.mark.heavy
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("function", "args", "right", "good", "wanted"),
    [
        ("REGEXP_EXTRACT", (NESTED, NEARLY), None, (NESTED, "-aa"), "aa"),
        ("REGEXP_EXTRACT", (NESTED, NEARLY, 1), None, (NESTED, "-aa", 1), "aa"),
        ("REGEXP_EXTRACT_ALL", (NESTED, NEARLY), [], (NESTED, "-aa"), ["aa"]),
        ("REGEXP_REPLACE", (NEARLY, NESTED, "c"), NEARLY, ("-aa", NESTED, "c"), "-c"),
        ("REGEXP_SPLIT_TO_ARRAY", (NEARLY, NESTED), [NEARLY], ("-aa", NESTED), ["-", ""]),
    ],
)
def test_a_loop_in_a_loop_ends(spark, function, args, right, good, wanted, known):
    """With the answer, or with a failure of this record alone."""
    started = time.monotonic()
    value, error = answer(spark, function, *args, known=known)
    assert time.monotonic() - started < 20
    if error is None:
        assert value == right
    else:
        assert value is None
        assert re.fullmatch(
            r"Regular expression takes too (many steps|much memory) with this text: "
            + re.escape(NESTED),
            error,
        )
    assert answer(spark, function, *good, known=known) == (wanted, None)


@pytest.mark.heavy
def test_an_expression_that_java_has_no_stack_for_fails(spark):
    value, error = answer(spark, "REGEXP_EXTRACT", "(a|b)*c", "ab" * 200_000)
    assert value is None and "too much memory with this text" in error


@pytest.mark.heavy
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("function", "args", "wanted"),
    [
        ("REGEXP_EXTRACT", ("(x)?(y+)z", "yyz", 1), ("", None)),
        ("REGEXP_EXTRACT", ("(x)?(y+)z", "yyz", 2), ("yy", None)),
        ("REGEXP_EXTRACT", ("(y+)z", "yyz", 2), (None, None)),
        ("REGEXP_EXTRACT", ("(y+)z", "yyz", -1), (None, "No group -1")),
        ("REGEXP_EXTRACT", ("(y+)z", "yy"), (None, None)),
        ("REGEXP_EXTRACT", ("(y*)z?", "abc"), ("", None)),
        ("REGEXP_EXTRACT", ("(", "abc"), (None, "Invalid regular expression pattern: (")),
        ("REGEXP_EXTRACT_ALL", ("(a+)(b?)", "aab-a", 2), (["b", ""], None)),
        ("REGEXP_EXTRACT_ALL", ("(a+)(b?)", "x"), ([], None)),
        ("REGEXP_REPLACE", ("a1b22", "([0-9])+([a-z]?)", "<$1$2>"), ("a<1b><2>", None)),
        (
            "REGEXP_REPLACE",
            ("a1", "([0-9])(x?)", "$7"),
            (None, "Illegal group reference in replacement: $7"),
        ),
        ("REGEXP_SPLIT_TO_ARRAY", ("a1b22c", "[0-9]{1,}"), (["a", "b", "c"], None)),
        ("REGEXP_SPLIT_TO_ARRAY", ("abc", "x*"), (["a", "b", "c"], None)),
        ("REGEXP_SPLIT_TO_ARRAY", ("", "x*"), ([""], None)),
        ("REGEXP_SPLIT_TO_ARRAY", ("1a1", "(1)+"), (["", "a", ""], None)),
    ],
)
def test_what_is_counted_gives_what_java_gives(spark, function, args, wanted, known):
    assert answer(spark, function, *args, known=known) == wanted


@pytest.mark.heavy
def test_like_with_a_pattern_of_the_record(spark, seed):
    """As by definition, and in no time."""
    chance = random.Random(seed)

    def text(letters, most):
        return "".join(chance.choices(letters, k=chance.randrange(most)))

    cases = [(text("ab%_😀", 9), text("ab%_!😀", 7)) for _ in range(2000)]
    cases += [("a" * 5000, "%a" * 20 + "%b%"), (None, "a"), ("a", None), ("a", "a!"), ("a!", "a!")]
    rows = spark.createDataFrame(cases, "text string, pattern string").coalesce(1)
    found = rows.select(F.call_function(BOUNDED_LIKE, "text", "pattern", F.lit("!"))).collect()
    assert [row[0] for row in found] == [_like(*case) for case in cases]


@pytest.mark.heavy
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        (NEARLY, NESTED, False),
        (NESTED, NESTED, True),  # for LIKE it is a text like any other
        (NEARLY, "%" + NESTED + "%", False),
        (NEARLY, "%a" * 20 + "%$", False),
        (NEARLY, "%a" * 20 + "%b", True),
    ],
)
def test_like_ends(spark, text, pattern, matches, known):
    given = Literal(STRING, pattern) if known else ColumnValue(STRING, "pattern")
    made = lower(Like(BOOLEAN, ColumnValue(STRING, "text"), given, None))
    rows = spark.createDataFrame([(text, pattern)], "text string, pattern string")
    started = time.monotonic()
    assert made.error is None
    assert rows.select(made.value).collect()[0][0] is matches
    assert time.monotonic() - started < 20


def _like(text, pattern):
    if text is None or pattern is None:
        return None
    parts = re.findall(r"!.|.", pattern, re.DOTALL)
    known = {"%": ".*", "_": "."}
    if text.count("a") > 1000:
        return False
    expression = "".join(known.get(p, re.escape(p[-1])) for p in parts)
    return re.fullmatch(expression, text, re.DOTALL) is not None
