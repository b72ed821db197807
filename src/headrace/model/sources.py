"""Streams and tables: their schemas, and the form of their records in a topic."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from headrace.model.schema import Column, Schema


class SourceKind(Enum):
    STREAM = "STREAM"
    TABLE = "TABLE"


class WindowType(Enum):
    TUMBLING = "TUMBLING"
    HOPPING = "HOPPING"
    SESSION = "SESSION"


@dataclass(frozen=True)
class WindowedKey:
    """The key of a windowed source carries its window; sessions have no fixed size."""

    type: WindowType
    size_ms: int | None = None

    @property
    def width(self) -> int:
        """Of its bytes in the key: the start; of sessions the end before it, too."""
        return 16 if self.type is WindowType.SESSION else 8


@dataclass(frozen=True)
class TimestampColumn:
    """The column that gives a record its time, and its text pattern if it is a string."""

    name: str
    format: str | None = None


@dataclass(frozen=True)
class Serde:
    """How one side (key or value) of a record is written.

    `wrap` is the setting in force for single fields (KLIP-3): True, False, or None when the
    format has no choice or nothing was said. It is kept for schemas of many fields too, because
    queries downstream inherit it, unless `wrap_inherited` is off (the released name
    WRAP_SINGLE_VALUE is not inherited). `properties` are the format's own (delimiter, …).
    """

    format: str
    wrap: bool | None = None
    properties: tuple[tuple[str, str], ...] = ()
    wrap_inherited: bool = True

    def property(self, name: str) -> str | None:
        return dict(self.properties).get(name)


@dataclass(frozen=True)
class Source:
    """A stream or a table, as the catalog knows it."""

    name: str
    kind: SourceKind
    schema: Schema
    topic: str
    key: Serde
    value: Serde
    timestamp: TimestampColumn | None = None
    window: WindowedKey | None = None
    read_only: bool = False  # CREATE SOURCE STREAM|TABLE: no inserts, never deletes its topic
    is_sink: bool = False  # created by C*AS; its topic is owned by Headrace
    statement: str = ""

    @property
    def is_table(self) -> bool:
        return self.kind is SourceKind.TABLE

    def side(self, side: Literal["key", "value"]) -> tuple[Serde, tuple[Column, ...]]:
        """How one side of its records is written, and the columns that lie there."""
        if side == "key":
            return self.key, self.schema.key
        return self.value, self.schema.value
