"""Queries of every kind that remembers something, and the records that they read.

Whatever happens to one run of them, it must come to the same as another that nobody disturbs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import NewRecord, Record, RecordReader

MINUTE = 60_000
BEGIN = 1_700_000_000_000
CHUNK = 10 * MINUTE  # of the records' own time
JSON = "value_format='JSON', wrap_single_values=true"

TOPICS = {
    **dict.fromkeys(("events", "lefts", "rights", "visits", "people", "profiles", "cities"), 1),
    "spread": 2,
}
SOURCES = f"""
CREATE STREAM events (k STRING KEY, n BIGINT, word STRING) WITH (kafka_topic='events', {JSON});
CREATE STREAM spread (k STRING KEY, n BIGINT, word STRING) WITH (kafka_topic='spread', {JSON});
CREATE STREAM lefts (k STRING KEY, n BIGINT) WITH (kafka_topic='lefts', {JSON});
CREATE STREAM rights (k STRING KEY, n BIGINT) WITH (kafka_topic='rights', {JSON});
CREATE STREAM visits (city STRING KEY, n BIGINT) WITH (kafka_topic='visits', {JSON});
CREATE TABLE people (id STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='people', {JSON});
CREATE TABLE profiles (id STRING PRIMARY KEY, n BIGINT) WITH (kafka_topic='profiles', {JSON});
CREATE TABLE words (id STRING PRIMARY KEY, word STRING) WITH (kafka_topic='profiles', {JSON});
CREATE TABLE cities (city STRING PRIMARY KEY, name STRING) WITH (kafka_topic='cities', {JSON});
"""


@dataclass(frozen=True)
class Kind:
    """A query, by what it shows; `reads` are its topics. Streams may say a row twice.

    Without `timed` the times of its rows do not count: they depend on which topic was read first,
    or on which updates of a row were read together, of which the last one counts.
    Rows of a key that are `ordered` leave in the order in which they came.
    """

    name: str
    select: str
    reads: tuple[str, ...]
    table: bool = True
    timed: bool = True
    ordered: bool = False
    properties: str = ""

    def statement(self, run: str) -> str:
        kind = "TABLE" if self.table else "STREAM"
        given = f" WITH ({self.properties})" if self.properties else ""
        return f"CREATE {kind} {self.sink(run)}{given} AS {self.select.format(run=run)};"

    def sink(self, run: str) -> str:
        return f"{run}_{self.name}".upper()

    def topics(self, run: str) -> list[str]:
        """What it reads: sources have names of lower case, sinks of others are in capitals."""
        return [t.format(run=run).upper() if "{" in t else t for t in self.reads]


KINDS = (
    Kind(
        "native",
        "SELECT k, COUNT(*) AS c, SUM(n) AS s, MAX(n) AS m FROM spread GROUP BY k",
        ("spread",),
    ),
    Kind(
        "kernel",
        "SELECT k, COLLECT_LIST(n) AS ns, LATEST_BY_OFFSET(word) AS w FROM events "
        "GROUP BY k HAVING COUNT(*) % 2 = 0",
        ("events",),
    ),
    Kind(
        "undone",
        "SELECT city, COUNT(*) AS c, SUM(age) AS s FROM people GROUP BY city HAVING COUNT(*) > 1",
        ("people",),
        timed=False,
    ),
    Kind(
        "tumbling",
        "SELECT k, COUNT(*) AS c, COLLECT_LIST(n) AS ns FROM events "
        "WINDOW TUMBLING (SIZE 5 MINUTES, GRACE PERIOD 10 MINUTES) GROUP BY k",
        ("events",),
    ),
    Kind(
        "hopping",
        "SELECT k, SUM(n) AS s FROM events WINDOW HOPPING (SIZE 6 MINUTES, ADVANCE BY 2 MINUTES, "
        "GRACE PERIOD 10 MINUTES) GROUP BY k",
        ("events",),
    ),
    Kind(
        "sessions",
        "SELECT k, COUNT(*) AS c, SUM(n) AS s FROM events "
        "WINDOW SESSION (2 MINUTES, GRACE PERIOD 10 MINUTES) GROUP BY k",
        ("events",),
    ),
    Kind(
        "final",
        "SELECT k, COUNT(*) AS c, SUM(n) AS s FROM events "
        "WINDOW TUMBLING (SIZE 5 MINUTES, GRACE PERIOD 10 MINUTES) GROUP BY k EMIT FINAL",
        ("events",),
    ),
    *(
        Kind(
            f"stream_{name.split()[-1].lower()}",
            f"SELECT {key}, l.n AS l, r.n AS r FROM lefts l {name} JOIN rights r "
            "WITHIN 30 SECONDS GRACE PERIOD 1 HOUR ON l.k = r.k",
            ("lefts", "rights"),
            table=False,
        )
        for name, key in (("INNER", "l.k AS k"), ("LEFT", "l.k AS k"), ("FULL OUTER", "ROWKEY"))
    ),
    Kind(
        "looked_up",
        "SELECT v.city AS city, v.n AS n, c.name AS name FROM visits v "
        "LEFT JOIN cities c ON v.city = c.city",
        ("visits", "cities"),
        table=False,
        ordered=True,
    ),
    Kind(
        "tables",
        "SELECT ROWKEY, p.age AS age, q.n AS n FROM people p "
        "FULL OUTER JOIN profiles q ON p.id = q.id",
        ("people", "profiles"),
        timed=False,
    ),
    Kind(
        "foreign_key",
        "SELECT p.id AS id, p.age AS age, c.name AS name FROM people p "
        "LEFT JOIN cities c ON p.city = c.city",
        ("people", "cities"),
        timed=False,
    ),
    Kind(
        "three_ways",
        "SELECT p.id AS id, q.n AS n, w.word AS word FROM people p "
        "JOIN profiles q ON p.id = q.id LEFT JOIN words w ON p.id = w.id",
        ("people", "profiles"),
        timed=False,
    ),
    Kind("filtered", "SELECT id, city, age FROM people WHERE age > 50", ("people",)),
    Kind("keyed", "SELECT * FROM spread PARTITION BY word", ("spread",), table=False),
    # What is twice in a stream is counted twice, unless it is written in transactions.
    Kind(
        "chained",
        "SELECT word, MAX(n) AS m, COUNT_DISTINCT(k) AS ks FROM {run}_keyed GROUP BY word",
        ("{run}_keyed",),
    ),
)


class Feed:
    """The records of the sources, chunk by chunk, the same in every run of the test."""

    def __init__(self, seed: int = 8) -> None:
        self._random = random.Random(seed)
        self._number = 0

    def cities(self) -> Iterator[NewRecord]:
        """Those that visitors ask for: they are there before, and stay as they are."""
        for i in range(20):
            yield self._record("cities", f"c{i}", {"NAME": f"city {i}"}, BEGIN)

    def chunk(self, number: int) -> Iterator[NewRecord]:
        pick = self._random.randrange
        start = BEGIN + number * CHUNK
        for i in range(40):
            time_ = start + i * CHUNK // 40
            late = pick(30 * MINUTE) if pick(10) == 0 else 0
            yield self._record("events", f"k{pick(8)}", self._event(), time_ - late)
            yield self._record("spread", f"k{pick(50)}", self._event(), time_)
            yield self._record("lefts", f"k{pick(10)}", self._event(), time_)
            yield self._record("rights", f"k{pick(10)}", self._event(), time_)
            city = f"c{pick(20)}" if pick(8) else "nowhere"
            yield self._record("visits", city, self._event(), time_)
            person = {"CITY": f"c{pick(50)}", "AGE": pick(100)}
            yield self._record("people", f"p{pick(30)}", person if pick(7) else None, time_)
            yield self._record(
                "profiles", f"p{pick(35)}", self._event() if pick(7) else None, time_
            )
            named = {"NAME": f"name {pick(1000)}"}
            yield self._record("cities", f"c{20 + pick(25)}", named if pick(7) else None, time_)

    def last(self) -> Iterator[NewRecord]:
        """Rows that move time past everything still open."""
        for topic in ("events", "lefts", "rights"):
            yield self._record(topic, "end", self._event(), BEGIN + 1000 * CHUNK)

    def _event(self) -> dict[str, object]:
        self._number += 1
        return {"N": self._number, "WORD": f"word {self._random.randrange(12)}"}

    def _record(self, topic: str, key: str, value: object, when: int) -> NewRecord:
        data = None if value is None else json.dumps(value).encode()
        return NewRecord(topic, key.encode(), data, timestamp=when)


def last_rows(records: list[Record]) -> dict[bytes | None, tuple[bytes | None, int]]:
    rows = {r.key: (r.value, r.timestamp) for r in records}
    return {key: row for key, row in rows.items() if row[0] is not None}


def outcome(kafka: KafkaConnection, kind: Kind, run: str) -> set[tuple[object, ...]]:
    records = list(RecordReader(kafka).read(kind.sink(run)))
    if kind.table:
        found = {(key, value, time) for key, (value, time) in last_rows(records).items()}
    else:
        found = {(r.key, r.value, r.timestamp) for r in records}
    return found if kind.timed else {row[:2] for row in found}
