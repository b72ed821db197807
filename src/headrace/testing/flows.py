"""Runs the queries of one case: records go in topic by topic, and all queries process them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from headrace.engine.environment import Environment
from headrace.engine.failure_reasons import reason_of
from headrace.engine.statements.changes import Change, NewQuery
from headrace.engine.statements.provision import Provisioned
from headrace.kafka.records import NewRecord, Record
from headrace.plan import nodes as n
from headrace.testing.cases import CaseRecord
from headrace.testing.outcomes import CaseFailure
from headrace.testing.rehearsal import Rehearsal
from headrace.testing.topic_codecs import TopicCodecs

# A case reads the entries of its queries' processing log as a topic of this name.
PROCESSING_LOG = "processing-log"


class RunningQuery(Protocol):
    def drain(self) -> None:
        """Processes all records of the query's topics."""

    def stop(self) -> None:
        """Another takes its place, and goes on with its state."""

    def close(self) -> None: ...


class Executor(Protocol):
    """Stores a case's records and runs its queries. Topics have the names of the statements."""

    @property
    def world(self) -> Environment: ...

    def topic(self, name: str) -> None:
        """Makes the topic if it is not there."""

    def write(self, topic: str, records: Sequence[NewRecord]) -> None: ...

    def read(self, topic: str) -> Sequence[Record]:
        """Everything that the topic holds by now."""

    def query(self, new: NewQuery, node: n.Write) -> RunningQuery: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class _Started:
    query: RunningQuery
    reads: frozenset[str]
    writes: str


class Flow:
    """The running queries of one case."""

    def __init__(self, executor: Executor, rehearsal: Rehearsal) -> None:
        self._executor = executor
        self._queries: dict[str, _Started] = {}
        self.codecs = TopicCodecs(
            executor.world, lambda: rehearsal.catalog, rehearsal.topics.subjects
        )

    @property
    def world(self) -> Environment:
        return self._executor.world

    # ------------------------------------------------------------------------- statements

    def apply(self, change: Change) -> None:
        """Does what a statement asks for, as far as records are concerned."""
        for id_ in change.stops:
            if change.starts is not None and change.starts.id == id_:
                self._queries[id_].query.stop()  # its place among the others stays
            else:
                self._queries.pop(id_).query.close()
        if change.creates is not None:
            self._executor.topic(change.creates.topic)
            Provisioned(self.world).provision(change.creates, None)
        if change.starts is not None:
            self._queries[change.starts.id] = self._started(change.starts)

    def _started(self, new: NewQuery) -> _Started:
        node = new.planned.node
        assert isinstance(node, n.Write)
        sources = frozenset(s.topic for s in n.sources(node))
        for topic in (*sources, node.topic):
            self._executor.topic(topic)
        return _Started(self._executor.query(new, node), sources, node.topic)

    # ---------------------------------------------------------------------------- records

    def feed(self, records: Iterable[CaseRecord]) -> None:
        """All records up to a change of topic, then every query drains, then the next."""
        for topic, run in groupby(records, lambda record: record.topic):
            self.write([self.codecs.encoded(record) for record in run], topic)

    def write(self, records: Sequence[NewRecord], topic: str) -> None:
        self._executor.topic(topic)
        self._executor.write(topic, records)
        fresh = {topic}
        for started in self._queries.values():
            if started.reads & fresh:
                self._drain(started.query)
                fresh.add(started.writes)

    def _drain(self, query: RunningQuery) -> None:
        try:
            query.drain()
        except Exception as e:  # whatever Spark raises: the case has failed
            raise CaseFailure(f"a query failed: {reason_of(e)}") from e

    def records(self, topic: str) -> list[Record]:
        """What the topic holds by now."""
        self._executor.topic(topic)
        return list(self._executor.read(topic))

    # -------------------------------------------------------------------------------- end

    def close(self) -> None:
        for started in self._queries.values():
            started.query.close()
        self._executor.close()
