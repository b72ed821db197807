"""Schemas: ordered columns, each read from a record's key, value or headers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from headrace.model.types import (
    BIGINT,
    BYTES,
    INTEGER,
    STRING,
    Array,
    Field,
    SqlType,
    Struct,
    quote,
)

ROWTIME = "ROWTIME"
ROWPARTITION = "ROWPARTITION"
ROWOFFSET = "ROWOFFSET"
WINDOWSTART = "WINDOWSTART"
WINDOWEND = "WINDOWEND"

# Columns every record has without being part of any schema (KLIP-14), and their types.
PSEUDOCOLUMNS: dict[str, SqlType] = {ROWTIME: BIGINT, ROWPARTITION: INTEGER, ROWOFFSET: BIGINT}
# Columns that every record of a windowed source has besides.
WINDOW_BOUNDS: dict[str, SqlType] = {WINDOWSTART: BIGINT, WINDOWEND: BIGINT}
# Names that no user column may bear.
RESERVED_COLUMNS = frozenset(PSEUDOCOLUMNS) | frozenset(WINDOW_BOUNDS)

# The one type that a column declared `HEADERS` may have (KLIP-57).
HEADERS_TYPE = Array(Struct((Field("KEY", STRING), Field("VALUE", BYTES))))


def header_type_problem(type_: SqlType, header_key: str | None) -> str | None:
    """Why a column of this type cannot hold the header of that key, or (None) all headers."""
    if header_key is not None:
        if type_ == BYTES:
            return None
        return f"Invalid type for HEADER('{header_key}') column: expected BYTES, got {type_}"
    if type_ == HEADERS_TYPE:
        return None
    return (
        f"Invalid type for HEADERS column: expected {HEADERS_TYPE}, got {type_}\n"
        "Columns specified with the HEADERS keyword must be typed as "
        "ARRAY<STRUCT<key STRING, value BYTES>>."
    )


class Namespace(Enum):
    KEY = "KEY"
    VALUE = "VALUE"
    HEADERS = "HEADERS"


@dataclass(frozen=True)
class Column:
    name: str
    type: SqlType
    namespace: Namespace = Namespace.VALUE
    header_key: str | None = None  # for HEADER('key') columns; None for HEADERS

    def __str__(self) -> str:
        match self.namespace:
            case Namespace.KEY:
                suffix = " KEY"
            case Namespace.HEADERS:
                suffix = " HEADERS" if self.header_key is None else f" HEADER('{self.header_key}')"
            case _:
                suffix = ""
        return f"{quote(self.name)} {self.type}{suffix}"


@dataclass(frozen=True)
class Schema:
    """The columns of a source in the order a user sees them: key columns lead a table's."""

    columns: tuple[Column, ...] = ()

    @staticmethod
    def of(columns: Iterable[Column]) -> Schema:
        return Schema(tuple(columns))

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def key(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.namespace is Namespace.KEY)

    @property
    def value(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.namespace is Namespace.VALUE)

    @property
    def headers(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.namespace is Namespace.HEADERS)

    def find(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name == name), None)

    def __str__(self) -> str:
        return ", ".join(map(str, self.columns))
