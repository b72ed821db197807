"""The queries of one case, running: records go in topic by topic, every query drains, records
come out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from headrace.engine.changes import Change, NewQuery
from headrace.engine.failures import reason_of
from headrace.engine.provision import Provisioned
from headrace.engine.world import World
from headrace.plan import nodes as n
from headrace.testing.cases import CaseRecord
from headrace.testing.outcomes import CaseFailure
from headrace.testing.rehearsal import Rehearsal
from headrace.testing.wires import Wires
from headrace.topics.records import NewRecord, Record

# A case reads the entries of its queries' processing log as a topic of this name.
PROCESSING_LOG = "processing-log"


class RunningQuery(Protocol):
    def drain(self) -> None:
        """Everything that is in its topics goes through."""

    def stop(self) -> None:
        """Another takes its place, and goes on with its state."""

    def close(self) -> None: ...


class Ground(Protocol):
    """Where a case's records lie and its queries run. Topics go by the names of the statements."""

    @property
    def world(self) -> World: ...

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
    """What runs for one case."""

    def __init__(self, ground: Ground, rehearsal: Rehearsal) -> None:
        self._ground = ground
        self._queries: dict[str, _Started] = {}
        self.wires = Wires(ground.world, lambda: rehearsal.catalog, rehearsal.outside.subjects)

    @property
    def world(self) -> World:
        return self._ground.world

    # ------------------------------------------------------------------------- statements

    def apply(self, change: Change) -> None:
        """Does what a statement asks for, as far as records are concerned."""
        for id_ in change.stops:
            if change.starts is not None and change.starts.id == id_:
                self._queries[id_].query.stop()  # its place among the others stays
            else:
                self._queries.pop(id_).query.close()
        if change.creates is not None:
            self._ground.topic(change.creates.topic)
            Provisioned(self.world).provision(change.creates, None)
        if change.starts is not None:
            self._queries[change.starts.id] = self._started(change.starts)

    def _started(self, new: NewQuery) -> _Started:
        node = new.planned.node
        assert isinstance(node, n.Write)
        sources = frozenset(s.topic for s in n.sources(node))
        for topic in (*sources, node.topic):
            self._ground.topic(topic)
        return _Started(self._ground.query(new, node), sources, node.topic)

    # ---------------------------------------------------------------------------- records

    def feed(self, records: Iterable[CaseRecord]) -> None:
        """All records up to a change of topic, then every query drains, then the next."""
        for topic, run in groupby(records, lambda record: record.topic):
            self.write([self.wires.encoded(record) for record in run], topic)

    def write(self, records: Sequence[NewRecord], topic: str) -> None:
        self._ground.topic(topic)
        self._ground.write(topic, records)
        fresh = {topic}
        for started in self._queries.values():
            if started.reads & fresh:
                self._drain(started.query)
                fresh.add(started.writes)

    def _drain(self, query: RunningQuery) -> None:
        try:
            query.drain()
        except Exception as e:
            raise CaseFailure(f"a query failed: {reason_of(e)}") from e

    def records(self, topic: str) -> list[Record]:
        """What the topic holds by now."""
        self._ground.topic(topic)
        return list(self._ground.read(topic))

    # -------------------------------------------------------------------------------- end

    def close(self) -> None:
        for started in self._queries.values():
            started.query.close()
        self._ground.close()
