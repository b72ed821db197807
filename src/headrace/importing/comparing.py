"""Compares two topics: whether they hold the same.

Of a stream's topic all records count, in order for each key; without keys, in any order. Of a
table's topic the last record of each key counts: how many changes lead there may differ. Records
are compared by what they say: JSON by its values, records that name a schema by their fields, all
others by their bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import blake2b

from headrace.engine.statements.print_topic import RegisteredRecords
from headrace.kafka.admin import TopicAdmin
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import Record, RecordReader
from headrace.registry.client import RegistryClient

SHOWN = 10
_DIGITS = 40
# What a key or value says, in a form that is the same if they say the same.
Meaning = bytes | None
Meanings = Callable[[bytes | None], Meaning]
Records = dict[Meaning, list[bytes]]


@dataclass(frozen=True)
class Difference:
    """A key whose records are not the same; each side's are as texts, the last of a table."""

    key: str
    left: tuple[str, ...]
    right: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """What two topics hold, and by how many keys they differ; the first are shown."""

    as_table: bool
    records: tuple[int, int]
    keys: tuple[int, int]
    differing: int = 0
    shown: tuple[Difference, ...] = ()

    @property
    def same(self) -> bool:
        return not self.differing


@dataclass(frozen=True)
class TopicComparer:
    """Compares topics of one Kafka. Unless `as_table` says, the first topic's cleanup policy does.
    `timestamps`: the times of records count, too. `any_order`: the order of a key's records does
    not, as where several queries write."""

    connection: KafkaConnection
    registry: RegistryClient | None = None
    as_table: bool | None = None
    timestamps: bool = False
    any_order: bool = False

    def compare(self, left: str, right: str) -> Comparison:
        admin, meaning = TopicAdmin(self.connection), meanings(self.registry)
        as_table = self.as_table
        if as_table is None:
            as_table = "compact" in admin.configs(left).get("cleanup.policy", "")
        topics = [_Topic(self, admin, meaning, name, as_table) for name in (left, right)]
        first, second = (topic.content() for topic in topics)
        keys = [
            key
            for key in {**first.by_key, **second.by_key}
            if not self._same(key, first.by_key.get(key, []), second.by_key.get(key, []))
        ]
        told = [topic.texts(keys[:SHOWN]) for topic in topics] if keys else [{}, {}]
        return Comparison(
            as_table,
            (first.records, second.records),
            (len(first.by_key), len(second.by_key)),
            len(keys),
            tuple(
                Difference(shown_text(key), told[0].get(key, ()), told[1].get(key, ()))
                for key in keys[:SHOWN]
            ),
        )

    def _same(self, key: Meaning, left: Sequence[bytes], right: Sequence[bytes]) -> bool:
        return sorted(left) == sorted(right) if self.any_order or key is None else left == right


@dataclass
class _Content:
    """What a topic holds: digests of values by key, in order."""

    records: int = 0
    by_key: Records = field(default_factory=dict)


@dataclass(frozen=True)
class _Topic:
    comparer: TopicComparer
    admin: TopicAdmin
    meaning: Meanings
    name: str
    as_table: bool

    def content(self) -> _Content:
        content = _Content()
        for record in self._read():
            content.records += 1
            key, value = self.meaning(record.key), self.meaning(record.value)
            digest = blake2b(repr((value, self._time(record))).encode(), digest_size=16).digest()
            if not self.as_table:
                content.by_key.setdefault(key, []).append(digest)
            elif value is None:
                content.by_key.pop(key, None)
            else:
                content.by_key[key] = [digest]
        return content

    def texts(self, keys: Collection[Meaning]) -> Mapping[Meaning, tuple[str, ...]]:
        """The values of some keys, to be shown."""
        found: dict[Meaning, tuple[str, ...]] = {}
        for record in self._read():
            key = self.meaning(record.key)
            if key in keys:
                before = () if self.as_table else found.get(key, ())
                found[key] = (*before, self._shown(record))
        return found

    def _shown(self, record: Record) -> str:
        time = self._time(record)
        value = shown_text(self.meaning(record.value))
        return value if time is None else f"{value} at {time}"

    def _time(self, record: Record) -> int | None:
        return record.timestamp if self.comparer.timestamps else None

    def _read(self) -> Iterator[Record]:
        return RecordReader(self.comparer.connection, self.admin).read(self.name)


def meanings(registry: RegistryClient | None) -> Meanings:
    registered = None if registry is None else RegisteredRecords(registry)

    def meaning(data: bytes | None) -> Meaning:
        if data is None:
            return None
        text = registered.text(data) if registered is not None else None
        if text is not None:
            return text.encode()
        try:
            return _canonical(json.loads(data, parse_float=Decimal, parse_int=Decimal)).encode()
        except (ValueError, RecursionError):
            return data

    return meaning


def _canonical(value: object) -> str:
    """JSON with numbers by their value and fields in the order of their names."""
    match value:
        case Decimal():
            return _number(value)
        case dict():
            members = (f"{json.dumps(k)}:{_canonical(v)}" for k, v in sorted(value.items()))
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(map(_canonical, value)) + "]"
    return json.dumps(value)


def _number(value: Decimal) -> str:
    """The same for the same value; without an exponent, unless it would be endless."""
    plain = value.normalize()
    return format(plain, "f") if -_DIGITS < plain.adjusted() < _DIGITS else str(plain)


def shown_text(meaning: Meaning) -> str:
    if meaning is None:
        return "null"
    text = meaning.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
