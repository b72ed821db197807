"""Every kind of query that remembers something: killed again and again, and left alone.

The queries of the one run live through kills, 20 in all, while their topics grow; those of the
other are created at the end and read everything in one go. Both must have come to the same.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from scene import Scene
from server_process import ServerProcess, batches, eventually, unfinished

from headrace.topics.broker import EmbeddedBroker
from headrace.topics.ports import free_port
from headrace.topics.records import NewRecord, Record, RecordReader, RecordWriter

pytestmark = pytest.mark.heavy

KILLS = int(os.environ.get("KILLS", "4"))  # of each group
PIECES = 8  # in which the records of a chunk come
MINUTE = 60_000
BEGIN = 1_700_000_000_000
CHUNK = 10 * MINUTE  # of the records' own time
JSON = "value_format='JSON', wrap_single_values=true"

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

    Without `timed` the times of its rows do not count: they depend on which topic was read first.
    """

    name: str
    select: str
    reads: tuple[str, ...]
    table: bool = True
    timed: bool = True

    def statement(self, run: str) -> str:
        kind = "TABLE" if self.table else "STREAM"
        return f"CREATE {kind} {run}_{self.name} AS {self.select.format(run=run)};"


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


GROUPS = {
    "aggregates": ("native", "kernel", "undone", "filtered"),
    "windows": ("tumbling", "hopping", "sessions", "final"),
    "streams": ("stream_inner", "stream_left", "stream_outer", "looked_up"),
    "tables": ("tables", "foreign_key", "three_ways"),
    "chains": ("keyed", "chained"),
}


class Feed:
    """The records of the sources, chunk by chunk, the same in every run of the test."""

    def __init__(self) -> None:
        self._random = random.Random(8)
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


def outcome(scene: Scene, kind: Kind, run: str) -> set[tuple[object, ...]]:
    records = list(RecordReader(scene.kafka).read(f"{run}_{kind.name}".upper()))
    if kind.table:
        found = {(key, value, time) for key, (value, time) in last_rows(records).items()}
    else:
        found = {(r.key, r.value, r.timestamp) for r in records}
    return found if kind.timed else {row[:2] for row in found}


@pytest.fixture
def broker(tmp_path):
    """It outlives the servers, so that these start sooner."""
    with EmbeddedBroker(tmp_path / "kafka", free_port()) as running:
        yield running


@pytest.mark.parametrize("group", GROUPS)
def test_what_a_query_remembers_survives_kills(tmp_path, broker, group, seed):
    survives(tmp_path, broker.bootstrap_servers, GROUPS[group], KILLS, seed)


def test_brief_an_aggregate_and_a_join_survive_kills(tmp_path, broker, seed):
    survives(tmp_path, broker.bootstrap_servers, ("tumbling", "stream_left"), 2, seed)


def survives(tmp_path: Path, kafka: str, names: Sequence[str], kills: int, seed: int) -> None:
    """Runs queries whole, and with servers that are killed: the outcome is the same."""
    feed, chance = Feed(), random.Random(seed)
    kinds = [kind for kind in KINDS if kind.name in names]
    data_dir, ports = tmp_path / "server", (free_port(), free_port(), free_port())
    server = ServerProcess(data_dir, ports, kafka)
    try:
        scene = server.scene()
        for topic in ("events", "lefts", "rights", "visits", "people", "profiles", "cities"):
            scene.topic(topic)
        scene.topic("spread", 2)
        with RecordWriter(scene.kafka) as writer:
            writer.write_all(feed.cities())
            scene.sql(SOURCES)
            create(scene, kinds, "killed")
            for number in range(kills):
                records = list(feed.chunk(number))
                size = -(-len(records) // PIECES)
                pieces = deque(records[i : i + size] for i in range(0, len(records), size))
                before = batches(data_dir)
                writer.write_all(pieces.popleft())
                eventually(lambda: batches(data_dir) > before)  # noqa: B023
                # From here on there is always something to do: a kill is inside a batch, or between
                # two. What it leaves over comes while nobody reads.
                for _ in range(chance.randrange(PIECES)):
                    writer.write_all(pieces.popleft())
                    time.sleep(chance.uniform(0, 0.5))
                server.kill(everything=number % 2 == 0)
                print(f"kill {number + 1} interrupted {unfinished(data_dir)} micro-batches")
                for piece in pieces:
                    writer.write_all(piece)
                server = ServerProcess(data_dir, ports, kafka)
                scene = server.scene()
            writer.write_all(feed.chunk(kills))
            # Time does not jump ahead of what the other side of a join still has to say.
            drained(scene, kinds, "killed")
            writer.write_all(feed.last())
        create(scene, kinds, "whole")
        for run in ("whole", "killed"):
            drained(scene, kinds, run)
        assert {q["state"] for q in scene.client.queries()} == {"RUNNING"}
        for kind in kinds:
            assert_same(scene, kind)
        assert server.stop() == 0
    finally:
        server.close()


def drained(scene: Scene, kinds: Sequence[Kind], run: str) -> None:
    for kind in kinds:
        topics = [topic.format(run=run).upper() for topic in kind.reads]
        known = [t if t.endswith("KEYED") else t.lower() for t in topics]
        scene.drained(query_of(scene, kind, run), *known)


def create(scene: Scene, kinds: Sequence[Kind], run: str) -> None:
    for kind in kinds:
        scene.sql(kind.statement(run))


def test_every_kind_is_in_a_group():
    assert sorted(k.name for k in KINDS) == sorted(name for g in GROUPS.values() for name in g)


def query_of(scene: Scene, kind: Kind, run: str) -> str:
    sink = f"{run}_{kind.name}".upper()
    return next(q["id"] for q in scene.client.queries() if q["sinks"] == [sink])


def assert_same(scene: Scene, kind: Kind) -> None:
    whole, killed = outcome(scene, kind, "whole"), outcome(scene, kind, "killed")
    assert whole, kind.name
    assert not whole - killed, f"{kind.name} lacks rows"
    assert not killed - whole, f"{kind.name} has rows that should not be there"
