"""Rows of a schema: random values, with the current time and sessions where the schema says so."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from headrace.datagen.annotations import PROPERTY
from headrace.datagen.sessions import Sessions
from headrace.datagen.values import Make, ValueMaker
from headrace.formats.avro.columns_of_schema import shape
from headrace.formats.connect import infer_columns
from headrace.functions.scalar.time.rows import format_timestamp
from headrace.model.errors import HeadraceError
from headrace.model.types import BIGINT, Field
from headrace.schemas import avro

# What a field's type may say beside its annotations.
_AS_TIME, _SESSION, _NUMBER = "format_as_time", "session", "session-sibling-int-hash"
_MILLIS = "unix_long"

Row = Mapping[str, Any]


def read_schema(path: Path) -> avro.Record:
    """The record that an Avro schema file describes. Lines that begin with // are comments."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise HeadraceError(f"The schema {path} cannot be read: {problem}") from None
    text = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
    try:
        found, _ = avro.parse(text)
    except avro.AvroSchemaError as problem:
        raise HeadraceError(f"The schema {path} is not an Avro schema: {problem}") from None
    if not isinstance(found, avro.Record):
        raise HeadraceError(f"The schema {path} is not one of a record.")
    return found


def columns_of(record: avro.Record) -> list[Field]:
    """The columns that records of the schema have, named as its fields are."""
    try:
        columns = infer_columns(shape(record), None, keep_case=True)
    except ValueError as problem:
        raise HeadraceError(f"The schema {record.fullname} has no columns: {problem}") from None
    missing = [f.name for f in record.fields if f.name not in {c.name for c in columns}]
    if missing:
        raise HeadraceError(
            f"The field '{missing[0]}' of {record.fullname} has a type that no column can have."
        )
    return columns


def check_fields(columns: Sequence[Field], key: str, timestamp: str | None) -> None:
    """Refuses a key that is no field, and times that are no milliseconds."""
    types = {c.name: c.type for c in columns}
    for purpose, name in (("key", key), ("timestamp", timestamp)):
        if name is not None and name not in types:
            known = ", ".join(types)
            raise HeadraceError(f"The {purpose} field '{name}' does not exist. Fields: {known}.")
    if timestamp is not None and types[timestamp] != BIGINT:
        raise HeadraceError(
            f"The timestamp field '{timestamp}' must be a long, not {types[timestamp]}."
        )


class RowGenerator:
    """Makes rows. The same seed makes the same ones, but for what depends on the time."""

    def __init__(
        self,
        record: avro.Record,
        seed: int | str | None = None,
        directory: Path = Path(),
        clock: Callable[[], float] = time.time,
    ) -> None:
        random = Random(seed)
        self._clock = clock
        self._sessions = Sessions(random, clock)
        self._make = ValueMaker(random, directory).of(record, record.name)
        self._special = {
            f.name: made for f in record.fields if (made := self._maker(f)) is not None
        }
        self._visitor: str | None = None

    def row(self) -> Row:
        row: dict[str, Any] = self._make()
        self._visitor = None
        for name, make in self._special.items():
            row[name] = make(row[name])
        return row

    def _maker(self, field: avro.AvroField) -> Callable[[Any], Any] | None:
        pattern = field.type.text(_AS_TIME)
        if pattern:
            return self._time(field, pattern)
        if field.type.text(_SESSION) and field.type.kind == "string":
            return self._session
        if field.type.text(_NUMBER) and field.type.kind == "int":
            return self._number(field)
        return None

    def _time(self, field: avro.AvroField, pattern: str) -> Callable[[Any], Any]:
        now: Make = lambda: int(self._clock() * 1000)  # noqa: E731
        if pattern == _MILLIS:
            return lambda _: now()
        try:
            format_timestamp(0, pattern, "UTC")
        except ValueError as problem:
            raise HeadraceError(f"{field.name}: '{_AS_TIME}' cannot be read: {problem}") from None
        return lambda _: format_timestamp(now(), pattern, "UTC")

    def _session(self, value: str) -> str:
        self._visitor = self._sessions.visitor(value)
        return self._visitor

    def _number(self, field: avro.AvroField) -> Callable[[Any], Any]:
        given: Any = dict(field.type.props).get(PROPERTY) or {}
        most = (given.get("range") or {}).get("max") or 2**31
        return lambda value: (
            value if self._visitor is None else self._sessions.number(self._visitor, int(most))
        )


def shown(row: Row) -> str:
    """A row as ksql-datagen prints it."""
    texts = (repr(v) if isinstance(v, str) else json.dumps(v, default=str) for v in row.values())
    return f"[ {' | '.join(texts)} ]"
