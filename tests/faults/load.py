"""What runs while faults happen: queries of every kind, records that keep coming, and readers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice

from headrace.client import Client
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import NewRecord, RecordWriter
from headrace.model.errors import HeadraceError
from workload import JSON, KINDS, Feed, Kind

PLAIN = Kind(
    "plain",
    "SELECT k, n, UCASE(word) AS word FROM events WHERE n % 3 <> 0",
    ("events",),
    table=False,
    ordered=True,
)
AVRO = Kind(
    "avro",
    "SELECT k, n, word FROM events",
    ("events",),
    table=False,
    ordered=True,
    properties="value_format='AVRO'",
)
THIRD = Kind("third", "SELECT word, m FROM {run}_chained WHERE m > 10", ("{run}_chained",))
# Its topic is deleted and made again, so there is no twin: what was written is known.
REBORN = Kind("reborn", "SELECT k, n FROM reborn", ("reborn",), table=False)
REBORN_SOURCE = (
    f"CREATE STREAM reborn (k STRING KEY, n BIGINT) WITH (kafka_topic='reborn', {JSON});"
)
QUERIES = {kind.name: kind for kind in (REBORN, PLAIN, AVRO, *KINDS, THIRD)}
# Two runs have them all: one is too much for two cores, which would do little else than to start
# queries again.
_STATELESS, _JOINS = ("plain", "keyed", "filtered"), ("stream_inner", "looked_up")
_AGGREGATES = ("kernel", "tumbling", "final", "chained", "third")
_ONE = {*_STATELESS, *_JOINS, *_AGGREGATES}
HALVES = (
    [name for name in QUERIES if name in _ONE or name == REBORN.name],
    [name for name in QUERIES if name not in _ONE],
)
# One of each way in which queries work, for runs that must be short.
BRIEF = ("plain", "native", "kernel", "final", "stream_left", "keyed", "chained", "third")

PIECE = 8  # records that are written together
EVERY_SECONDS = 0.15


class Load:
    """Writes records until it is stopped, whatever becomes of the broker."""

    def __init__(self, kafka: KafkaConnection, seed: int) -> None:
        self.feed = Feed(seed)
        self.written = 0
        self._writer = RecordWriter(
            kafka, enable_idempotence=True, topic_metadata_refresh_interval_ms=2000
        )
        self._records = self._endless()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._writer.write_all(self.feed.cities())
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def write(self, records: Iterator[NewRecord]) -> None:
        self._writer.write_all(records)

    def close(self) -> None:
        self.stop()
        self._writer.close()

    def _endless(self) -> Iterator[NewRecord]:
        for number in count():
            yield from self.feed.chunk(number)

    def _run(self) -> None:
        while not self._stopped.wait(EVERY_SECONDS):
            piece = list(islice(self._records, PIECE))
            try:
                self._writer.write_all(piece)
            except HeadraceError as failure:
                # They are in the topic or not: both runs read the same.
                print(f"The producer could not tell whether records are written: {failure}")
            self.written += len(piece)


class Readers:
    """Clients that ask a server again and again: a pull query, and a push query."""

    def __init__(self, url: Callable[[], str], run: str, queries: Sequence[Kind]) -> None:
        self._url = url
        self.rows = {"pull": 0, "push": 0}
        self.failed = {"pull": 0, "push": 0}
        self._stopped = threading.Event()
        table = next(k for k in queries if k.name in ("native", "kernel", "filtered")).sink(run)
        stream = next(k for k in queries if k is not REBORN).sink(run)
        texts = {
            "pull": f"SELECT * FROM {table};",
            "push": f"SELECT * FROM {stream} EMIT CHANGES LIMIT 20;",
        }
        self._threads = [
            threading.Thread(target=self._run, args=(kind, text), daemon=True)
            for kind, text in texts.items()
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self, kind: str, text: str) -> None:
        while not self._stopped.wait(0.5):
            try:
                with Client(self._url(), timeout=20) as client:
                    self.rows[kind] += len(client.pull(text))
            except Exception:
                self.failed[kind] += 1  # no server, for the moment
                self._stopped.wait(0.5)
