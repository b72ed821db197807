"""Odd arguments to every scalar function: none of them may stop a query."""

import decimal
import random

import pytest
from scalar_session import start

from headrace.functions.declare.declaration import CallContext, Fallible, FunctionKind
from headrace.functions.declare.signatures import (
    ANY,
    DECIMAL,
    Generic,
    has_generics,
)
from headrace.functions.registry import REGISTRY, LambdaShape
from headrace.model.representation import spark_type
from headrace.model.types import (
    BOOLEAN,
    INTEGER,
    STRING,
    Array,
    Decimal,
    Lambda,
    Map,
    base_name,
)

ROWS = 150
CHUNK = 12
TEXTS = [
    "",
    "x" * 3000,
    "\ufffd\ue000",
    " ",
    "a",
    "é",
    "😀x",
    "x😀y😀",
    "%",
    "(",
    "[",
    "\\",
    "$",
    "$1",
    "${a}",
    "*",
    "a*",
    "(a)(b)?",
    "\\d+",
    "{",
    "{}",
    "[]",
    "null",
    "-0",
    "1.5",
    "1e400",
    "'",
    "''",
    '"',
    '{"a":1,"a":2}',
    '{"a":[1,{"b":null}]}',
    '[1,"2",null,2.5]',
    "$.a",
    "$.a[0]",
    '$["a"]',
    "$..",
    "$[*]",
    "http://u@h:80/p%20q?a=1&b#f",
    "http://a b",
    "%zz",
    "mailto:x",
    "hex",
    "utf8",
    "ASCII",
    "base64",
    "0x1",
    "X'zz'",
    "4a",
    "SGk=",
    "S*",
    "UTC",
    "America/New_York",
    "+25:00",
    "Mars/X",
    "yyyy-MM-dd",
    "HH:mm:ss",
    "yyyy'",
    "[yyyy]",
    "zzz",
    "QQQ",
    "e",
    "2021-05-18",
    "2021-02-30",
    "12:34:56",
    "99",
    "BIG_ENDIAN",
    "little_endian",
    "ASC",
    "desc",
    "km",
    "MI",
    ",",
    "\x00",
    "\n",
    "\\u004b",
    "\\uzzzz",
]
VALUES = {
    "BOOLEAN": [True, False],
    "INTEGER": [0, 1, -1, 2, 5, 13, 2**31 - 1, -(2**31), 0xD800, 0x1F600],
    "BIGINT": [0, 1, -1, 86_400_000, 10**15, 2**63 - 1, -(2**63)],
    "DOUBLE": [0.0, -0.0, 1.5, -2.5, 91.0, 1e308, 5e-324, float("nan"), float("inf"), -1e-7],
    "STRING": TEXTS,
    "BYTES": [b"", b"\0", b"\xff\xfe", b"abcd", bytes(range(8)), b"\xff" * 8, bytes(16)],
    "DATE": [0, 1, -1, 18765, 2**31 - 1, -(2**31)],
    "TIME": [0, 1, 86_399_999, -1, 2**31 - 1],
    "TIMESTAMP": [0, 1, -1, 1_605_927_509_166, 2**63 - 1, -(2**63), 10**17],
    "INTERVAL UNIT": [1, 1000, 60_000, 3_600_000, 86_400_000],
}
DECIMALS = ["0", "1.5", "-2.5", "999999999.999999999", "-0.000000001"]
# What a generic may stand for; the first for A, T, …, the others in turn.
GENERICS = [STRING, INTEGER, Array(STRING), Map(STRING, INTEGER), Decimal(18, 9)]


def concrete(type_, chosen):
    match type_:
        case Generic():
            return chosen
        case Array(element):
            return Array(concrete(element, chosen))
        case Map(key, value):
            return Map(STRING if isinstance(key, Generic) else key, concrete(value, chosen))
    if type_ == DECIMAL:
        return Decimal(18, 9)
    return STRING if type_ == ANY else type_


def some(type_, dice):
    if dice.random() < 0.12:
        return None
    match type_:
        case Array(element):
            return [some(element, dice) for _ in range(dice.randrange(4))]
        case Map(key, value):
            keys = [some(key, dice) for _ in range(dice.randrange(4))]
            return {k: some(value, dice) for k in keys if k is not None}
        case Decimal():
            return decimal.Decimal(dice.choice(DECIMALS)).quantize(decimal.Decimal("1e-9"))
    return dice.choice(VALUES[base_name(type_)])


def body(*values):
    from pyspark.sql import functions as F

    return Fallible(
        F.lit(True) if len(values) < 3 else values[0],
        F.when(values[-1].isNull(), F.lit("null here")),
    )


class Call:
    """One overload with types for its generics."""

    def __init__(self, number, function, overload, chosen):
        self.number, self.function, self.overload = number, function, overload
        parameters = overload.signature.parameters
        if overload.signature.variadic is not None:
            parameters = overload.signature.spread(len(parameters) + 1)
        args = [
            LambdaShape(len(p.type.inputs))
            if isinstance(p.type, Lambda)
            else concrete(p.type, chosen)
            for p in parameters
        ]
        resolution = REGISTRY.resolve(function.name, args)
        state = args[1] if function.name == "REDUCE" else BOOLEAN
        results = {i: state for i, a in enumerate(args) if isinstance(a, LambdaShape)}
        self.types, self.returned = resolution.finish(results)
        self.overload = resolution.overload

    def values(self, dice):
        return [None if isinstance(t, Lambda) else some(t, dice) for t in self.types]

    def fields(self):
        from pyspark.sql import types as T

        return [
            T.StructField(
                f"a{self.number}_{i}",
                T.StringType() if isinstance(t, Lambda) else spark_type(t),
            )
            for i, t in enumerate(self.types)
        ]

    def column(self):
        from pyspark.sql import functions as F

        def lambda_(*values):
            result = body(*values)
            if self.function.name != "REDUCE":
                return result
            return Fallible(values[0], result.error)

        args = [
            lambda_ if isinstance(t, Lambda) else F.col(f.name)
            for f, t in zip(self.fields(), self.types, strict=True)
        ]
        result = self.overload.spark(args, CallContext(self.types, self.returned))
        if not isinstance(result, Fallible) or result.error is None:
            value = result.value if isinstance(result, Fallible) else result
            result = Fallible(value, F.lit(None).cast("string"))
        wrong = result.error.isNotNull() & result.value.isNotNull()
        # Both are computed in full, or Spark would not care to.
        return F.struct(
            F.xxhash64(F.to_json(F.struct(result.value.alias("v")))).alias("v"),
            result.error.alias("e"),
            wrong.alias("w"),
        ).alias(f"r{self.number}")


def calls():
    number = 0
    for function in REGISTRY.all():
        if function.kind is not FunctionKind.SCALAR or function.path != "internal":
            continue
        for overload in function.overloads:
            generic = any(has_generics(p.type) for p in overload.signature.parameters)
            for chosen in GENERICS if generic else GENERICS[:1]:
                if function.name in ("ARRAY_MAX", "ARRAY_MIN", "ARRAY_SORT") and isinstance(
                    chosen, (Array, Map)
                ):
                    continue
                try:
                    yield Call(number, function, overload, chosen)
                except Exception:
                    continue
                number += 1


CALLS = list(calls())


@pytest.fixture(scope="module")
def spark():
    session = start()
    yield session
    session.stop()


@pytest.mark.heavy
@pytest.mark.parametrize("first", range(0, len(CALLS), CHUNK))
def test_never_raises(spark, first):
    from pyspark.sql import types as T

    chunk = CALLS[first : first + CHUNK]
    dice = random.Random(first)
    rows = [tuple(v for c in chunk for v in c.values(dice)) for _ in range(ROWS)]
    schema = T.StructType([f for c in chunk for f in c.fields()])
    if not schema.fields:
        return
    frame = spark.createDataFrame(rows, schema).repartition(1)
    try:
        found = frame.select(*(c.column() for c in chunk)).collect()
    except Exception:
        for c in chunk:
            try:
                frame.select(c.column()).collect()
            except Exception as e:
                pytest.fail(f"{c.overload.signature.identity(c.function.name)}: {str(e)[:600]}")
        raise
    for c in chunk:
        assert not any(row[f"r{c.number}"]["w"] for row in found), c.function.name


def test_covers_every_function():
    names = {c.function.name for c in CALLS}
    scalars = {f.name for f in REGISTRY.all() if f.kind is FunctionKind.SCALAR}
    assert names == {n for n in scalars if REGISTRY.get(n).path == "internal"}
