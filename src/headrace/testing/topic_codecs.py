"""Converts the records of all topics of a case between bytes and the test file's notation."""

from __future__ import annotations

from collections.abc import Callable, Collection

from headrace.catalog.catalog import Catalog
from headrace.engine.environment import Environment
from headrace.engine.layouts import source_layout, with_references
from headrace.formats.base import RegistryFormat, Side
from headrace.kafka.records import NewRecord, Record
from headrace.model.errors import HeadraceError
from headrace.model.schema import ROWTIME
from headrace.model.sources import Source, WindowType
from headrace.testing import record_codecs as codecs
from headrace.testing.cases import CaseRecord
from headrace.testing.record_codecs import CaseCodec, written_layout


class TopicCodecs:
    """The codecs of each topic, from the source that is declared over it.

    `earlier` names the subjects whose schemas were there before the statements: records that are
    written bear them.
    """

    def __init__(
        self, world: Environment, catalog: Callable[[], Catalog], earlier: Collection[str]
    ) -> None:
        self._world = world
        self._catalog = catalog
        self._earlier = earlier
        self._made: dict[tuple[str, Side, bool], CaseCodec] = {}

    def encoded(self, record: CaseRecord) -> NewRecord:
        key = self._codec(record.topic, "key", written=True).encode(record.key)
        return NewRecord(
            record.topic,
            codecs.with_window(key, record.window),
            self._codec(record.topic, "value", written=True).encode(record.value),
            record.headers,
            record.timestamp,
        )

    def decoded(self, record: Record, topic: str) -> CaseRecord:
        key, window = record.key, None
        source = self._source(topic)
        if source.window is not None:
            session = source.window.type is WindowType.SESSION
            key, window = codecs.split_window(key, session, source.window.size_ms)
        return CaseRecord(
            topic,
            self._codec(topic, "key").decode(key),
            self._codec(topic, "value").decode(record.value),
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
            key, _ = codecs.split_window(key, session, source.window.size_ms)
        sides: list[tuple[Side, bytes | None]] = [("key", key), ("value", record.value)]
        for side, data in sides:
            format_, layout = source_layout(self._world, source, side)
            decoded = format_.python(layout).decode(data) if layout.columns else None
            row |= decoded or {c.name: None for c in layout.columns}
        return row

    def _source(self, topic: str) -> Source:
        found = [s for s in self._catalog().sources() if s.topic == topic]
        if not found:
            raise HeadraceError(f"No stream or table of the test has the topic '{topic}'.")
        return found[-1]

    def _codec(self, topic: str, side: Side, written: bool = False) -> CaseCodec:
        made = self._made.get((topic, side, written))
        if made is None:
            made = self._made[topic, side, written] = self._new_codec(topic, side, written)
        return made

    def _new_codec(self, topic: str, side: Side, written: bool) -> CaseCodec:
        format_, layout = source_layout(self._world, self._source(topic), side)
        if isinstance(format_, RegistryFormat) and layout.physical is not None and not written:
            # Records of a schema that the statement names may have more fields than it has columns.
            assert layout.schema_id is not None
            return codecs.codec_of(
                format_, written_layout(format_, layout, layout.schema_id, layout.physical)
            )
        subject, registry = f"{topic}-{side}", self._world.registry
        if written and isinstance(format_, RegistryFormat) and subject in self._earlier:
            assert registry is not None
            first = registry.versions(subject)[0]
            layout = written_layout(format_, layout, first.id, with_references(registry, first))
        return codecs.codec_of(format_, layout)
