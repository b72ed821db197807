"""Jobs: bounded work, declared once for all sides that can run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from pyspark.sql import DataFrame

from headrace.bench.figures import Absent, Bar

JSON = "value_format='JSON', wrap_single_values=true"
# Records of streams begin here; rows of tables are older, so that a stream finds them all.
BEGIN, EARLIER = 1_700_000_000_000, 1_600_000_000_000

# Enough for Java to compile what runs often, on every side.
WARM_UP_RECORDS = 1_000_000
# Spark's sides have far more to compile, and share one JVM: so often they warm up, but for not much
# longer than that.
SPARK_WARM_UPS, SPARK_WARM_UP_SECONDS = 4, 25.0

Headers = list[tuple[str, str | bytes | None]]


@dataclass(frozen=True)
class Size:
    """How many records a job gets. A warm-up is small in everything, also in its tables."""

    records: int
    warm_up: bool = False

    def for_warm_up(self, most: int = WARM_UP_RECORDS) -> Size:
        return Size(min(self.records, most), warm_up=True)


@dataclass(frozen=True)
class Source:
    """A topic full of records, and how it is declared.

    `rows` is how many there are; without it as many as the job has. A source that is `made_of`
    another one holds the same rows in another format; Headrace itself makes it.
    """

    name: str
    columns: str
    record: Callable[[int], tuple[bytes, bytes]]
    kind: Literal["STREAM", "TABLE"] = "STREAM"
    properties: str = JSON
    rows: int | None = None
    begin: int = BEGIN
    step_ms: int = 1
    headers: Callable[[int], Headers] | None = None
    made_of: Source | None = None

    def count(self, size: Size) -> int:
        if self.rows is None:
            return size.records
        return min(self.rows, size.records) if size.warm_up else self.rows

    def as_format(self, format_: str) -> Source:
        """The same rows in another format."""
        return replace(
            self,
            name=f"{self.name}_{format_.lower()}",
            properties=f"value_format='{format_}'",
            made_of=self,
        )


class Reading(Protocol):
    """What a job written by hand gets: the raw records of its sources."""

    def __call__(self, source: str, headers: bool = False) -> DataFrame: ...


@dataclass(frozen=True)
class Hand:
    """A job as one writes it by hand in PySpark.

    With the columns `$key`, `$value` and `$time` the rows go through Headrace's sink, which keeps
    times; with `key` and `value` through Spark's own.
    """

    rows: DataFrame
    mode: Literal["append", "update"] = "append"


HandForm = Callable[[Reading], Hand]


@dataclass(frozen=True)
class FlinkSql:
    """A job as one writes it for Flink SQL: the columns of its sources and its sink, the key's
    first and named `k`, and the query. What has a primary key is a table."""

    sources: Mapping[str, str]
    sink: str
    select: str


@dataclass(frozen=True)
class Job:
    """The same work for every side. `select` names its sources in braces.

    `streams` is the job's name in StreamsJob.java. A side without a form says why. Outputs are
    compared as streams (the same records) or as tables (the same last record of every key).
    """

    name: str
    title: str
    family: str
    sources: tuple[Source, ...]
    select: str
    makes: Literal["STREAM", "TABLE"] = "STREAM"
    by_hand: HandForm | Absent | None = None
    streams: str | Absent | None = None
    flink: FlinkSql | Absent | None = None
    bars: tuple[Bar, ...] = ()
    records: int = 300_000
    properties: Mapping[str, object] | None = None
    with_: str = ""  # properties of the sink
    quick: bool = False

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(source.name for source in self.sources)

    def statement(self, sink: str, topics: Mapping[str, str]) -> str:
        more = f", {self.with_}" if self.with_ else ""
        select = self.select.format(**topics)
        return f"CREATE {self.makes} {sink} WITH (kafka_topic='{sink}'{more}) AS {select};"
