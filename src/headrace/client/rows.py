"""Rows as a client sees them, and the schema texts that say what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class ResultColumn:
    """A column of a result; `type` is SQL text such as `ARRAY<STRING>`."""

    name: str
    type: str
    is_key: bool = False

    def value(self, json_value: Any) -> Any:
        """A JSON value as this column's: a fraction is a float unless the type has decimals."""
        return json_value if "DECIMAL" in self.type else _floats(json_value)


def _floats(value: Any) -> Any:
    match value:
        case Decimal():
            return float(value)
        case list():
            return [_floats(v) for v in value]
        case dict():
            return {k: _floats(v) for k, v in value.items()}
    return value


@dataclass(frozen=True)
class Row:
    """A row: `row["NAME"]`, `row[0]`, or its values in order.

    A tombstone says that the row of this key was deleted; it has no other values.
    """

    columns: tuple[ResultColumn, ...]
    values: tuple[Any, ...]
    tombstone: bool = False

    def __getitem__(self, column: str | int) -> Any:
        if isinstance(column, int):
            return self.values[column]
        for known, value in zip(self.columns, self.values, strict=True):
            if known.name == column:
                return value
        raise KeyError(column)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def as_dict(self) -> dict[str, Any]:
        return {c.name: v for c, v in zip(self.columns, self.values, strict=True)}


@dataclass(frozen=True)
class Ack:
    """The result for row number `sequence` of an insert stream; without `error` it was written."""

    sequence: int
    error: Exception | None = None


def parse_schema(text: str) -> tuple[ResultColumn, ...]:
    """The columns of a schema text: `` `ID` STRING KEY, `A` ARRAY<INTEGER> ``."""
    return tuple(map(_column, _split(text)))


def _split(text: str) -> Iterator[str]:
    """The parts between the commas that are not within a name or a type."""
    depth, quoted, start = 0, False, 0
    for position, character in enumerate(text):
        if character == "`":
            quoted = not quoted
        elif not quoted:
            depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
            if character == "," and depth == 0:
                yield text[start:position].strip()
                start = position + 1
    if text[start:].strip():
        yield text[start:].strip()


def _column(text: str) -> ResultColumn:
    end = 1
    while text[end] != "`" or text[end : end + 2] == "``":
        end += 2 if text[end : end + 2] == "``" else 1
    name, rest = text[1:end].replace("``", "`"), text[end + 1 :].strip()
    return ResultColumn(name, rest.removesuffix(" KEY"), rest.endswith(" KEY"))
