"""Stateless work: a filter and a projection, in every format, with headers, with single values."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.bench.figures import BY_HAND, Absent, Bar
from headrace.bench.jobs import FlinkSql, Hand, HandForm, Headers, Job, Reading, Source

MILLION = 1_000_000


def _order(i: int) -> tuple[bytes, bytes]:
    value = b'{"ID":%d,"NAME":"name-%d","AMOUNT":%d.5,"CITY":"berlin"}' % (i, i % 1000, i % 500)
    return b"%d" % i, value


def _trace(i: int) -> Headers:
    return [("trace", b"trace-%d" % i), ("source", b"web"), ("version", b"\x00\x00\x00\x02")]


ORDERS = Source("orders", "k STRING KEY, id INT, name STRING, amount DOUBLE, city STRING", _order)
# The same topic, but records have three headers; declared once without and once with a column.
BARE = replace(ORDERS, name="bare_orders", headers=_trace)
TRACED = replace(
    BARE, name="traced_orders", columns=f"{ORDERS.columns}, trace BYTES HEADER('trace')"
)
AMOUNTS = Source(
    "amounts",
    "k STRING KEY, amount DOUBLE",
    lambda i: (b"%d" % i, b"%d.5" % (i % 500)),
    properties="value_format='JSON', wrap_single_values=false",
)

COLUMNS = "ID INT, NAME STRING, AMOUNT DOUBLE, CITY STRING"
FILTERED = "SELECT k, id, name, amount * 2 AS twice FROM {%s} WHERE amount > 100"


def _sunk(key: Column | str, value: Column) -> list[Column]:
    """What Headrace's sink takes."""
    key = F.col(key) if isinstance(key, str) else key
    time = F.unix_millis("timestamp")
    return [key.alias("$key"), value.cast("binary").alias("$value"), time.alias("$time")]


def _filtered_json(read: Reading) -> Hand:
    value = F.from_json(F.col("value").cast("string"), COLUMNS)
    rows = read("orders").select("key", "timestamp", value.alias("v")).where("v.AMOUNT > 100")
    made = F.to_json(F.struct("v.ID", "v.NAME", (F.col("v.AMOUNT") * 2).alias("TWICE")))
    return Hand(rows.select(*_sunk("key", made)))


def _filtered_delimited(read: Reading) -> Hand:
    value = F.from_csv(F.col("value").cast("string"), COLUMNS)
    records = read("orders_delimited")
    rows = records.select("key", "timestamp", value.alias("v")).where("v.AMOUNT > 100")
    made = F.to_csv(F.struct("v.ID", "v.NAME", (F.col("v.AMOUNT") * 2).alias("TWICE")))
    return Hand(rows.select(*_sunk("key", made)))


def _twice(read: Reading) -> Hand:
    rows = read("amounts")
    amount = F.col("value").cast("string").cast("double")
    return Hand(rows.where(amount > 100).select(*_sunk("key", (amount * 2).cast("string"))))


def _traced(read: Reading) -> Hand:
    value = F.from_json(F.col("value").cast("string"), COLUMNS)
    trace = F.try_element_at(F.filter("headers", lambda h: h["key"] == "trace"), F.lit(-1))
    rows = read("traced_orders", headers=True).select(
        "key", "timestamp", trace["value"].alias("TRACE"), value.alias("v")
    )
    twice = (F.col("v.AMOUNT") * 2).alias("TWICE")
    made = F.to_json(F.struct("v.ID", "v.NAME", twice, "TRACE"))
    return Hand(rows.where("v.AMOUNT > 100").select(*_sunk("key", made)))


_OTHER_FORMAT = Absent(
    "the bar is the ratio to JSON; by hand this format is not in Spark's columns"
)
_ONE_FORMAT = Absent("Kafka Streams runs the JSON form of this job")


def _formatted(format_: str, of_json: float, by_hand: HandForm | Absent = _OTHER_FORMAT) -> Job:
    """The same in another format than JSON, and how fast that has to be beside it."""
    source = ORDERS.as_format(format_)
    return Job(
        f"stateless-{format_.lower()}",
        f"filter and projection, {format_}",
        "stateless",
        (source,),
        FILTERED % source.name,
        by_hand=by_hand,
        streams=_ONE_FORMAT,
        bars=(Bar(of_json, "stateless-json"),),
        records=MILLION,
    )


JOBS = (
    Job(
        "stateless-json",
        "filter and projection, JSON",
        "stateless",
        (ORDERS,),
        FILTERED % "orders",
        by_hand=_filtered_json,
        streams="filter",
        flink=FlinkSql(
            {"orders": f"k STRING, {COLUMNS}"},
            "k STRING, ID INT, NAME STRING, TWICE DOUBLE",
            "SELECT k, ID, NAME, AMOUNT * 2 FROM {orders} WHERE AMOUNT > 100",
        ),
        bars=(Bar(0.9, BY_HAND),),
        records=MILLION,
        quick=True,
    ),
    _formatted("AVRO", 0.8),
    _formatted("DELIMITED", 1.0, _filtered_delimited),
    _formatted("PROTOBUF", 0.5),
    Job(
        "single-values",
        "unwrapped single values",
        "stateless",
        (AMOUNTS,),
        "SELECT k, amount * 2 AS twice FROM {amounts} WHERE amount > 100",
        by_hand=_twice,
        streams=_ONE_FORMAT,
    ),
    Job(
        "headers-none",
        "records with headers, no header column",
        "headers",
        (BARE,),
        FILTERED % "bare_orders",
        records=MILLION,
    ),
    Job(
        "headers-unused",
        "a header column that is not selected",
        "headers",
        (TRACED,),
        FILTERED % "traced_orders",
        bars=(Bar(0.97, "headers-none"),),
        records=MILLION,
    ),
    Job(
        "headers-used",
        "a header column that is selected",
        "headers",
        (TRACED,),
        "SELECT k, id, name, amount * 2 AS twice, trace FROM {traced_orders} WHERE amount > 100",
        by_hand=_traced,
        bars=(Bar(0.75, "headers-unused"),),
        records=MILLION,
    ),
)
