"""Functions: those that Spark has too beside Spark's own, and those that are Python in batches.

The rows are in memory, and nothing is done with the results: what is left is the function.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.bench.figures import BY_HAND, HEADRACE, Bar, Row, Samples, samples
from headrace.bench.measures import Measure, Run
from headrace.functions.declare.declaration import CallContext, Fallible
from headrace.functions.registry import REGISTRY
from headrace.model.errors import HeadraceError
from headrace.model.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    SqlType,
)

# The columns that functions are called on: their types, and how they are made of a row's number.
COLUMNS: dict[str, tuple[SqlType, str]] = {
    "word": (STRING, "concat('  Word number ', id % 1000)"),
    "other": (STRING, "IF(id % 3 = 0, NULL, concat('other ', id))"),
    "small": (INTEGER, "CAST(id % 100 - 50 AS INT)"),
    "large": (BIGINT, "id * 7919"),
    "ratio": (DOUBLE, "id / 7.0D"),
    "words": (Array(STRING), "array('a', 'b', concat('c', id % 10))"),
    "url": (STRING, "concat('https://example.org:8080/path/', id, '?a=1')"),
    "json": (STRING, "concat('{\"a\":{\"b\":', id, '},\"c\":[1,2]}')"),
    "items": (STRING, "concat('[', id, ',2,3]')"),
    "at": (TIMESTAMP, "1700000000000 + id * 1000"),
    "day": (DATE, "CAST(19000 + id % 1000 AS INT)"),
    "clock": (TIME, "CAST(id % 86400 * 1000 AS INT)"),
    # Written out, and how: not constants, so that Spark's own functions cannot do it.
    "at_text": (STRING, "date_format(timestampseconds_of(1700000000 + id), 'yyyy-MM-dd HH:mm:ss')"),
    "day_text": (STRING, "CAST(date_from_unix_date(CAST(19000 + id % 1000 AS INT)) AS STRING)"),
    "clock_text": (STRING, "date_format(timestampseconds_of(id % 86400), 'HH:mm:ss')"),
    "at_pattern": (STRING, "IF(id < 0, '', 'yyyy-MM-dd HH:mm:ss')"),
    "day_pattern": (STRING, "IF(id < 0, '', 'yyyy-MM-dd')"),
    "clock_pattern": (STRING, "IF(id < 0, '', 'HH:mm:ss')"),
    "path": (STRING, "IF(id < 0, '', '$.a.b')"),
    "zone": (STRING, "IF(id < 0, '', 'America/Los_Angeles')"),
}  # fmt: skip


@dataclass(frozen=True)
class Constant:
    value: str | int


@dataclass(frozen=True)
class Call:
    """A function on columns and constants. `bare` is what one writes in PySpark for it; without
    it the function is Python in batches."""

    function: str
    args: tuple[str | Constant, ...]
    bare: Callable[[], Column] | None = None

    @property
    def title(self) -> str:
        args = (repr(a.value) if isinstance(a, Constant) else a for a in self.args)
        return f"{self.function}({', '.join(args)})"

    def column(self) -> list[Column]:
        """As a projection has it: the value, null where it failed, and whether it failed."""
        types = [self._type(a) for a in self.args]
        resolution = REGISTRY.resolve(self.function, types)
        parameters, returned = resolution.finish({})
        columns = [F.lit(a.value) if isinstance(a, Constant) else F.col(a) for a in self.args]
        literals = [a.value if isinstance(a, Constant) else None for a in self.args]
        made = resolution.overload.spark(columns, CallContext(parameters, returned, literals))
        if not isinstance(made, Fallible) or made.error is None:
            return [(made.value if isinstance(made, Fallible) else made).alias("value")]
        failed = made.error.isNotNull()
        return [F.when(~failed, made.value).alias("value"), failed.alias("failed")]

    @staticmethod
    def _type(arg: str | Constant) -> SqlType:
        if isinstance(arg, str):
            return COLUMNS[arg][0]
        return STRING if isinstance(arg.value, str) else INTEGER


def _millis(column: str) -> Column:
    return F.timestamp_millis(F.col(column))


MAPPED = (
    Call("UCASE", ("word",), lambda: F.upper("word")),
    Call("TRIM", ("word",), lambda: F.trim("word")),
    Call("LEN", ("word",), lambda: F.length("word")),
    Call("CONCAT", ("word", "url"), lambda: F.concat("word", "url")),
    Call("SUBSTRING", ("word", Constant(3), Constant(4)), lambda: F.substring("word", 3, 4)),
    Call(
        "REPLACE",
        ("word", Constant("num"), Constant("x")),
        lambda: F.replace("word", F.lit("num"), F.lit("x")),
    ),
    Call("SPLIT", ("word", Constant("r")), lambda: F.split("word", "r")),
    Call(
        "REGEXP_EXTRACT",
        (Constant("[0-9]+"), "word"),
        lambda: F.regexp_extract("word", "[0-9]+", 0),
    ),
    Call("ABS", ("small",), lambda: F.abs("small")),
    Call("ROUND", ("ratio",), lambda: F.floor(F.col("ratio") + 0.5)),
    Call("SQRT", ("ratio",), lambda: F.sqrt("ratio")),
    Call("COALESCE", ("other", "word"), lambda: F.coalesce("other", "word")),
    Call("ARRAY_CONTAINS", ("words", Constant("b")), lambda: F.array_contains("words", "b")),
    Call("ARRAY_LENGTH", ("words",), lambda: F.size("words")),
    Call("URL_EXTRACT_HOST", ("url",), lambda: F.parse_url(F.col("url"), F.lit("HOST"))),
    Call(
        "EXTRACTJSONFIELD",
        ("json", Constant("$.a.b")),
        lambda: F.get_json_object("json", "$.a.b"),
    ),
    Call(
        "FORMAT_TIMESTAMP",
        ("at", Constant("yyyy-MM-dd HH:mm:ss")),
        lambda: F.date_format(_millis("at"), "yyyy-MM-dd HH:mm:ss"),
    ),
    Call(
        "PARSE_TIMESTAMP",
        ("at_text", Constant("yyyy-MM-dd HH:mm:ss")),
        lambda: F.unix_millis(F.to_timestamp("at_text", "yyyy-MM-dd HH:mm:ss")),
    ),
)
BATCHED = (
    Call("EXTRACTJSONFIELD", ("json", "path")),
    Call("JSON_CONCAT", ("json", "json")),
    Call("JSON_ITEMS", ("items",)),
    Call("FORMAT_TIMESTAMP", ("at", "at_pattern")),
    Call("PARSE_TIMESTAMP", ("at_text", "at_pattern")),
    Call("TIMESTAMPTOSTRING", ("large", "at_pattern")),
    Call("STRINGTOTIMESTAMP", ("at_text", "at_pattern")),
    Call("FORMAT_DATE", ("day", "day_pattern")),
    Call("PARSE_DATE", ("day_text", "day_pattern")),
    Call("FORMAT_TIME", ("clock", "clock_pattern")),
    Call("PARSE_TIME", ("clock_text", "clock_pattern")),
    Call("CONVERT_TZ", ("at", "zone", "zone")),
)
# Python takes longer: a fifth of the rows tells as much.
BATCHED_SHARE = 5


def _functions(run: Run) -> Iterator[Row]:
    batched = max(1, run.records // BATCHED_SHARE)
    for calls, count, measure in ((MAPPED, run.records, _mapped), (BATCHED, batched, _batched)):
        rows = _rows(run, count)
        for call in calls:
            try:
                made = measure(rows, call, count, run.repeats)
            except Exception as e:  # one function that fails must not take the others with it
                run.problem(f"{call.title} failed: {e}")
                continue
            ours = made.cells[HEADRACE]
            assert isinstance(ours, Samples)
            run.announce(f"{call.title}: {ours.median:,.0f} rows/s")
            yield made
        rows.unpersist()


def _mapped(rows: DataFrame, call: Call, count: int, repeats: int) -> Row:
    assert call.bare is not None
    forms = {HEADRACE: call.column(), BY_HAND: [call.bare().alias("value")]}
    _check(rows, call, forms)
    rates: dict[str, list[float]] = {side: [] for side in forms}
    for i in range(repeats + 1):
        for side, columns in forms.items():
            seconds = seconds_of(rows.select(*columns))
            if i:  # the first turn warms up
                rates[side].append(count / seconds)
    return Row(
        f"function-{call.function.lower()}",
        call.title,
        "rows/s",
        {side: samples(values) for side, values in rates.items()},
        (Bar(0.9, BY_HAND),),
        count,
        "equal",
    )


def _batched(rows: DataFrame, call: Call, count: int, repeats: int) -> Row:
    frame = rows.select(*call.column())
    seconds_of(frame)
    return Row(
        f"python-{call.function.lower()}",
        f"{call.title}, Python in batches",
        "rows/s",
        {HEADRACE: samples(count / seconds_of(frame) for _ in range(repeats))},
        (Bar(100_000),),
        count,
    )


def _rows(run: Run, count: int) -> DataFrame:
    made = [F.expr(text).alias(name) for name, (_, text) in COLUMNS.items()]
    rows = run.at.spark.range(0, count, 1, run.at.spark.sparkContext.defaultParallelism)
    kept = rows.select(*made).persist()
    kept.count()
    return kept


def seconds_of(frame: DataFrame) -> float:
    """How long it takes to work out all rows, and do nothing with them."""
    began = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


def _check(rows: DataFrame, call: Call, forms: dict[str, list[Column]]) -> None:
    ours, bare = (columns[0] for columns in forms.values())
    unequal = rows.limit(10_000).select(ours.alias("a"), bare.alias("b")).where("NOT (a <=> b)")
    if (found := unequal.first()) is not None:
        raise HeadraceError(f"{call.title} gives {found['a']!r}, Spark's own {found['b']!r}.")


MEASURES = (
    Measure("functions", "functions beside Spark's own, and in Python", _functions, 1_000_000),
)
