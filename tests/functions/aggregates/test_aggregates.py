"""The step forms of the aggregates: exact results, and laws that hold for any values."""

from __future__ import annotations

import copy
import math
import pickle
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.functions.aggregates import FUNCTIONS, sketch
from headrace.functions.declare.declaration import (
    CallContext,
    Function,
    Overload,
    Steps,
)
from headrace.functions.registry import Registry
from headrace.model import types as t
from headrace.model.errors import StatementError

REGISTRY = Registry(FUNCTIONS)
INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
# Sums of these are exact, so that neither order nor undoing leaves a trace.
ROUND_DOUBLE = st.integers(-1000, 1000).map(lambda n: n / 4)
VALUES: dict[t.SqlType, st.SearchStrategy] = {
    t.BOOLEAN: st.booleans(),
    t.INTEGER: INT,
    t.BIGINT: LONG,
    t.DOUBLE: ROUND_DOUBLE,
    t.STRING: st.text(max_size=3),
    t.BYTES: st.binary(max_size=3),
    t.DATE: st.integers(-10_000, 10_000),
    t.TIME: st.integers(0, 86_399_999),
    t.TIMESTAMP: st.integers(0, 2**41),
    t.Decimal(10, 2): st.decimals(-1000, 1000, places=2),
    t.Array(t.INTEGER): st.lists(st.none() | INT, max_size=3),
    t.Array(t.BIGINT): st.lists(st.none() | LONG, max_size=3),
    t.Array(t.DOUBLE): st.lists(st.none() | ROUND_DOUBLE, max_size=3),
    t.Struct((t.Field("A", t.INTEGER),)): st.fixed_dictionaries({"A": st.none() | INT}),
}
ANYTHING = (t.INTEGER, t.STRING, t.DOUBLE, t.Array(t.INTEGER), t.Struct((t.Field("A", t.INTEGER),)))
ORDERED = (
    *(t.INTEGER, t.BIGINT, t.DOUBLE, t.STRING, t.BYTES, t.DATE, t.TIME, t.TIMESTAMP),
    t.Decimal(10, 2),
)
NUMBERS = (t.INTEGER, t.BIGINT, t.DOUBLE)

# Every aggregate, with the column types to try and its constants.
CALLS: list[tuple[str, tuple[t.SqlType, ...], tuple[object, ...]]] = [
    *(("COUNT", (x,), ()) for x in ANYTHING),
    *(("SUM", (x,), ()) for x in (*NUMBERS, t.Decimal(10, 2))),
    *(("SUM_LIST", (t.Array(x),), ()) for x in NUMBERS),
    *(("AVG", (x,), ()) for x in NUMBERS),
    *(("MIN", (x,), ()) for x in ORDERED),
    *(("MAX", (x,), ()) for x in ORDERED),
    *(("COUNT_DISTINCT", (x,), ()) for x in VALUES),
    *(("COLLECT_LIST", (x,), ()) for x in ANYTHING),
    *(("COLLECT_SET", (x,), ()) for x in ANYTHING),
    ("HISTOGRAM", (t.STRING,), ()),
    *(("ATTR", (x,), ()) for x in ANYTHING),
    *(("TOPK", (x,), (3,)) for x in (*NUMBERS, t.STRING)),
    ("TOPK", (t.INTEGER, t.STRING, t.DOUBLE), (3,)),
    *(("TOPKDISTINCT", (x,), (3,)) for x in ORDERED),
    *((f"{w}_BY_OFFSET", (x,), c) for w in ("EARLIEST", "LATEST") for x in ANYTHING
      for c in ((), (False,), (2,), (2, False))),
    *(("STDDEV_SAMP", (x,), ()) for x in NUMBERS),
    *(("STDDEV_SAMPLE", (x,), ()) for x in NUMBERS),
    *(("STDDEV_POP", (x,), ()) for x in NUMBERS),
    *(("CORRELATION", (x, x), ()) for x in NUMBERS),
]  # fmt: skip
LITERAL_TYPES = {bool: t.BOOLEAN, int: t.INTEGER}
# Their doubles are not exact sums of what went in: they are tried with moderate values.
INEXACT = ("STDDEV_SAMP", "STDDEV_SAMPLE", "STDDEV_POP", "CORRELATION")
MODERATE = {**VALUES, t.INTEGER: st.integers(-1000, 1000), t.BIGINT: st.integers(-1000, 1000)}


def bound(name, columns, literals=(), config=None) -> tuple[Overload, CallContext]:
    args = (*columns, *(LITERAL_TYPES[type(x)] for x in literals))
    resolution = REGISTRY.resolve(name, args)
    assert resolution.literal_count == len(literals)
    types, returns = resolution.finish({})
    nothing = (None,) * len(columns)
    return resolution.overload, CallContext(types, returns, (*nothing, *literals), config or {})


def steps_of(name, columns, literals=(), config=None) -> Steps:
    overload, context = bound(name, columns, literals, config)
    return overload.step(context)


def run(steps: Steps, rows, state=None):
    state = steps.initialize() if state is None else state
    for row in rows:
        if hasattr(steps, "arrival"):
            steps.arrival += 1
        state = steps.add(state, *row)
    return state


def over(name, type_, values, *literals, config=None):
    """The result over single values."""
    steps = steps_of(name, (type_,), literals, config)
    return steps.result(run(steps, [(v,) for v in values]))


def rows_of(columns, values):
    return st.lists(st.tuples(*(st.none() | values[c] for c in columns)), max_size=8)


def same(a, b) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-3) or (a != a and b != b)
    return a == b


def call_id(call) -> str:
    name, columns, literals = call
    return f"{name}({', '.join(map(str, (*columns, *literals)))})"


# ------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("call", CALLS, ids=call_id)
def test_the_laws_of_steps(call):
    name, columns, _ = call
    overload, context = bound(*call)
    steps = pickle.loads(pickle.dumps(overload.step(context)))  # as an executor gets it
    can_undo = getattr(steps, "undo", None) is not None
    assert overload.undoes == can_undo
    rows = rows_of(columns, MODERATE if name in INEXACT else VALUES)

    @settings(max_examples=25)
    @given(rows, rows)
    def laws(first, second):
        whole = steps.result(run(steps, first + second))

        merged = steps.merge(run(steps, first), run(steps, second))
        assert same(steps.result(merged), whole)
        for both in (
            steps.merge(steps.initialize(), run(steps, first)),
            steps.merge(run(steps, first), steps.initialize()),
        ):
            assert same(steps.result(both), steps.result(run(steps, first)))

        stored = pickle.loads(pickle.dumps(run(steps, first)))
        assert same(steps.result(run(steps, second, stored)), whole)

        state = run(steps, first)
        before = copy.deepcopy(steps.result(state))
        shown = steps.result(state)
        run(steps, second, state)
        assert same(shown, before), "a result changes with the state it came from"

        if can_undo:
            state = run(steps, first + second)
            for row in reversed(second):
                state = steps.undo(state, *row)
            assert same(steps.result(state), before)

    laws()


@pytest.mark.parametrize("call", CALLS, ids=call_id)
def test_nulls_and_nothing(call):
    steps = steps_of(*call)
    empty = steps.result(steps.initialize())
    nulls = steps.result(run(steps, [(None,) * len(call[1])]))
    keeps_nulls = call[0].startswith("COLLECT") or call[2][-1:] == (False,)
    if keeps_nulls:
        assert nulls in (None, [None])
    else:
        assert same(nulls, empty)


INTEGERS = ("INT", "BIGINT")
COMPARABLE = ("INT", "BIGINT", "DOUBLE", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "VARCHAR", "BYTES")
# The overloads that ksqlDB has, by the types of their parameters.
KSQLDB = {
    "ATTR": {"A"},
    "AVG": {*INTEGERS, "DOUBLE"},
    "COLLECT_LIST": {"A"},
    "COLLECT_SET": {"A"},
    "CORRELATION": {f"{x}, {x}" for x in (*INTEGERS, "DOUBLE")},
    "COUNT": {"A"},
    "COUNT_DISTINCT": {"A"},
    "EARLIEST_BY_OFFSET": {"A", "A, BOOLEAN", "A, INT", "A, INT, BOOLEAN"},
    "HISTOGRAM": {"VARCHAR"},
    "LATEST_BY_OFFSET": {"A", "A, BOOLEAN", "A, INT", "A, INT, BOOLEAN"},
    "MAX": {*COMPARABLE},
    "MIN": {*COMPARABLE},
    "STDDEV_SAMP": {*INTEGERS, "DOUBLE"},
    "STDDEV_SAMPLE": {*INTEGERS, "DOUBLE"},
    "SUM": {*INTEGERS, "DOUBLE", "DECIMAL"},
    "SUM_LIST": {f"ARRAY<{x}>" for x in (*INTEGERS, "DOUBLE")},
    "TOPK": {f"{x}, ANY..., INT" for x in (*INTEGERS, "DOUBLE", "VARCHAR")},
    "TOPKDISTINCT": {f"{x}, INT" for x in COMPARABLE},
}
OURS = {"STDDEV_POP": {*INTEGERS, "DOUBLE"}}


def test_every_overload_of_ksqldb_is_there():
    def types(overload):
        texts = overload.signature.text("")[1:-1].split(", ")
        return ", ".join(text.split(" ")[0] for text in texts)

    found = {f.name: {types(o) for o in f.overloads} for f in FUNCTIONS}
    assert found == KSQLDB | OURS


def test_every_aggregate_of_the_registry_is_tried():
    assert {f.name for f in FUNCTIONS} == {name for name, _, _ in CALLS}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_examples(function: Function):
    assert function.examples and function.description
    suggested = {int: t.INTEGER, float: t.DOUBLE, str: t.STRING}

    def type_of(column):
        first = next(v for v in column if v is not None)
        return t.Array(t.INTEGER) if isinstance(first, list) else suggested[type(first)]

    for example in function.examples:
        columns = [a for a in example.args if isinstance(a, list)]
        literals = [a for a in example.args if not isinstance(a, list)]
        steps = steps_of(function.name, tuple(map(type_of, columns)), tuple(literals))
        assert steps.result(run(steps, zip(*columns, strict=True))) == example.gives


# ---------------------------------------------------------------------------- exact, as in ksqlDB


def test_sums_wrap_around():
    assert over("SUM", t.INTEGER, [2**31 - 1, 1]) == -(2**31)
    assert over("SUM", t.BIGINT, [2**63 - 1, 2]) == -(2**63) + 1
    assert over("AVG", t.INTEGER, [2**31 - 1, 1]) == -(2**30)
    assert over("SUM_LIST", t.Array(t.INTEGER), [[2**31 - 1, None], [1]]) == -(2**31)


def test_sum_of_decimals_keeps_the_type_and_reports_overflow():
    overload, context = bound("SUM", (t.Decimal(4, 1),))
    assert context.return_type == t.Decimal(4, 1)
    steps = overload.step(context)
    state = run(steps, [(Decimal("500.9"),), (Decimal("300.8"),)])
    assert str(steps.result(state)) == "801.7"
    with pytest.raises(OverflowError) as raised:
        steps.add(state, Decimal("400.8"))
    assert str(raised.value) == (
        "Numeric field overflow: A field with precision 4 and scale 1 must round to an absolute "
        "value less than 10^3. Got 1203"
    )
    assert str(steps.result(state)) == "801.7"
    assert str(steps.result(steps.initialize())) == "0.0"


def test_sum_of_wide_decimals_is_exact():
    nines = Decimal("9" * 18 + "." + "9" * 19)
    assert over("SUM", t.Decimal(38, 19), [nines, nines.copy_negate(), nines]) == nines


@pytest.mark.parametrize("name", ["SUM", "AVG", "STDDEV_SAMP"])
def test_no_implicit_casts(name):
    with pytest.raises(StatementError, match=f"Function '(?i:{name})' does not accept parameters"):
        REGISTRY.resolve(name, (t.STRING,))


def test_strings_have_the_order_of_utf_16():
    words = ["\ufb01", "\U0001f600", "z"]
    assert over("MAX", t.STRING, words) == "\ufb01"
    assert over("TOPK", t.STRING, words, 2) == ["\ufb01", "\U0001f600"]
    assert over("MIN", t.STRING, ["é", "e"]) == "e"


def test_bytes_are_signed():
    assert over("MAX", t.BYTES, [b"\x80", b"\x7f"]) == b"\x7f"
    assert over("MIN", t.BYTES, [b"\x80", b"\x7f"]) == b"\x80"


def test_doubles_that_are_not_numbers():
    assert math.isnan(over("MAX", t.DOUBLE, [1.0, math.nan, 2.0]))
    assert over("MIN", t.DOUBLE, [math.nan, 2.0]) == 2.0
    assert math.copysign(1, over("MAX", t.DOUBLE, [-0.0, 0.0])) == 1
    assert len(over("COLLECT_SET", t.DOUBLE, [math.nan, math.nan, 0.0, -0.0])) == 3
    assert over("ATTR", t.DOUBLE, [0.0, -0.0]) is None


def test_limits():
    for name in ("COLLECT_LIST", "COLLECT_SET"):
        setting = f"ksql.functions.{name.lower()}.limit"
        for limit in (2, "2"):
            assert over(name, t.INTEGER, [1, 2, 3], config={setting: limit}) == [1, 2]
        assert over(name, t.INTEGER, [1, 2, 3], config={setting: -1}) == [1, 2, 3]
        with pytest.raises(StatementError):
            over(name, t.INTEGER, [1], config={setting: "many"})
    limited = steps_of("COLLECT_LIST", (t.INTEGER,), (), {"ksql.functions.collect_list.limit": 3})
    assert limited.merge([1, 2], [3, 4]) == [1, 2, 3]
    assert limited.undo([1, 2, 3], 4) == [1, 2, 3]
    histogram = over("HISTOGRAM", t.STRING, [*map(str, range(1001)), "7"])
    assert len(histogram) == 1000 and histogram["7"] == 2 and "1000" not in histogram


def test_topk():
    assert over("TOPK", t.INTEGER, [5, 5, 1, 9], 2) == [9, 5]
    assert over("TOPKDISTINCT", t.INTEGER, [5, 5, 1, 9], 3) == [9, 5, 1]
    assert over("TOPK", t.INTEGER, [1], 0) == []
    overload, context = bound("TOPK", (t.INTEGER, t.STRING), (2,))
    assert str(context.return_type) == "ARRAY<STRUCT<`sort_col` INTEGER, `col0` STRING>>"
    steps = overload.step(context)
    state = run(steps, [(1, "a"), (3, "b"), (3, "c"), (None, "d")])
    assert steps.result(state) == [{"sort_col": 3, "col0": "b"}, {"sort_col": 3, "col0": "c"}]


def test_by_offset():
    assert over("EARLIEST_BY_OFFSET", t.INTEGER, [None, 1, 2], False) is None
    assert over("LATEST_BY_OFFSET", t.INTEGER, [1, None], False) is None
    assert over("EARLIEST_BY_OFFSET", t.INTEGER, [None, 1, 2], 2, False) == [None, 1]
    assert over("LATEST_BY_OFFSET", t.INTEGER, [1, None, 2, 3], 2) == [2, 3]
    for name, text in (("EARLIEST_BY_OFFSET", "earliestN"), ("LATEST_BY_OFFSET", "latestN")):
        with pytest.raises(StatementError, match=f"{text} must be 1 or greater"):
            steps_of(name, (t.INTEGER,), (0,))


def test_by_offset_sessions_merge_in_the_order_of_arrival():
    latest = steps_of("LATEST_BY_OFFSET", (t.INTEGER,))
    latest.arrival = 1
    early = latest.add(None, 1)
    latest.arrival = 2
    late = latest.add(None, 2)
    assert latest.result(latest.merge(late, early)) == 2
    assert latest.newest(late) == 2
    earliest = steps_of("EARLIEST_BY_OFFSET", (t.INTEGER,), (2,))
    earliest.arrival = 1
    early = earliest.add([], 1)
    earliest.arrival = 2
    late = earliest.add([], 2)
    assert earliest.result(earliest.merge(late, early)) == [1, 2]
    assert earliest.newest(late) == 2


def test_deviations():
    assert over("STDDEV_SAMP", t.INTEGER, [0, 10]) == 50.0
    assert over("STDDEV_SAMPLE", t.INTEGER, [0, 10]) == 7.0710678118654755
    # The square of a deviation of integers is of a wrapped 64-bit integer.
    assert over("STDDEV_SAMP", t.BIGINT, [2**62, -(2**62) - 1]) == 0.5 * float(2**63 - 1) ** 2
    assert over("STDDEV_SAMP", t.DOUBLE, [4.0]) == 0.0


def test_correlation_that_is_not_defined():
    for rows in ([], [(1.0, 2.0)], [(1.0, 2.0), (1.0, 3.0)], [(None, 1.0)]):
        steps = steps_of("CORRELATION", (t.DOUBLE, t.DOUBLE))
        assert math.isnan(steps.result(run(steps, rows)))


# As stream-lib 2.9.8 hashes and counts them.
HASHES = [
    (t.INTEGER, 1, 1527037976),
    (t.BIGINT, -5, 615997438),
    (t.BIGINT, 1 << 40, 3357743195),
    (t.DOUBLE, 3.25, 2844088),
    (t.STRING, "", 3008980656),
    (t.STRING, "ab", 2497434858),
    (t.STRING, "héllo wörld", 1630776496),
    (t.STRING, "\U0001f600x", 1845230764),
]


@pytest.mark.parametrize(("type_", "value", "hashed"), HASHES)
def test_hashes(type_, value, hashed):
    assert sketch.hasher(type_)(value) == hashed


def test_distinct_counts():
    values = [i * 7919 for i in range(5000)]
    assert over("COUNT_DISTINCT", t.BIGINT, values[:1000]) == 1003
    assert over("COUNT_DISTINCT", t.BIGINT, values) == 4982
    steps = steps_of("COUNT_DISTINCT", (t.BIGINT,))
    left, right = (run(steps, [(v,) for v in part]) for part in (values[:600], values[500:]))
    right[2] = bytes(right[2])  # as a store may give it back
    assert steps.result(steps.merge(left, right)) == 4982
    assert steps.result(steps.add(right, 1)) > 0


def test_aggregates_whose_state_is_one_primitive_value():
    simple = {function.name for function in FUNCTIONS if function.simple_state}
    assert simple == {"COUNT", "SUM", "SUM_LIST", "MIN", "MAX"}
