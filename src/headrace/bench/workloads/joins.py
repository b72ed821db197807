"""Joins of streams and tables."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headrace.bench.figures import SHORT, STREAMS, Absent, Bar
from headrace.bench.jobs import EARLIER, FlinkSql, Hand, Job, Reading, Source

MILLION, KEYS = 1_000_000, 10_000
JOINED = "SELECT l.k AS k, l.{a} AS a, r.{b} AS b FROM {{{left}}} l {how} {{{right}}} r {on}"


# For Flink: a record's time, and that a table is one.
_TIME = "ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', WATERMARK FOR ts AS ts"
_KEY = "PRIMARY KEY (k) NOT ENFORCED"
_FLINK_NAMES = {"k": "k", "f": "F"}  # it takes names as they are written


def stream(name: str, keys: int) -> Source:
    """Numbers with keys in no particular order."""
    return Source(
        name,
        "k STRING KEY, n BIGINT",
        lambda i: (b"key%d" % (i * 7919 % keys), b'{"N":%d}' % i),
    )


def table(name: str, rows: int | None, keys: int) -> Source:
    """Names, one for each key; with more rows than keys the later ones replace the earlier."""
    return Source(
        name,
        "k STRING PRIMARY KEY, name STRING, f STRING",
        lambda i: (
            b"key%d" % (i * 7919 % keys),
            b'{"NAME":"name %d","F":"key%d"}' % (i, i * 31 % keys),
        ),
        "TABLE",
        rows=rows,
        begin=EARLIER,
    )


def lookup(rows: int, quick: bool = False) -> Job:
    """Joins a stream with a table of so many rows."""
    left, right = stream(f"asked_{rows}", rows), table(f"names_{rows}", rows, rows)
    flink = FlinkSql(
        {
            left.name: f"k STRING, N BIGINT, {_TIME}",
            right.name: f"k STRING, NAME STRING, F STRING, {_TIME}, {_KEY}",
        },
        "k STRING, A BIGINT, B STRING",
        f"SELECT l.k, l.N, r.NAME FROM {{{left.name}}} l LEFT JOIN {{{right.name}}} "
        "FOR SYSTEM_TIME AS OF l.ts AS r ON l.k = r.k",
    )
    return Job(
        f"stream-table-{rows}",
        f"stream-table join, {rows:,} rows",
        "lookups",
        (left, right),
        JOINED.format(
            a="n", b="name", how="LEFT JOIN", left=left.name, right=right.name, on="ON l.k = r.k"
        ),
        by_hand=_NO_TABLES,
        streams="lookup",
        flink=flink if quick else SHORT,
        bars=(Bar(1.0, STREAMS),),
        records=MILLION,
        quick=quick,
    )


def _within(read: Reading) -> Hand:
    """Spark's own join; what is older than the watermark is forgotten."""

    def side(name: str, number: str) -> DataFrame:
        value = F.from_json(F.col("value").cast("string"), "N BIGINT")
        rows = read(name).select(
            F.col("key").alias(f"k_{number}"),
            value["N"].alias(number),
            F.col("timestamp").alias(f"t_{number}"),
        )
        return rows.withWatermark(f"t_{number}", "1 minute")

    near = F.expr("t_B BETWEEN t_A - INTERVAL 5 SECONDS AND t_A + INTERVAL 5 SECONDS")
    rows = side("lefts", "A").join(side("rights", "B"), (F.col("k_A") == F.col("k_B")) & near)
    return Hand(
        rows.select(F.col("k_A").alias("key"), F.to_json(F.struct("A", "B")).alias("value"))
    )


_NO_TABLES = Absent(
    "Spark has no join with a table that changes: there is nothing to write by hand"
)
_UPDATES = table("updates", None, KEYS)
_NAMES = table("names", KEYS, KEYS)


def _tables(name: str, column: str, streams: str) -> Job:
    """Updates of a table, each with the row of another table that the column names."""
    return Job(
        name,
        f"{name} join, {KEYS:,} keys",
        "joins",
        (_UPDATES, _NAMES),
        JOINED.format(
            a="name",
            b="name",
            how="LEFT JOIN",
            left="updates",
            right="names",
            on=f"ON l.{column} = r.k",
        ),
        makes="TABLE",
        by_hand=_NO_TABLES,
        streams=streams,
        flink=FlinkSql(
            {source: f"k STRING, NAME STRING, F STRING, {_KEY}" for source in ("updates", "names")},
            f"k STRING, A STRING, B STRING, {_KEY}",
            "SELECT l.k, l.NAME, r.NAME FROM {updates} l LEFT JOIN {names} r "
            f"ON l.{_FLINK_NAMES[column]} = r.k",
        ),
        bars=(Bar(50_000),),
    )


JOBS = (
    lookup(1_000, quick=True),
    lookup(100_000),
    lookup(MILLION),
    Job(
        "stream-stream",
        "stream-stream join, 10,000 keys",
        "joins",
        (stream("lefts", KEYS), stream("rights", KEYS)),
        JOINED.format(
            a="n",
            b="n",
            how="JOIN",
            left="lefts",
            right="rights",
            on="WITHIN 5 SECONDS ON l.k = r.k",
        ),
        by_hand=_within,
        streams="streams",
        flink=FlinkSql(
            {name: f"k STRING, N BIGINT, {_TIME}" for name in ("lefts", "rights")},
            "k STRING, A BIGINT, B BIGINT",
            "SELECT l.k, l.N, r.N FROM {lefts} l JOIN {rights} r ON l.k = r.k "
            "AND r.ts BETWEEN l.ts - INTERVAL '5' SECOND AND l.ts + INTERVAL '5' SECOND",
        ),
    ),
    _tables("table-table", "k", "tables"),
    _tables("foreign-key", "f", "foreign-key"),
)
