"""How fast kernels run on Spark: rows per second, and what a small batch costs beside a big table.

    python bench/kernels.py [aggregate|windows|join|sessions|tables|growth|latency|memory] …

Rows come from files, so that nothing but the kernel, its state and Spark's own work is measured.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from headrace.kafka.jars import ensure_jars
from headrace.spark.runtime.session import start_session
from headrace.spark.state.bucket import apply_kernel, in_order_by
from headrace.spark.state.kernel_step import KernelInput, KernelStep
from headrace.spark.state.kernels.aggregate import StreamAggregate, TimeWindow
from headrace.spark.state.kernels.foreign_key_join import ForeignKeyJoin, References
from headrace.spark.state.kernels.session_aggregate import SessionAggregate, SessionWindow
from headrace.spark.state.kernels.steps import Call
from headrace.spark.state.kernels.stream_table_join import StreamTableJoin
from headrace.spark.state.kernels.table_join import TableTableJoin

SCHEMA = "k string, v bigint, `$time` bigint, `$null` boolean, `$partition` int, `$offset` bigint"
KEY = StructType([StructField("k", StringType())])
COUNTED = StructType([StructField("n", LongType())])
BOTH = StructType([StructField("lv", LongType()), StructField("rv", LongType())])


# The step form of COUNT(*).
class Count:
    def initialize(self) -> int:
        return 0

    def add(self, state: int, value: Any) -> int:
        return state + 1

    def merge(self, left: int, right: int) -> int:
        return left + right

    def result(self, state: int) -> int:
        return state


def session(work: Path) -> SparkSession:
    return start_session(
        ensure_jars(print).spark,
        {"spark.master": "local[2]", "spark.sql.streaming.numRecentProgressUpdates": "100"},
        work,
    )


class Feed:
    """A directory of files that a streaming query reads one at a time, in order."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark = spark
        self._path = path
        self._staging = path.with_suffix(".staging")
        self._offset = 0
        self._files = 0
        path.mkdir(parents=True)

    def add(self, rows: int, keys: int, seconds: int = 1000, ordered: bool = False) -> None:
        base = self._offset
        key = F.col("id") if ordered else F.hash("id") % keys
        frame = self._spark.range(base, base + rows, 1, 1).select(
            F.concat(F.lit("key"), F.abs(key)).alias("k"),
            F.col("id").alias("v"),
            (F.lit(1_700_000_000_000) + F.col("id") * seconds).alias("$time"),
            F.lit(False).alias("$null"),
            F.lit(0).alias("$partition"),
            F.col("id").alias("$offset"),
        )
        frame.write.mode("overwrite").parquet(str(self._staging))
        (part,) = self._staging.glob("*.parquet")
        self._files += 1
        shutil.move(part, self._path / f"{self._files:06}.parquet")
        self._offset += rows

    def rows(self) -> DataFrame:
        return (
            self._spark.readStream.schema(SCHEMA)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self._path))
        )


def run(frame: DataFrame, checkpoint: Path) -> list[dict[str, Any]]:
    """Runs all there is; gives each batch's rows and seconds."""
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [
        {"rows": p["numInputRows"], "ms": p["durationMs"]["triggerExecution"]}
        for p in query.recentProgress
        if p["numInputRows"]
    ]


def side(rows: DataFrame) -> KernelInput:
    return KernelInput(rows, [F.col("k")], [F.col("v")])


def counting(rows: DataFrame, window: TimeWindow | None = None, **options: bool) -> DataFrame:
    spec = StreamAggregate((Call("COUNT", Count(), (0,)),), window=window, **options)
    return apply_kernel(KernelStep(spec, KEY, COUNTED), [side(rows)])


def joining(left: DataFrame, right: DataFrame) -> DataFrame:
    return apply_kernel(KernelStep(StreamTableJoin(True, 1), KEY, BOTH), [side(left), side(right)])


def report(name: str, batches: list[dict[str, Any]]) -> None:
    for batch in batches:
        rate = batch["rows"] / batch["ms"] * 1000
        print(f"{name}: {batch['rows']} rows in {batch['ms']} ms, {rate:,.0f} rows/s", flush=True)


def aggregate(spark: SparkSession, work: Path) -> None:
    for keys in (10_000, 1_000_000):
        for coalesce in (False, True):
            feed = Feed(spark, work / f"aggregate{keys}{coalesce}")
            for _ in range(4):
                feed.add(300_000, keys)
            name = f"aggregate, {keys} keys{', coalesced' if coalesce else ''}"
            frame = counting(feed.rows(), coalesce=coalesce)
            report(name, run(frame, work / f"c-{keys}{coalesce}"))


def windows(spark: SparkSession, work: Path) -> None:
    feed = Feed(spark, work / "windows")
    for _ in range(4):
        feed.add(300_000, 10_000, seconds=100)
    frame = counting(feed.rows(), TimeWindow.of(60_000, grace=0))
    report("tumbling windows of 600 rows, 10000 keys", run(frame, work / "c-windows"))


def join(spark: SparkSession, work: Path) -> None:
    for keys in (1_000, 10_000, 1_000_000):
        stream, table = Feed(spark, work / f"s{keys}"), Feed(spark, work / f"t{keys}")
        table.add(keys, keys, ordered=True)
        for _ in range(3):
            stream.add(300_000, keys)
        frame = joining(stream.rows(), table.rows())
        report(f"stream-table join, {keys} keys", run(frame, work / f"c-join{keys}"))


def sessions(spark: SparkSession, work: Path) -> None:
    feed = Feed(spark, work / "sessions")
    for _ in range(3):
        feed.add(300_000, 10_000, seconds=1)
    spec = SessionAggregate((Call("COUNT", Count(), (0,)),), SessionWindow.of(5_000, 10_000))
    frame = apply_kernel(KernelStep(spec, KEY, COUNTED), [side(feed.rows())])
    report("session windows, 10000 keys", run(frame, work / "c-sessions"))


def tables(spark: SparkSession, work: Path) -> None:
    """Table-table joins: on the primary key, and on a foreign key."""
    left, right = Feed(spark, work / "tl"), Feed(spark, work / "tr")
    right.add(10_000, 10_000, ordered=True)
    for _ in range(3):
        left.add(300_000, 10_000)
    inputs = [side(left.rows()), side(right.rows())]
    joined = apply_kernel(KernelStep(TableTableJoin(1, 1, True, False), KEY, BOTH), inputs)
    report("table-table join, 10000 keys", run(joined, work / "c-tables"))

    foreign = F.concat(F.lit("key"), F.abs(F.hash("k")) % 10_000)
    referring = KernelInput(left.rows(), [F.col("k")], [foreign, F.col("v")])
    message = StructType.fromDDL("word int, id string, lv bigint")
    told = apply_kernel(
        KernelStep(References(1, 1, 1, True), KEY, message, placed=True), [referring]
    )
    messages = KernelInput(told, [F.col("k")], [F.col(f.name) for f in message])
    spec = ForeignKeyJoin(1, 1, True)
    step = KernelStep(spec, KEY, BOTH, placed=True)
    result = apply_kernel(step, [messages, side(right.rows())])
    frame = in_order_by(result, [F.col("k")])
    report("foreign-key join, 10000 keys", run(frame, work / "c-foreign"))


def growth(spark: SparkSession, work: Path) -> None:
    """A batch of 1,000 rows against tables of 1,000 and 1M rows."""
    for keys in (1_000, 1_000_000):
        stream, table = Feed(spark, work / f"gs{keys}"), Feed(spark, work / f"gt{keys}")
        table.add(keys, keys, ordered=True)
        for _ in range(12):
            stream.add(1_000, keys)
            table.add(50, keys, ordered=True)
        frame = joining(stream.rows(), table.rows())
        batches = run(frame, work / f"c-growth{keys}")
        times = sorted(b["ms"] for b in batches[3:])
        print(f"1,050 rows against {keys}: median {times[len(times) // 2]} ms, all {times}")


def latency(spark: SparkSession, work: Path) -> None:
    """What a batch of one row costs, warm: no kernel, one, two in a row."""

    def once(rows: DataFrame) -> DataFrame:
        return counting(rows)

    def twice(rows: DataFrame) -> DataFrame:
        first = counting(rows).withColumnRenamed("n", "v")
        return counting(first)

    plans: dict[str, Callable[[DataFrame], DataFrame]] = {
        "no kernel": lambda rows: rows,
        "one kernel": once,
        "two kernels": twice,
    }
    for name, plan in plans.items():
        feed = Feed(spark, work / f"latency-{name}")
        for _ in range(25):
            feed.add(1, 10)
        times = sorted(b["ms"] for b in run(plan(feed.rows()), work / f"c-{name}")[5:])
        print(f"one row, {name}: median {times[len(times) // 2]} ms, worst {times[-1]} ms")


def memory(spark: SparkSession, work: Path) -> None:
    """2M distinct keys in an aggregate: what all processes hold at the end."""
    feed = Feed(spark, work / "memory")
    for _ in range(10):
        feed.add(200_000, 0, ordered=True)
    for _ in range(3):
        feed.add(50_000, 2_000_000)
    report("aggregate, up to 2M keys", run(counting(feed.rows()), work / "c-memory"))
    sizes = resident(os.getpid())
    print(f"resident MiB: {sizes} = {sum(sizes)}")


def resident(process: int) -> list[int]:
    """The MiB of a process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, rest = stat.read_text().split(" ", 1)
            parents.setdefault(int(rest.rsplit(")", 1)[1].split()[1]), []).append(int(pid))
    found, todo = [], [process]
    while todo:
        pid = todo.pop()
        todo += parents.get(pid, [])
        pages = int((Path("/proc") / str(pid) / "statm").read_text().split()[1])
        found.append(pages * os.sysconf("SC_PAGE_SIZE") // 2**20)
    return found


BENCHES: dict[str, Callable[[SparkSession, Path], None]] = {
    "aggregate": aggregate,
    "windows": windows,
    "join": join,
    "sessions": sessions,
    "tables": tables,
    "growth": growth,
    "latency": latency,
    "memory": memory,
}


def main() -> None:
    chosen = sys.argv[1:] or list(BENCHES)
    work = Path(tempfile.mkdtemp(prefix="headrace-bench-"))
    spark = session(work)
    try:
        for name in chosen:
            BENCHES[name](spark, work)
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
