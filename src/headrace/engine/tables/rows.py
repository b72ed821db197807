"""A table's rows from its records, and the stored keys under which they are found."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from headrace.engine.environment import Environment
from headrace.engine.layouts import read_layout
from headrace.engine.tables.follower import Followed
from headrace.engine.tables.row_store import RowStore, StoredRecord, headers_of
from headrace.formats import FORMATS
from headrace.formats.base import CodecError, RegistryFormat, RowCodec, Side
from headrace.model.schema import ROWOFFSET, ROWPARTITION, ROWTIME, WINDOWEND, WINDOWSTART
from headrace.model.sources import Source, WindowType
from headrace.plan.pull import Bound, KeyConstraint, Range

T = TypeVar("T")
RELOAD_SECONDS = 1.0

_LONG = struct.Struct(">q")
_NOTHING_ABOVE = b"\xff" * 17  # after every window that can follow a key


@dataclass(frozen=True)
class _Span:
    """Stored keys from `low` on and below `high`, of this length if one is given."""

    low: bytes | None
    high: bytes | None
    length: int | None = None
    is_key: bool = False

    def holds(self, key: bytes) -> bool:
        return (
            (self.low is None or key >= self.low)
            and (self.high is None or key < self.high)
            and (self.length is None or len(key) == self.length)
        )


class RowReader:
    """Reads the records of one table."""

    def __init__(self, env: Environment, source: Source) -> None:
        self._env = env
        self.source = source
        formats = (FORMATS[source.key.format], FORMATS[source.value.format])
        # Others may register schemas that were not there when we looked: we then look again.
        self.may_wait = not source.is_sink and any(isinstance(f, RegistryFormat) for f in formats)
        self._suffix = _suffix(source)
        self._key_names = [c.name for c in source.schema.key]
        self._has_headers = bool(source.schema.headers)
        self._no_key = dict.fromkeys(self._key_names)
        self._no_value = dict.fromkeys(c.name for c in source.schema.value)
        self._load_codecs()

    def _load_codecs(self) -> None:
        self._loaded_at = time.monotonic()
        self._key = self._codec("key")
        self._value = self._codec("value")

    def _codec(self, side: Side) -> RowCodec | None:
        format_, layout = read_layout(self._env, self.source, side)
        return format_.python(layout) if layout.columns else None

    # ------------------------------------------------------------------ records to rows

    def row(self, record: StoredRecord) -> dict[str, object] | None:
        """Columns and pseudocolumns by name; None for a record that is not a row."""
        return self._decoded(lambda: self._row(record))

    def _decoded(self, decode: Callable[[], T | None]) -> T | None:
        try:
            return decode()
        except CodecError:
            if not self._codecs_may_be_old():
                return None
        self._load_codecs()
        try:
            return decode()
        except CodecError:
            return None

    def _codecs_may_be_old(self) -> bool:
        return self.may_wait and time.monotonic() - self._loaded_at > RELOAD_SECONDS

    def _row(self, record: StoredRecord) -> dict[str, object] | None:
        key = record.key[: -self._suffix] if self._suffix else record.key
        row: dict[str, object] = {}
        if self._key is not None:
            row.update(self._key.decode(key) or self._no_key)
        if self._value is not None:
            row.update(self._value.decode(record.value) or self._no_value)
        if self._suffix:
            row[WINDOWSTART], row[WINDOWEND] = self._window(record.key)
        if self._has_headers:
            row.update(self._headers(record))
        declared = self.source.timestamp
        at = record.timestamp if declared is None else row[declared.name]
        if not isinstance(at, int) or at < 0:
            return None
        row[ROWTIME] = at
        row[ROWPARTITION] = record.partition
        row[ROWOFFSET] = record.offset
        return row

    def _window(self, key: bytes) -> tuple[int, int]:
        window = self.source.window
        assert window is not None
        (start,) = _LONG.unpack(key[-8:])
        if window.type is WindowType.SESSION:
            return start, _LONG.unpack(key[-16:-8])[0]
        return start, start + (window.size_ms or 0)

    def _headers(self, record: StoredRecord) -> Iterator[tuple[str, object]]:
        headers = headers_of(record)
        for column in self.source.schema.headers:
            if column.header_key is None:
                yield column.name, [{"KEY": k, "VALUE": v} for k, v in headers]
            else:
                found = [v for k, v in headers if k == column.header_key]
                yield column.name, found[-1] if found else None

    # ------------------------------------------------------------------ constraints to records

    def key_bytes(self, values: tuple[object, ...]) -> bytes | None:
        """A key as it stands in the topic, without a window; None for one that cannot be there."""
        assert self._key is not None
        try:
            return self._key.encode(dict(zip(self._key_names, values, strict=True)))
        except CodecError:
            return None

    def find(self, store: RowStore, constraint: KeyConstraint) -> Iterator[StoredRecord]:
        span = self._span(constraint)
        if span is None:
            return
        if span.is_key:
            if (record := store.get(cast(bytes, span.low))) is not None:
                yield record
            return
        for record in store.scan(span.low, span.high):
            if span.holds(record.key):
                yield record

    def find_all(self, store: RowStore, any_of: Sequence[KeyConstraint]) -> Iterator[StoredRecord]:
        """The records of any of the constraints, each once."""
        keys: set[bytes] = set()
        spans: list[_Span] = []
        for constraint in any_of:
            span = self._span(constraint)
            if span is None:
                continue
            for record in self.find(store, constraint):
                key = record.key
                if key not in keys and not any(before.holds(key) for before in spans):
                    yield record
            if span.is_key:
                keys.add(cast(bytes, span.low))
            else:
                spans.append(span)

    def _span(self, constraint: KeyConstraint) -> _Span | None:
        """Where the records of a constraint are; None if there can be none."""
        if constraint.key is None:
            return _Span(*self._range(constraint.range or Range()))
        key = self.key_bytes(constraint.key)
        if key is None:
            return None
        if not self._suffix:
            return _Span(key, key + b"\x00", is_key=True)
        # Another key may begin with these bytes; it has another length.
        length = len(key) + self._suffix
        if self._suffix != _LONG.size:
            return _Span(key, key + _NOTHING_ABOVE, length)
        first, last = _bounds(constraint.window_start)
        return _Span(key + _packed(first), key + _packed(last) + b"\x00", length)

    def _range(self, limits: Range) -> tuple[bytes | None, bytes | None]:
        """Bytes that the range's keys are between; where bytes have no order, everything."""
        if not FORMATS[self.source.key.format].ordered_keys or self._suffix:
            return None, None

        def limit(bound: Bound | None, above: bool) -> bytes | None:
            key = None if bound is None else self.key_bytes((bound.value,))
            # The next string after a key has one more byte.
            return key + b"\x00" if key is not None and above else key

        return limit(limits.lower, above=False), limit(limits.upper, above=True)

    # ------------------------------------------------------------------ what is followed

    def followed(self) -> Followed:
        """Headrace's own tables are followed as they are written; others are checked."""
        source = self.source
        name, topic = tail_name(source), self._env.in_kafka(source.topic)
        if source.is_sink:
            return Followed(name, topic)
        shape = f"{source.schema}|{source.key}|{source.value}|{source.window}|keys without an id"
        return Followed(name, topic, shape, self._admit)

    def _admit(self, key: bytes, value: bytes | None) -> bytes | None:
        return self._decoded(lambda: self._canonical(key, value))

    def _canonical(self, key: bytes, value: bytes | None) -> bytes | None:
        """The key as we would have written it; raises if the record cannot be read."""
        inner = key[: -self._suffix] if self._suffix else key
        if self._value is not None:
            self._value.decode(value)
        if self._key is None:
            return key
        canonical = self._key.encode(self._key.decode(inner))
        return None if canonical is None else canonical + key[len(inner) :]


def tail_name(source: Source) -> str:
    return source.topic if source.is_sink else f"{source.topic}@{source.name}"


def _suffix(source: Source) -> int:
    """How many bytes of a key are its window."""
    if source.window is None:
        return 0
    return 16 if source.window.type is WindowType.SESSION else 8


def _bounds(limits: Range) -> tuple[int, int]:
    lower, upper = limits.lower, limits.upper
    first = 0 if lower is None else _whole(lower) + (0 if lower.inclusive else 1)
    last = 2**63 - 1 if upper is None else _whole(upper) - (0 if upper.inclusive else 1)
    return first, last


def _whole(bound: Bound) -> int:
    assert isinstance(bound.value, int)
    return bound.value


def _packed(value: int) -> bytes:
    return _LONG.pack(min(max(value, 0), 2**63 - 1))
