"""Aggregates and windows: COUNT and SUM by key."""

from __future__ import annotations

from pyspark.sql import functions as F

from headrace.bench.figures import BY_HAND, SHORT, STREAMS, Absent, Bar
from headrace.bench.jobs import FlinkSql, Hand, HandForm, Job, Reading, Source

MILLION = 1_000_000
TOTALS = "SELECT k, COUNT(*) AS c, SUM(n) AS s FROM {%s} %sGROUP BY k"


def numbers(keys: int, *, burst: int = 1, step_ms: int = 1) -> Source:
    """Numbers of so many keys, so many of a key in a row; a prime step visits the keys in an
    order that is none."""
    return Source(
        f"numbers_{keys}" if burst == 1 else f"bursts_{keys}",
        "k STRING KEY, n BIGINT, word STRING",
        lambda i: (
            b"key%d" % (i // burst * 7919 % keys),
            b'{"N":%d,"WORD":"word %d"}' % (i, i % 100),
        ),
        step_ms=step_ms,
    )


def _totals(name: str) -> HandForm:
    def form(read: Reading) -> Hand:
        value = F.from_json(F.col("value").cast("string"), "N BIGINT, WORD STRING")
        rows = read(name).select("key", value.alias("v"))
        totals = rows.groupBy("key").agg(F.count("*").alias("C"), F.sum("v.N").alias("S"))
        return Hand(totals.select("key", F.to_json(F.struct("C", "S")).alias("value")), "update")

    return form


def _windows(name: str) -> HandForm:
    def form(read: Reading) -> Hand:
        value = F.from_json(F.col("value").cast("string"), "N BIGINT, WORD STRING")
        rows = read(name).select("key", "timestamp", value.alias("v"))
        totals = rows.groupBy("key", F.window("timestamp", "1 minute").alias("w")).agg(
            F.count("*").alias("C"), F.sum("v.N").alias("S")
        )
        start = F.unhex(F.lpad(F.hex(F.unix_millis("w.start")), 16, "0"))
        key = F.concat("key", start).alias("key")
        return Hand(totals.select(key, F.to_json(F.struct("C", "S")).alias("value")), "update")

    return form


def aggregate(keys: int, bars: tuple[Bar, ...], quick: bool = False) -> Job:
    source = numbers(keys)
    flink = FlinkSql(
        {source.name: "k STRING, N BIGINT, WORD STRING"},
        "k STRING, C BIGINT, S BIGINT, PRIMARY KEY (k) NOT ENFORCED",
        f"SELECT k, COUNT(*), SUM(N) FROM {{{source.name}}} GROUP BY k",
    )
    return Job(
        f"aggregate-{keys}",
        f"COUNT and SUM, {keys:,} keys",
        "aggregates",
        (source,),
        TOTALS % (source.name, ""),
        makes="TABLE",
        by_hand=_totals(source.name),
        streams="aggregate",
        flink=flink if bars else SHORT,
        bars=bars,
        records=MILLION if bars else 300_000,
        quick=quick,
    )


def each_change(keys: int) -> Job:
    """One output per input: a kernel's work."""
    source = numbers(keys)
    return Job(
        "aggregate-each-change",
        f"COUNT and SUM, {keys:,} keys, one output per input",
        "aggregates",
        (source,),
        TOTALS % (source.name, ""),
        makes="TABLE",
        properties={"ksql.streams.cache.max.bytes.buffering": 0},
    )


_TEN_THOUSAND = numbers(10_000, step_ms=10)
_BURSTS = numbers(10_000, burst=3)
_NO_WINDOWED_KEYS = Absent(
    "Flink SQL cannot write a window into a record's key: the outputs could not be compared"
)
BOTH_BARS = (Bar(0.9, BY_HAND), Bar(1.3, STREAMS))

JOBS = (
    aggregate(100, BOTH_BARS, quick=True),
    aggregate(20_000, ()),
    aggregate(MILLION, BOTH_BARS),
    each_change(20_000),
    Job(
        "tumbling",
        "tumbling windows, 10,000 keys",
        "windows",
        (_TEN_THOUSAND,),
        TOTALS % (_TEN_THOUSAND.name, "WINDOW TUMBLING (SIZE 1 MINUTE) "),
        makes="TABLE",
        by_hand=_windows(_TEN_THOUSAND.name),
        streams="tumbling",
        flink=_NO_WINDOWED_KEYS,
        bars=(Bar(50_000),),
        quick=True,
    ),
    Job(
        "session",
        "session windows, 10,000 keys",
        "windows",
        (_BURSTS,),
        TOTALS % (_BURSTS.name, "WINDOW SESSION (5 SECONDS) "),
        makes="TABLE",
        by_hand=Absent("Spark's own session windows do not announce of changes, only of the end"),
        streams="session",
        flink=_NO_WINDOWED_KEYS,
        bars=(Bar(50_000),),
    ),
)
