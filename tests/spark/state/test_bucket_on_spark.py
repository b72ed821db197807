"""The bucket operator on a real Spark: batches, restarts, chains, every kind of value."""

from __future__ import annotations

import json
import os
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from headrace.spark.runtime.java import java_jar
from headrace.spark.state.bucket import apply_kernel, in_order_by
from headrace.spark.state.kernel_step import KernelInput, KernelStep
from headrace.spark.state.kernels.aggregate import StreamAggregate, TimeWindow
from headrace.spark.state.kernels.foreign_key_join import ForeignKeyJoin, References
from headrace.spark.state.kernels.steps import Call
from headrace.spark.state.kernels.stream_table_join import StreamTableJoin
from headrace.spark.state.wire import skipping
from kernel_feeding import Count, Sum

pytestmark = pytest.mark.heavy

TAIL = "`$time` bigint, `$null` boolean, `$partition` int, `$offset` bigint"
ERRORS = "`$errors` string, `$dead` boolean"


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraClassPath": str(java_jar()),  # for who comes after
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.caseSensitive": "true",
        "spark.sql.ansi.enabled": "false",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


class Topic:
    """Files of JSON rows that a query reads one at a time: each is a batch."""

    def __init__(self, spark, path, schema):
        self._spark, self._path, self._schema = spark, path, schema
        self._batches = self._offset = 0
        path.mkdir()

    def batch(self, *rows):
        lines = []
        for row in rows:
            entry = {"$null": False, "$partition": 0, "$offset": self._offset, **row}
            lines.append(json.dumps(entry))
            self._offset += 1
        self._batches += 1
        name = self._path / f"{self._batches:04}.json"
        staged = self._path.with_suffix(".part")
        staged.write_text("\n".join(lines))
        os.utime(staged, (self._batches, self._batches))  # files are read in order of age
        staged.rename(name)

    def rows(self):
        reader = self._spark.readStream.schema(self._schema).option("maxFilesPerTrigger", 1)
        return reader.json(str(self._path))


class Query:
    """Runs a DataFrame's program over whatever there is, again and again, as after restarts."""

    def __init__(self, build, checkpoint):
        self._build, self._checkpoint = build, checkpoint

    def run(self):
        collected = []
        query = (
            self._build()
            .writeStream.foreachBatch(lambda frame, _: collected.extend(frame.collect()))
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return collected


def shown(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


def key(name="k"):
    return StructType([StructField(name, StringType())])


def test_an_aggregate_goes_on_where_it_stopped(spark, tmp_path):
    topic = Topic(spark, tmp_path / "in", f"k string, v bigint, {TAIL}")
    calls = (Call("COUNT", Count(), ()), Call("SUM", Sum(), (0,)))

    def build():
        source = KernelInput(topic.rows(), [F.col("k")], [F.col("v")])
        values = StructType.fromDDL("n bigint, s bigint")
        step = KernelStep(StreamAggregate(calls), key(), values, buckets=4, placed=True)
        return apply_kernel(step, [source])

    query = Query(build, tmp_path / "checkpoint")
    topic.batch(*[{"k": f"k{i % 3}", "v": i, "$time": i} for i in range(6)])
    topic.batch({"k": "k0", "v": 10, "$time": 2})
    first = query.run()
    assert len(first) == 7
    assert sorted(r for r in shown(first, "k", "n", "s", "$time") if r[0] == "k0") == [
        ("k0", 1, 0, 0),
        ("k0", 2, 3, 3),
        ("k0", 3, 13, 3),
    ]
    topic.batch({"k": "k0", "v": 1, "$time": 9}, {"k": "new", "v": 1, "$time": 8})
    assert sorted(shown(query.run(), "k", "n", "s", "$time", "$order")) == [
        ("k0", 4, 14, 9, 9),
        ("new", 1, 1, 8, 9),
    ]


def test_time_closes_windows_in_every_bucket_and_errors_pass(spark, tmp_path):
    topic = Topic(spark, tmp_path / "in", f"k string, v bigint, {TAIL}, {ERRORS}")
    spec = StreamAggregate(
        (Call("COUNT", Count(), ()),), window=TimeWindow.of(10, grace=0), final=True
    )

    def build():
        source = KernelInput(topic.rows(), [F.col("k")], [F.col("v")])
        values = StructType.fromDDL("n bigint")
        step = KernelStep(spec, key(), values, buckets=8, entry=str.upper)
        return apply_kernel(step, [source])

    alive = {"$errors": None, "$dead": False}
    query = Query(build, tmp_path / "checkpoint")
    topic.batch(*[{"k": f"k{i}", "v": 1, "$time": i, **alive} for i in range(10)])
    assert query.run() == []
    topic.batch(
        {"k": "k0", "v": 1, "$time": 10, **alive},
        {"k": "k1", "v": 1, "$time": 3, **alive},
        {"k": None, "v": 1, "$time": 99, **alive},
        {"k": None, "v": None, "$time": 11, "$errors": "bad", "$dead": True},
    )
    rows = query.run()
    results = [row for row in rows if not row["$dead"]]
    assert sorted(shown(results, "k", "$windowstart", "$windowend", "n", "$time")) == [
        (f"k{i}", 0, 10, 1, i) for i in range(10)
    ]
    dead = [row for row in rows if row["$dead"]]
    assert sorted(row["$errors"] for row in dead) == [skipping(1).upper(), "bad"]


def test_a_stream_meets_its_table(spark, tmp_path):
    stream = Topic(spark, tmp_path / "s", f"k string, v bigint, {TAIL}")
    table = Topic(spark, tmp_path / "t", f"k string, name string, {TAIL}")

    def build():
        left = KernelInput(stream.rows(), [F.col("k")], [F.col("v")])
        right = KernelInput(table.rows(), [F.col("k")], [F.col("name")])
        values = StructType.fromDDL("v bigint, name string")
        spec = StreamTableJoin(left_outer=True, right_width=1)
        return apply_kernel(KernelStep(spec, key(), values), [left, right])

    query = Query(build, tmp_path / "checkpoint")
    table.batch({"k": "a", "name": "A", "$time": 5}, {"k": "b", "name": "B", "$time": 7})
    stream.batch(*[{"k": k, "v": i, "$time": i} for i, k in enumerate("aaaaaaab")])
    rows = query.run()
    assert shown(sorted(rows, key=lambda r: r.v), "v", "name") == [
        (i, None if i < 5 else "B" if i == 7 else "A") for i in range(8)
    ]
    table.batch({"k": "a", "$null": True, "$time": 8})
    query.run()
    stream.batch({"k": "a", "v": 9, "$time": 9}, {"k": "b", "v": 10, "$time": 10})
    assert sorted(shown(query.run(), "k", "v", "name")) == [("a", 9, None), ("b", 10, "B")]


def test_kernels_behind_kernels_keep_the_order(spark, tmp_path):
    """A foreign-key join: rows of one key go through several buckets, and end in order."""
    lefts = Topic(spark, tmp_path / "l", f"id string, f string, v bigint, {TAIL}")
    rights = Topic(spark, tmp_path / "r", f"id string, name string, {TAIL}")
    names = ["word", "id", "v"]

    def build():
        left = KernelInput(lefts.rows(), [F.col("id")], [F.col("f"), F.col("v")])
        fields = StructType.fromDDL("word bigint, id string, v bigint")
        refer = KernelStep(References(1, 1, 1, True), key("f"), fields, buckets=8, placed=True)
        told = apply_kernel(refer, [left])
        messages = KernelInput(told, [F.col("f")], [F.col(n) for n in names])
        right = KernelInput(rights.rows(), [F.col("id")], [F.col("name")])
        values = StructType.fromDDL("v bigint, name string")
        spec = ForeignKeyJoin(1, 1, left_outer=True)
        step = KernelStep(spec, key("id"), values, buckets=8, placed=True)
        joined = apply_kernel(step, [messages, right])
        return in_order_by(joined, [F.col("id")])

    query = Query(build, tmp_path / "checkpoint")
    rights.batch(*[{"id": f"f{i}", "name": f"n{i}", "$time": 0} for i in range(9)])
    query.run()
    lefts.batch(
        *[{"id": f"l{i % 3}", "f": f"f{(i * 7) % 10}", "v": i, "$time": i} for i in range(60)]
    )
    rows = query.run()
    for which in range(3):
        mine = [(r.v, r.name) for r in rows if r.id == f"l{which}"]
        assert mine == [
            (i, None if (i * 7) % 10 == 9 else f"n{(i * 7) % 10}") for i in range(which, 60, 3)
        ]


def test_values_of_every_type_come_back_as_they_went(spark, tmp_path):
    schema = (
        "k struct<a: bigint, b: array<string>>, i int, d double, s string, b boolean, "
        "dec decimal(20, 4), arr array<int>, m map<string, bigint>, st struct<x: int, y: string>, "
    )
    topic = Topic(spark, tmp_path / "in", schema + TAIL)
    table = Topic(spark, tmp_path / "t", schema + TAIL)
    names = ["i", "d", "s", "b", "dec", "arr", "m", "st"]
    fields = StructType.fromDDL(schema + "end int").fields

    def build():
        sides = [
            KernelInput(t.rows(), [F.col("k")], [F.col(n) for n in names]) for t in (topic, table)
        ]
        values = [StructField(f"{p}{f.name}", f.dataType) for p in "lr" for f in fields[1:-1]]
        step = KernelStep(StreamTableJoin(True, 8), StructType(fields[:1]), StructType(values))
        return apply_kernel(step, sides)

    full = {
        "k": {"a": 2**60, "b": ["x", None]},
        "i": 7,
        "d": 0.1,
        "s": "snö",
        "b": True,
        "dec": 12345.6789,
        "arr": [1, None],
        "m": {"p": 1, "q": None},
        "st": {"x": 1, "y": None},
    }
    query = Query(build, tmp_path / "checkpoint")
    table.batch({**full, "$time": 1})
    query.run()
    topic.batch({**full, "$time": 2}, {"k": full["k"], "$time": 3})
    first, second = query.run()
    expected = [7, 0.1, "snö", True, Decimal("12345.6789"), [1, None], {"p": 1, "q": None}]
    expected.append(Row(x=1, y=None))
    assert first.k == Row(a=2**60, b=["x", None])
    assert [first[f"l{n}"] for n in names] == [first[f"r{n}"] for n in names] == expected
    assert [second[f"l{n}"] for n in names] == [None] * 8


def test_state_of_another_query_is_refused(spark, tmp_path):
    topic = Topic(spark, tmp_path / "in", f"k string, v bigint, {TAIL}")

    def build(*calls):
        source = KernelInput(topic.rows(), [F.col("k")], [F.col("v")])
        values = StructType([StructField(c.name, LongType()) for c in calls])
        return apply_kernel(KernelStep(StreamAggregate(calls), key(), values, buckets=1), [source])

    count, total = Call("COUNT", Count(), ()), Call("SUM", Sum(), (0,))
    topic.batch({"k": "a", "v": 1, "$time": 0})
    Query(lambda: build(count), tmp_path / "checkpoint").run()
    topic.batch({"k": "a", "v": 1, "$time": 0})
    with pytest.raises(Exception, match="cannot be read as"):
        Query(lambda: build(total), tmp_path / "checkpoint").run()
