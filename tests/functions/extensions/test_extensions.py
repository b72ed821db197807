"""User functions without Spark: declared, loaded, called batch by batch as an executor does it."""

from __future__ import annotations

import datetime
import pickle
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from headrace.functions import udaf, udf, udtf
from headrace.functions.declare.declaration import CallContext, FunctionKind
from headrace.functions.declare.signatures import parse_signature, parse_type
from headrace.functions.extensions import DeclarationError, collecting, load_extensions
from headrace.functions.extensions.batches import ArrowBatch, PandasBatch, RowBatch, TableBatch
from headrace.functions.extensions.calling import Body
from headrace.functions.extensions.values import held, shown
from headrace.functions.registry import REGISTRY, Registry
from headrace.model import types as t
from headrace.model.errors import StatementError

ROOT = Path(__file__).parents[3]


def declared(declare):
    with collecting() as functions:
        declare()
    return functions


def signatures(function):
    return [o.signature.text(function.name) for o in function.overloads]


def refused(declare):
    with pytest.raises(DeclarationError) as raised:
        declared(declare)
    return str(raised.value)


def body(function, *, takes_null=(), config=False):
    return Body("F", function, takes_null, config, None)


def call(kind, function, args, returns, *columns, **more):
    """The batch's values and errors for columns of plain values."""
    types = tuple(map(parse_type, args))
    context = CallContext(types, parse_type(returns), settings=more.pop("settings", {}))
    batch = kind(body(function, **more), context, parse_type(returns))
    arrays = [pa.array(c) for c in columns]
    result = batch(pa.array([True] * (len(columns[0]) if columns else 3)), *arrays)
    return result.field("value").to_pylist(), result.field("error").to_pylist()


# ---------------------------------------------------------------------------------------- declaring


def test_types_from_annotations():
    def declare():
        @udf
        def every(
            a: int, b: float, c: str, d: bool, e: bytes, f: Decimal, g: list[int] | None
        ) -> dict[str, list[float]]:
            """Takes everything.

            And more.
            """

    (every,) = declared(declare)
    assert every.name == "EVERY" and every.kind is FunctionKind.SCALAR
    assert every.description == "Takes everything."
    assert signatures(every) == [
        "EVERY(BIGINT a, DOUBLE b, VARCHAR c, BOOLEAN d, BYTES e, DECIMAL f, ARRAY<BIGINT> g)"
    ]
    assert every.overloads[0].signature.returns == t.Map(t.STRING, t.Array(t.DOUBLE))


def test_defaults_are_overloads():
    def declare():
        @udf
        def pad(text: str, width: int = 8, fill: str = " ") -> str:
            return text.rjust(width, fill)

    (pad,) = declared(declare)
    assert len(pad.overloads) == 3
    found = Registry([pad]).resolve("PAD", (t.STRING, t.INTEGER))
    assert found.finish({}) == ((t.STRING, t.BIGINT), t.STRING)


def test_written_signatures_and_what_is_said_of_them():
    def declare():
        @udf(
            "(v1 INTEGER) -> BIGINT",
            "(v1 DOUBLE) -> BIGINT",
            name="formula",
            description="It matters.",
            author="me",
            version="2",
            parameters={"v1": "a factor"},
        )
        def f(v1):
            """"""

    (formula,) = declared(declare)
    assert (formula.name, formula.description) == ("FORMULA", "It matters.")
    assert (formula.author, formula.version) == ("me", "2")
    assert signatures(formula) == ["FORMULA(INT v1)", "FORMULA(DOUBLE v1)"]
    assert formula.overloads[0].signature.parameters[0].description == "a factor"


def test_table_functions_give_rows():
    def declare():
        @udtf
        def one(x: str) -> list[int]: ...
        @udtf
        def two(x: str) -> Iterator[dict[str, str]]: ...
        @udtf("(x A) -> A")
        def three(x): ...

    one, two, three = declared(declare)
    assert {f.kind for f in (one, two, three)} == {FunctionKind.TABLE}
    assert one.overloads[0].signature.returns == t.BIGINT
    assert two.overloads[0].signature.returns == t.Map(t.STRING, t.STRING)


def test_aggregates():
    class Steps:
        def initialize(self): ...
        def merge(self, a, b): ...

    def declare():
        @udaf
        class RollingSum(Steps):
            def __init__(self, size: int = 3) -> None: ...
            def add(self, state, value: int): ...
            def result(self, state) -> int: ...

        @udaf("(a BIGINT, others STRING..., const n INTEGER) -> BIGINT")
        class Several(Steps):
            def __init__(self, n): ...
            def add(self, state, a, *others): ...
            def undo(self, state, a, *others): ...
            def result(self, state): ...

    rolling, several = declared(declare)
    assert rolling.name == "ROLLING_SUM" and rolling.kind is FunctionKind.AGGREGATE
    assert signatures(rolling) == [
        "ROLLING_SUM(INT value)",
        "ROLLING_SUM(BIGINT value)",
        "ROLLING_SUM(INT value, BIGINT size)",
        "ROLLING_SUM(BIGINT value, BIGINT size)",
    ]
    assert not rolling.overloads[0].undoes and several.overloads[0].undoes
    registry = Registry([rolling, several])
    assert registry.resolve("ROLLING_SUM", (t.INTEGER, t.BIGINT)).literal_count == 1
    assert registry.resolve("SEVERAL", (t.BIGINT, t.STRING, t.STRING, t.INTEGER)).literal_count == 1


def test_what_is_refused_says_why():
    def no_type():
        udf(lambda x: x, name="F")

    def no_return():
        @udf
        def f(x: int): ...

    def unknown():
        @udf
        def f(x: complex) -> int: ...

    def no_sql():
        @udf("(x INT) -> NUMBER")
        def f(x): ...

    def misfit():
        @udf("(x INT, y INT) -> INT")
        def f(x): ...

    def keyword():
        @udf
        def f(*, x: int) -> int: ...

    def decimal():
        @udf
        def f(x: int) -> Decimal: ...

    def no_step():
        @udaf("(x INT) -> INT")
        class F:
            def add(self, state, x): ...

    def one_row():
        @udtf
        def f(x: int) -> int: ...

    def unbound():
        @udf("(x INT) -> A")
        def f(x): ...

    def taking_a_lambda():
        @udf("(x ARRAY<A>, f LAMBDA (A) => B) -> ARRAY<B>")
        def f(x, f): ...

    def vector():
        @udf(vectorized="pandas")
        def f(x: int) -> int: ...

    def style():
        @udf("(x INT) -> INT", vectorized="numpy")
        def f(x): ...

    def constant():
        @udf("(const x INT) -> INT")
        def f(x): ...

    assert "no return type" in refused(no_return)
    assert "'f'" not in refused(no_type) or "no type" in refused(no_type)
    assert "no SQL type is known for <class 'complex'>" in refused(unknown)
    assert "NUMBER" in refused(no_sql)
    assert "'f' does not fit its signature" in refused(misfit)
    assert "'x' cannot be given in SQL" in refused(keyword)
    assert "say its precision and scale" in refused(decimal)
    assert "F has no method 'initialize'" in refused(no_step)
    assert "annotate it list" in refused(one_row)
    assert "the return type A is no parameter's type" in refused(unbound)
    assert "a Python function cannot take" in refused(taking_a_lambda)
    assert "needs its signature" in refused(vector)
    assert "'arrow' or 'pandas'" in refused(style)
    assert "only aggregates take constants" in refused(constant)


# ------------------------------------------------------------------------------------------ calling


def test_rows_that_fail_fail_alone():
    values, errors = call(RowBatch, lambda x: 10 // x, ["INTEGER"], "INTEGER", [5, 0, 2])
    assert values == [2, None, 5]
    assert errors == [None, "ZeroDivisionError: integer division or modulo by zero", None]


def test_results_are_checked():
    values, errors = call(RowBatch, lambda x: x, ["STRING"], "BIGINT", ["a", None])
    assert values == [None, None]
    assert errors == ["TypeError: expected an int, got str 'a'", None]
    _, errors = call(RowBatch, lambda x: x, ["BIGINT"], "INTEGER", [2**40])
    assert errors == ["ValueError: 1099511627776 does not fit into INTEGER"]


def test_nulls():
    def shout(x, y):
        return f"{x}{y}"

    columns = (["a", None, "c"], ["x", "y", None])
    types = (["STRING", "STRING"], "STRING")
    assert call(RowBatch, shout, *types, *columns, takes_null=(False, False))[0] == [
        "ax",
        None,
        None,
    ]
    assert call(RowBatch, shout, *types, *columns, takes_null=(False, True))[0] == [
        "ax",
        None,
        "cNone",
    ]
    assert call(RowBatch, shout, *types, *columns)[0] == ["ax", "Noney", "cNone"]


def test_functions_without_arguments_and_with_settings():
    assert call(RowBatch, lambda: 7, [], "INTEGER")[0] == [7, 7, 7]

    def configured(x, *, config):
        return x + int(config["ksql.functions.f.add"]) + len(config)

    settings = {"ksql.functions.f.add": "10", "ksql.functions.g.add": 1}
    values, _ = call(
        RowBatch, configured, ["INTEGER"], "INTEGER", [1], config=True, settings=settings
    )
    assert values == [12]


def test_table_functions():
    def words(x):
        yield from x.split()

    values, errors = call(TableBatch, words, ["STRING"], "ARRAY<STRING>", ["a b", "", "c"])
    assert values == [["a", "b"], [], ["c"]] and errors == [None] * 3
    values, errors = call(TableBatch, lambda x: None, ["STRING"], "ARRAY<STRING>", ["a"])
    assert values == [None]
    assert "Table function F returned null. This is invalid." in errors[0]
    values, errors = call(
        TableBatch, words, ["STRING"], "ARRAY<STRING>", [None], takes_null=(False,)
    )
    assert (values, errors) == ([[]], [None])


def test_nested_values():
    kind = "MAP<STRING, STRUCT<A ARRAY<DATE>>>"
    values = [[("k", {"A": [0, None, 365]})], None]
    array = pa.array(values, pa.map_(pa.string(), pa.struct([("A", pa.list_(pa.int32()))])))
    seen = []

    def function(x):
        seen.append(x)
        return x

    result, errors = call(RowBatch, function, [kind], kind, array)
    day = datetime.date
    assert seen[0] == {"k": {"A": [day(1970, 1, 1), None, day(1971, 1, 1)]}}
    assert errors == [None, None] and result == values


def test_vectorized_functions():
    import pyarrow.compute as pc

    values, errors = call(
        ArrowBatch, lambda x: pc.multiply(x, 2), ["BIGINT"], "BIGINT", [1, None, 3]
    )
    assert values == [2, None, 6] and errors == [None] * 3
    values, errors = call(PandasBatch, lambda x: x + 1, ["INTEGER"], "BIGINT", [2**30, None, 3])
    assert values == [2**30 + 1, None, 4] and errors == [None] * 3

    def picky(x):
        if x.max() > 5:
            raise ValueError("too big")
        return x

    values, errors = call(PandasBatch, picky, ["INTEGER"], "INTEGER", [1, 9, 3])
    assert values == [1, None, 3] and errors == [None, "ValueError: too big", None]
    _, errors = call(ArrowBatch, lambda x: x.slice(0, 0), ["INTEGER"], "INTEGER", [1])
    assert errors == ["ValueError: expected 1 values, got 0"]
    assert call(ArrowBatch, lambda x: x.slice(0, 0), ["INTEGER"], "INTEGER", [])[0] == []


@pytest.mark.parametrize(
    ("type_", "row", "seen"),
    [
        ("DATE", -1, datetime.date(1969, 12, 31)),
        ("TIME", 3_723_004, datetime.time(1, 2, 3, 4000)),
        ("TIMESTAMP", 1_700_000_000_123, datetime.datetime(2023, 11, 14, 22, 13, 20, 123000)),
        ("ARRAY<DATE>", [0, None], [datetime.date(1970, 1, 1), None]),
        ("MAP<STRING, TIME>", {"a": 0}, {"a": datetime.time(0)}),
    ],
)
def test_dates_and_times(type_, row, seen):
    parsed = parse_type(type_)
    assert shown(parsed)(row) == seen
    assert held(parsed, seen) == row
    assert shown(t.BIGINT) is None


@pytest.mark.parametrize(
    ("type_", "given", "kept"),
    [
        ("DOUBLE", 3, 3.0),
        ("DECIMAL(4, 2)", 1.005, Decimal("1.01")),
        ("DECIMAL(4, 2)", Decimal("1.25"), Decimal("1.25")),
        ("BYTES", bytearray(b"x"), b"x"),
        ("ARRAY<INTEGER>", (1, 2), [1, 2]),
        ("STRUCT<A INTEGER, B STRING>", {"A": 1}, {"A": 1, "B": None}),
        ("TIMESTAMP", datetime.datetime(1970, 1, 1, 1, tzinfo=datetime.UTC), 3_600_000),
    ],
)
def test_results_that_fit(type_, given, kept):
    assert held(parse_type(type_), given) == kept


@pytest.mark.parametrize(
    ("type_", "given"),
    [
        ("INTEGER", True),
        ("INTEGER", 1.0),
        ("BOOLEAN", 1),
        ("STRING", b"x"),
        ("DOUBLE", "1"),
        ("DECIMAL(3, 2)", 10),
        ("DECIMAL(3, 2)", float("nan")),
        ("ARRAY<STRING>", "abc"),
        ("STRUCT<A INTEGER>", {"B": 1}),
        ("STRUCT<A INTEGER>", [1]),
        ("DATE", 5),
        ("MAP<STRING, INTEGER>", 5),
    ],
)
def test_results_that_do_not_fit(type_, given):
    with pytest.raises((TypeError, ValueError)):
        held(parse_type(type_), given)


# ------------------------------------------------------------------------------------------ loading


@pytest.fixture
def ext(tmp_path):
    def write(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        registry = REGISTRY.copy()
        problems = load_extensions(tmp_path, registry)
        return registry, [str(p).removeprefix(f"{tmp_path}/") for p in problems]

    return write


USE = "from headrace.functions import udf, udaf, udtf\n"


def test_a_missing_directory_is_no_problem(tmp_path):
    assert load_extensions(tmp_path / "none", REGISTRY.copy()) == []


def test_a_file_that_does_not_load_is_reported_and_others_work(ext):
    registry, problems = ext(
        a_good=USE + "@udf\ndef good(x: int) -> int:\n    return x\n",
        b_syntax="def f(:\n",
        c_raises="x = 1\nx / 0\n",
        d_import="import not_there_at_all\n",
        e_types=USE + "@udf\ndef f(x) -> int: ...\n",
        f_taken=USE + "@udf\ndef mine(x: int) -> int: ...\n@udf(name='COUNT')\n"
        "def f(x: int) -> int: ...\n",
        g_exit="import sys\nsys.exit(3)\n",
        h_twice=USE + "@udf('(x INT) -> INT', '(x INT) -> INT')\ndef f(x): ...\n",
        i_kinds=USE + "@udf\ndef f(x: int) -> int: ...\n@udtf\ndef f(x: int) -> list[int]: ...\n",
        j_good=USE + "@udtf\ndef also(x: int) -> list[int]:\n    return [x]\n",
    )
    assert registry.kind("GOOD") is FunctionKind.SCALAR
    assert registry.kind("ALSO") is FunctionKind.TABLE
    assert registry.kind("MINE") is None
    assert problems == [
        "b_syntax.py:1: SyntaxError: invalid syntax",
        "c_raises.py:2: ZeroDivisionError: division by zero",
        "d_import.py:1: ModuleNotFoundError: No module named 'not_there_at_all'",
        "e_types.py:2: 'x' has no type; annotate it, or write the function's signature",
        "f_taken.py: UdfFactory already registered as aggregate: COUNT",
        "g_exit.py:2: SystemExit: 3",
        "h_twice.py: F(INT x) is declared twice",
        "i_kinds.py: F cannot be both SCALAR and TABLE",
    ]


def test_overloads_in_several_functions(ext):
    registry, problems = ext(
        f=USE + "@udf\ndef f(x: int) -> int: ...\n@udf\ndef f(x: str) -> str: ...\n"
    )
    assert problems == []
    assert signatures(registry.get("F")) == ["F(BIGINT x)", "F(VARCHAR x)"]


SQL_TYPES = """
import datetime

@udf
def times(a: datetime.date, b: "datetime.time", c: datetime.datetime) -> "DECIMAL(5, 2)": ...

@udf
def sql(a: "STRUCT<X INTEGER>", b: "ARRAY<A>", *c: "A") -> "A": ...
"""


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_sql_types_in_annotations(ext, future):
    registry, problems = ext(f=future + USE + SQL_TYPES)
    assert problems == []
    times, sql = registry.get("TIMES"), registry.get("SQL")
    assert signatures(times) == ["TIMES(DATE a, TIME b, TIMESTAMP c)"]
    assert times.overloads[0].signature.returns == t.Decimal(5, 2)
    assert signatures(sql) == ["SQL(STRUCT<X INT> a, ARRAY<A> b, A... c)"]


AGGREGATE = """
from ._shared import double

@udaf('(x INTEGER, const n INTEGER) -> BIGINT')
class Doubled:
    def __init__(self, n): self.n = n
    def initialize(self): return 0
    def add(self, state, x): return state + double(x) * self.n
    def merge(self, a, b): return a + b
    def result(self, state): return state
"""


def test_aggregates_travel_with_their_source(ext):
    registry, problems = ext(
        _shared="def double(x):\n    return 2 * x\n",
        agg=USE + AGGREGATE,
    )
    assert problems == []
    found = registry.resolve("DOUBLED", (t.INTEGER, t.INTEGER))
    types, returns = found.finish({})
    for context in (
        CallContext(types, returns, (None, 3)),
        CallContext(types[:1], returns, (3,)),
    ):
        steps = found.overload.step(context)
        assert steps.result(steps.add(steps.initialize(), 5)) == 30
    script = (
        "import sys, pickle; s = pickle.loads(sys.stdin.buffer.read());"
        "print(s.result(s.add(s.initialize(), 5)))"
    )
    # Another process, which has never heard of the directory.
    done = subprocess.run(
        [sys.executable, "-c", script], input=cloudpickle.dumps(steps), capture_output=True
    )
    assert done.stdout == b"30\n", done.stderr.decode()


def test_an_aggregate_that_fails():
    class Bad:
        def __init__(self, n):
            if n < 0:
                raise ValueError("n is negative")

        def initialize(self):
            return 0

        def add(self, state, x):
            return state

        def merge(self, a, b):
            raise RuntimeError

        def result(self, state):
            return "text"

    (bad,) = declared(lambda: udaf("(x INTEGER, const n INTEGER) -> BIGINT")(Bad))
    with pytest.raises(StatementError, match="BAD: ValueError: n is negative"):
        bad.overloads[0].step(CallContext((t.INTEGER, t.INTEGER), t.BIGINT, (None, -1)))
    steps = bad.overloads[0].step(CallContext((t.INTEGER, t.INTEGER), t.BIGINT, (None, 1)))
    assert steps.merge(1, 2) == 1 and steps.result(1) is None and steps.undo is None


def test_aggregates_see_dates():
    class Latest:
        def initialize(self):
            return None

        def add(self, state, day):
            return str(day)

        undo = add

        def merge(self, a, b):
            return b

        def result(self, state):
            return state

    (latest,) = declared(lambda: udaf("(day DATE) -> STRING")(Latest))
    steps = latest.overloads[0].step(CallContext((t.DATE,), t.STRING, (None,)))
    steps = pickle.loads(cloudpickle.dumps(steps))
    assert steps.result(steps.add(steps.initialize(), 0)) == "1970-01-01"
    assert steps.undo(None, 1) == "1970-01-02"


PRELUDE = """
import functools
from collections.abc import Iterator
from headrace.functions import udaf, udf, udtf
"""


def test_the_guide_works(ext):
    """Every function of the guide loads."""
    guide = (ROOT / "docs" / "user-functions.md").read_text()
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", guide, re.S | re.M)
    texts = [textwrap.dedent(text) for _, text in blocks]
    whole = [text for text in texts if "@ud" in text and re.search(r"^(def|class) ", text, re.M)]
    assert len(whole) >= 4
    registry, problems = ext(**{f"g{i}": PRELUDE + text for i, text in enumerate(whole)})
    assert problems == []
    for name in ("INITIALS", "FAHRENHEIT", "WORDS", "ROLLING_SUM", "FORMULA"):
        assert registry.kind(name) is not None
    for signature in re.findall(r'^@udf\((".*")\)  ', guide, re.M):
        for text in re.findall(r'"(.*?)"', signature):
            parse_signature(text)


def test_the_template_works(tmp_path):
    registry = REGISTRY.copy()
    assert load_extensions(ROOT / "examples" / "ext", registry) == []
    rolling = registry.resolve("ROLLING_SUM", (t.INTEGER, t.INTEGER))
    steps = rolling.overload.step(CallContext((t.INTEGER, t.INTEGER), t.BIGINT, (None, 2)))
    state = steps.initialize()
    for value in (1, 2, None, 3):
        state = steps.add(state, value)
    assert steps.result(state) == 5
    assert steps.result(steps.undo(state, 3)) == 2
