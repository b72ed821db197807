"""INSERT and ASSERT VALUES of a SQL file, on running queries."""

from __future__ import annotations

from headrace.engine.inserts import RowEncoder, inserted_row
from headrace.model.errors import HeadraceError
from headrace.sql import ast
from headrace.testing.flows import Flow
from headrace.testing.outcomes import CaseFailure
from headrace.testing.rehearsal import Rehearsal


class ScriptRecords:
    """Each ASSERT is about the next record of its topic."""

    def __init__(self, flow: Flow, rehearsal: Rehearsal) -> None:
        self._flow = flow
        self._rehearsal = rehearsal
        self._seen: dict[str, int] = {}
        self.apply = flow.apply
        rehearsal.outside.has_records = lambda topic: bool(flow.records(topic))

    def insert(self, statement: ast.InsertValues) -> None:
        source, row = self._rehearsal.inserted(statement, self._flow.world.spark)
        self._flow.write([RowEncoder(self._flow.world, source).record(row)], source.topic)

    def expect(self, statement: ast.InsertValues, tombstone: bool) -> None:
        catalog = self._rehearsal.catalog
        source = catalog.source(statement.target)
        if source is None:
            raise HeadraceError(f"{statement.target} does not exist.")
        wanted = inserted_row(statement, source, catalog, self._flow.world.spark)
        records = self._flow.records(source.topic)
        at = self._seen.get(source.topic, 0)
        if at >= len(records):
            raise CaseFailure(
                "Expected another record, but all records have already been read.",
                _shown(wanted),
                "nothing",
            )
        self._seen[source.topic] = at + 1
        found = self._flow.wires.row(records[at], source)
        is_tombstone = records[at].value is None
        shown = {name: found[name] for name in wanted}
        if is_tombstone != tombstone or shown != wanted:
            raise CaseFailure(
                "Expected record does not match actual.",
                _shown(wanted, tombstone),
                _shown(shown, is_tombstone),
            )


def _shown(row: dict[str, object], tombstone: bool = False) -> str:
    text = ", ".join(f"{name}: {value!r}" for name, value in row.items())
    return f"{text} (a tombstone)" if tombstone else text
