"""INSERT VALUES and ASSERT VALUES of a SQL file, on running queries.

Rows that are inserted into one topic after another go in together, when something else is asked.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.engine.statements.changes import Change
from headrace.engine.statements.inserts import RowEncoder, inserted_row
from headrace.kafka.records import Headers, NewRecord
from headrace.model.errors import HeadraceError
from headrace.model.schema import ROWTIME
from headrace.sql import ast
from headrace.testing.comparing import same_time
from headrace.testing.flows import Flow
from headrace.testing.outcomes import CaseFailure
from headrace.testing.rehearsal import Rehearsal


class ScriptRecords:
    """Each ASSERT is about the next record of its topic. With `every_record`, the last one is
    about the last record."""

    def __init__(self, flow: Flow, rehearsal: Rehearsal, *, every_record: bool = False) -> None:
        self._flow = flow
        self._rehearsal = rehearsal
        self._every_record = every_record
        self._seen: dict[str, int] = {}
        self._waiting: list[NewRecord] = []
        self._waiting_for = ""
        rehearsal.topics.has_records = self._has_records

    def apply(self, change: Change) -> None:
        self._write()
        self._flow.apply(change)

    def insert(self, statement: ast.InsertValues, headers: Headers) -> None:
        source, row = self._rehearsal.inserted(statement, self._flow.world.spark)
        if source.topic != self._waiting_for:
            self._write()
        record = RowEncoder(self._flow.world, source).record(row)
        self._waiting.append(replace(record, headers=headers))
        self._waiting_for = source.topic

    def expect(self, statement: ast.InsertValues, tombstone: bool) -> None:
        self._write()
        source = self._rehearsal.catalog.source(statement.target)
        if source is None:
            raise HeadraceError(f"{statement.target} does not exist.")
        wanted = inserted_row(statement, source, self._rehearsal.binder(), self._flow.world.spark)
        records = self._flow.records(source.topic)
        at = self._seen.get(source.topic, 0)
        if at >= len(records):
            raise CaseFailure(
                "Expected another record, but all records have already been read.",
                _shown(wanted),
                "nothing",
            )
        self._seen[source.topic] = at + 1
        found = self._flow.codecs.row(records[at], source)
        is_tombstone = records[at].value is None
        shown = {name: found[name] for name in wanted}
        if is_tombstone != tombstone or not _is_expected(wanted, shown):
            raise CaseFailure(
                "Expected record does not match actual.",
                _shown(wanted, tombstone),
                _shown(shown, is_tombstone),
            )

    def end(self) -> None:
        self._write()
        for topic, seen in self._seen.items() if self._every_record else ():
            records = self._flow.records(topic)
            if len(records) > seen:
                further = [f"{r.key!r}: {r.value!r} at {r.timestamp}" for r in records[seen:]]
                raise CaseFailure(f"{topic} has further records.", "nothing", "\n".join(further))

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._flow.write(waiting, self._waiting_for)

    def _has_records(self, topic: str) -> bool:
        self._write()
        return bool(self._flow.records(topic))


def _is_expected(wanted: dict[str, object], found: dict[str, object]) -> bool:
    return all(
        same_time(value, found[name]) if name == ROWTIME else value == found[name]
        for name, value in wanted.items()
    )


def _shown(row: dict[str, object], tombstone: bool = False) -> str:
    text = ", ".join(f"{name}: {value!r}" for name, value in row.items())
    return f"{text} (a tombstone)" if tombstone else text
