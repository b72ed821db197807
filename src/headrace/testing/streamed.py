"""Runs the queries of a case as a server does: streaming, from Kafka to Kafka.

Statements name topics as they like; in Kafka each case has topics of its own, so that cases can
run beside each other.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from pyspark.errors import StreamingQueryException

from headrace.engine.environment import Environment
from headrace.engine.queries.persistent import PersistentQuery
from headrace.engine.queries.program import persistent_program, taken_over
from headrace.engine.statements.changes import NewQuery
from headrace.kafka.records import (
    NewRecord,
    Record,
    RecordReader,
    RecordWriter,
)
from headrace.model.settings import Settings
from headrace.plan import nodes as n
from headrace.plan.replace import starts_anew
from headrace.spark.runtime.checkpoint import take_over
from headrace.testing.flows import PROCESSING_LOG


class Topics(Protocol):
    def take(self) -> str:
        """A topic of one partition that nobody has used."""

    def take_back(self, names: Iterable[str]) -> None: ...


class StreamingExecutor:
    """Runs a case's queries as streams; `label` distinguishes them from other cases'."""

    def __init__(
        self, world: Environment, topics: Topics, writer: RecordWriter, label: str
    ) -> None:
        self._names: dict[str, str] = {}
        self.world = replace(world, topic_names=self._names)
        self._plans: dict[str, n.Write] = {}
        self._topics = topics
        self._writer = writer
        self._label = label

    def topic(self, name: str) -> None:
        if name not in self._names:
            self._names[name] = self._topics.take()
            if name == PROCESSING_LOG:  # its own, if it wants to read it
                log = {"ksql.logging.processing.topic.name": self._names[name]}
                self.world = replace(self.world, settings=self.world.settings.override(log))

    def write(self, topic: str, records: Sequence[NewRecord]) -> None:
        name = self._names[topic]
        self._writer.write_all([replace(record, topic=name) for record in records])

    def read(self, topic: str) -> list[Record]:
        reader = RecordReader(self.world.kafka, self.world.admin)
        return list(reader.read(self._names[topic]))

    def query(self, new: NewQuery, node: n.Write) -> StreamedQuery:
        name = f"{self._label}_{new.id}"
        checkpoint = f"{self.world.state_dir}/{name}"
        starts = {source.topic: {0: 0} for source in n.sources(node)}
        before = self._plans.get(new.id)
        if before is not None and starts_anew(before, node):
            take_over(self.world.spark, checkpoint)
        self._plans[new.id] = node
        settings = Settings(new.settings)
        return StreamedQuery(
            PersistentQuery(
                id=name,
                statement=new.statement,
                plan=lambda: new.planned,
                build=lambda planned, decoding, accept: persistent_program(
                    self.world,
                    name,
                    node,
                    settings,
                    taken_over(self.world, node, starts, checkpoint),
                    checkpoint,
                    decoding,
                ),
                checkpoint=checkpoint,
                overrides=new.settings,
            )
        )

    def close(self) -> None:
        self._topics.take_back(self._names.values())


class StreamedQuery:
    """Starts when it is first needed."""

    def __init__(self, query: PersistentQuery) -> None:
        self._query = query

    def drain(self) -> None:
        """Waits until all is read; a query whose records want another plan starts again."""
        while True:
            try:
                self._drain()
                return
            except StreamingQueryException as e:
                if not self._query.was_too_optimistic(e):
                    raise
                self._query.stop()

    def _drain(self) -> None:
        if self._query.streaming is None:
            self._query.start()
        assert self._query.streaming is not None
        self._query.streaming.processAllAvailable()

    def stop(self) -> None:
        self._query.stop()

    def close(self) -> None:
        with suppress(Exception):  # it has been seen before, or matters no more
            self._query.stop()
        shutil.rmtree(Path(self._query.checkpoint), ignore_errors=True)
