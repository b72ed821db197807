"""The queries of one case, running: records go in topic by topic, every query drains, records
come out.

Statements name topics as they like; in Kafka each case has topics of its own, so that cases can
run beside each other.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from headrace.engine.changes import Change, NewQuery
from headrace.engine.failures import reason_of
from headrace.engine.layouts import source_layout
from headrace.engine.provision import Provisioned
from headrace.engine.queries import PersistentQuery
from headrace.engine.running import persistent_program
from headrace.engine.world import World
from headrace.formats.base import RegistryFormat, RegistrySchema, Side
from headrace.model.errors import HeadraceError
from headrace.model.schema import ROWTIME
from headrace.model.settings import Settings
from headrace.model.sources import Source, WindowType
from headrace.plan import nodes as n
from headrace.testing.cases import CaseRecord
from headrace.testing.outcomes import CaseFailure
from headrace.testing.rehearsal import Rehearsal
from headrace.testing.wire import Wire, split_window, wire_of, with_window, written_layout
from headrace.topics.records import NewRecord, Record, RecordReader, RecordWriter

# Gives a topic of one partition that nobody has used.
NewTopic = Callable[[], str]


class Flow:
    """What runs for one case. `world` is the case's own: its registry, its names of topics."""

    def __init__(
        self,
        world: World,
        rehearsal: Rehearsal,
        new_topic: NewTopic,
        writer: RecordWriter,
        label: str,
    ) -> None:
        self._names: dict[str, str] = {}
        self.world = replace(world, registry=rehearsal.outside.registry, topic_names=self._names)
        self._rehearsal = rehearsal
        self._new_topic = new_topic
        self._writer = writer
        self._label = label
        self._queries: dict[str, _RunningQuery] = {}
        self._wires: dict[tuple[str, Side], Wire] = {}
        # Schemas that were there before the statements: records may bear them.
        self._earlier = rehearsal.outside.subjects

    # ------------------------------------------------------------------------- statements

    def apply(self, change: Change) -> None:
        """Does what a statement asks for, as far as records are concerned."""
        for id_ in change.stops:
            stopped = self._queries.pop(id_)
            if change.starts is None or change.starts.id != id_:
                stopped.close()
            else:
                stopped.query.stop()  # its successor goes on from its checkpoint
        if change.creates is not None:
            self._topic(change.creates.topic)
            Provisioned(self.world).provision(change.creates, None)
        if change.starts is not None:
            self._queries[change.starts.id] = self._query(change.starts)

    def _query(self, new: NewQuery) -> _RunningQuery:
        node = new.planned.node
        assert isinstance(node, n.Write)
        sources = {s.topic for s in n.sources(node)}
        for topic in (*sources, node.topic):
            self._topic(topic)
        name = f"{self._label}_{new.id}"
        checkpoint = f"{self.world.state_dir}/{name}"
        starts = {topic: {0: 0} for topic in sources}
        query = PersistentQuery(
            id=name,
            statement=new.statement,
            planned=new.planned,
            build=lambda: persistent_program(
                self.world, name, node, Settings(new.settings), starts, checkpoint
            ),
            checkpoint=checkpoint,
            overrides=new.settings,
        )
        return _RunningQuery(query, frozenset(sources), node.topic)

    def _topic(self, name: str) -> str:
        if name not in self._names:
            self._names[name] = self._new_topic()
        return self._names[name]

    # ---------------------------------------------------------------------------- records

    def feed(self, records: Iterable[CaseRecord]) -> None:
        """All records up to a change of topic, then every query drains, then the next."""
        for topic, run in groupby(records, lambda record: record.topic):
            self.write([self._encoded(record) for record in run], topic)

    def write(self, records: Sequence[NewRecord], topic: str) -> None:
        self._writer.write_all(records)
        fresh = {topic}
        for query in self._queries.values():
            if query.reads & fresh:
                query.drain()
                fresh.add(query.writes)

    def _encoded(self, record: CaseRecord) -> NewRecord:
        key = self._wire(record.topic, "key", written=True).encode(record.key)
        return NewRecord(
            self._topic(record.topic),
            with_window(key, record.window),
            self._wire(record.topic, "value", written=True).encode(record.value),
            record.headers,
            record.timestamp,
        )

    def records(self, topic: str) -> list[Record]:
        """What the topic holds by now."""
        return list(RecordReader(self.world.kafka, self.world.admin).read(self._topic(topic)))

    def decoded(self, record: Record, topic: str) -> CaseRecord:
        source = self.source(topic)
        key, window = record.key, None
        if source is not None and source.window is not None:
            session = source.window.type is WindowType.SESSION
            key, window = split_window(key, session, source.window.size_ms)
        return CaseRecord(
            topic,
            self._wire(topic, "key").decode(key),
            self._wire(topic, "value").decode(record.value),
            record.timestamp,
            window,
            record.headers,
        )

    def row(self, record: Record, source: Source) -> dict[str, object]:
        """A record's columns, and its time."""
        row: dict[str, object] = {ROWTIME: record.timestamp}
        key = record.key
        if source.window is not None:
            session = source.window.type is WindowType.SESSION
            key, _ = split_window(key, session, source.window.size_ms)
        sides: list[tuple[Side, bytes | None]] = [("key", key), ("value", record.value)]
        for side, data in sides:
            format_, layout = source_layout(self.world, source, side)
            decoded = format_.python(layout).decode(data) if layout.columns else None
            row |= decoded or {c.name: None for c in layout.columns}
        return row

    def lenient(self, topic: str, side: Side) -> bool:
        return self._wire(topic, side).lenient

    def source(self, topic: str) -> Source | None:
        found = [s for s in self._rehearsal.catalog.sources() if s.topic == topic]
        return found[-1] if found else None

    def _wire(self, topic: str, side: Side, written: bool = False) -> Wire:
        if (topic, side) not in self._wires:
            self._wires[topic, side] = self._new_wire(topic, side, written)
        return self._wires[topic, side]

    def _new_wire(self, topic: str, side: Side, written: bool) -> Wire:
        source = self.source(topic)
        if source is None:
            raise HeadraceError(f"No stream or table of the test has the topic '{topic}'.")
        format_, layout = source_layout(self.world, source, side)
        subject = f"{topic}-{side}"
        if written and isinstance(format_, RegistryFormat) and subject in self._earlier:
            found = self._rehearsal.outside.registry.latest(subject)
            assert found is not None
            schema = RegistrySchema(found.text, found.type)
            layout = written_layout(format_, layout, found.id, schema)
        return wire_of(format_, layout)

    # -------------------------------------------------------------------------------- end

    def close(self) -> None:
        for query in self._queries.values():
            query.close()


class _RunningQuery:
    """A persistent query of a case: starts when it is first needed, and drains on demand."""

    def __init__(self, query: PersistentQuery, reads: frozenset[str], writes: str) -> None:
        self.query = query
        self.reads = reads
        self.writes = writes

    def drain(self) -> None:
        """Everything that is in its topics goes through."""
        try:
            if self.query.streaming is None:
                self.query.start()
            assert self.query.streaming is not None
            self.query.streaming.processAllAvailable()
        except Exception as e:
            raise CaseFailure(f"a query failed: {reason_of(e)}") from e

    def close(self) -> None:
        with suppress(Exception):  # it has been seen before, or matters no more
            self.query.stop()
        shutil.rmtree(Path(self.query.checkpoint), ignore_errors=True)
