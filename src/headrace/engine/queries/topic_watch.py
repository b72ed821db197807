"""Checks regularly whether the topics of running queries were made again.

Spark notices by itself when records are gone, and when a topic has more partitions. That a topic
was deleted and made again it does not, if there are soon as many records as before.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.engine.queries.persistent import QueryKeeper
from headrace.engine.supervised import SupervisedThread
from headrace.kafka.admin import TopicAdmin

LOOK_SECONDS = 5.0


class TopicWatch:
    """Restarts queries whose topic was deleted and made again."""

    def __init__(self, admin: TopicAdmin, queries: QueryKeeper) -> None:
        self._admin = admin
        self._queries = queries
        self.thread = SupervisedThread("topic-watch", self._run)

    def open(self) -> None:
        self.thread.start()

    def close(self) -> None:
        """Stops the thread, without waiting for Kafka."""
        self.thread.stopping.set()

    def _run(self) -> None:
        while not self.thread.stopping.wait(LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        running = [q for q in self._queries.all_known() if q.streaming is not None]
        readings = {query.id: query.reading for query in running if query.reading is not None}
        topics = sorted({topic for reading in readings.values() for topic in reading.seen})
        found = self._admin.identify(topics)
        for query in running:
            reading = readings.get(query.id)
            if reading is None:
                continue
            now = {
                topic: replace(seen, id=found[topic][0], partitions=found[topic][1].partitions)
                if topic in found
                else seen
                for topic, seen in reading.seen.items()
            }
            if any(seen.id != now[topic].id for topic, seen in reading.seen.items()):
                self._queries.restart(query.id)
            elif query.reading is reading:
                query.reading = replace(reading, seen=now)
