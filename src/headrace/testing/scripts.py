"""Runs SQL test files, statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from headrace.engine.statements.changes import Change
from headrace.formats import FORMATS
from headrace.kafka.records import Headers
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.settings import Settings
from headrace.model.sources import Source, SourceKind
from headrace.model.types import SqlType
from headrace.plan.sources.ddl import declared_schema
from headrace.plan.sources.properties import DECLARED, WithClause, with_clause
from headrace.plan.sources.wrapping import wrap_property, wrap_setting
from headrace.sql import ast
from headrace.sql.parser import parse_column, parse_statement, split
from headrace.sql.variables import substitute
from headrace.testing.outcomes import CaseFailure, error_text
from headrace.testing.rehearsal import PretendedTopics, Rehearsal, placed
from headrace.testing.sql_files import ScriptCase


class Records(Protocol):
    """Where the records of a script are written and expected; planning alone has none."""

    def apply(self, change: Change) -> None: ...

    def insert(self, statement: ast.InsertValues, headers: Headers) -> None: ...

    def expect(self, statement: ast.InsertValues, tombstone: bool) -> None: ...

    def end(self) -> None:
        """There are no further statements."""


class NoRecords:
    """Statements are only planned."""

    def apply(self, change: Change) -> None: ...

    def insert(self, statement: ast.InsertValues, headers: Headers) -> None: ...

    def expect(self, statement: ast.InsertValues, tombstone: bool) -> None: ...

    def end(self) -> None: ...


def plan_script(case: ScriptCase, settings: Settings) -> None:
    """Statements only; what asks for records is passed over."""
    run_script(case, settings, lambda rehearsal: NoRecords())


def run_script(
    case: ScriptCase, settings: Settings, records: Callable[[Rehearsal], Records]
) -> None:
    """Raises CaseFailure unless the case ends as it says it does."""
    rehearsal = Rehearsal(PretendedTopics(), settings)
    flow = records(rehearsal)
    script = _Script(rehearsal, flow, case.folder)
    line = 0
    try:
        for step in case.steps:
            line = step.position.line
            script.run(placed(step), step.headers)
        flow.end()
    except (HeadraceError, CaseFailure) as e:
        _check_failure(case, line, e)
        return
    planned_only = isinstance(flow, NoRecords) and case.runs_queries
    if case.error is not None and not planned_only:
        expected = case.error.message or case.error.kind
        raise CaseFailure("the test should fail", expected, "no error")


def _check_failure(case: ScriptCase, line: int, failure: HeadraceError | CaseFailure) -> None:
    told = failure.reason if isinstance(failure, CaseFailure) else error_text(failure)
    if case.error is None:
        if isinstance(failure, CaseFailure):
            reason = f"line {line}: {failure.reason}"
            raise CaseFailure(reason, failure.expected, failure.actual)
        raise CaseFailure(f"line {line}: a statement failed", "no error", told)
    if case.error.message not in told:
        raise CaseFailure(f"line {line}: the error has another text", case.error.message, told)


class _Script:
    def __init__(self, rehearsal: Rehearsal, records: Records, folder: Path) -> None:
        self._rehearsal = rehearsal
        self._records = records
        self._folder = folder

    def run(self, text: str, headers: Headers = ()) -> None:
        variables = self._rehearsal.session.variables
        statement = parse_statement(substitute(text, variables, tests=True), tests=True)
        match statement:
            case ast.AssertStream(expected) | ast.AssertTable(expected):
                self._assert_source(expected)
            case ast.RunScript(path):
                self._run_file(path)
            case ast.InsertValues():
                self._insert(statement, text, headers)
            case ast.AssertValues(row):
                self._records.expect(row, tombstone=False)
            case ast.AssertTombstone(row):
                self._records.expect(row, tombstone=True)
            case _:
                for change in self._rehearsal.run(text):
                    self._records.apply(change)

    def _insert(self, statement: ast.InsertValues, text: str, headers: Headers) -> None:
        try:
            self._records.insert(statement, headers)
        except StatementError as e:
            e.statement = e.statement or text
            raise

    def _run_file(self, path: str) -> None:
        file = self._folder / path.lstrip("/")
        try:
            text = file.read_text(encoding="utf-8")
        except OSError:
            raise HeadraceError(f"Failed to read the script file: {file}") from None
        for statement in split(text):
            self.run(statement.text)

    def _assert_source(self, expected: ast.CreateSource) -> None:
        source = self._rehearsal.catalog.source(expected.name)
        if source is None:
            raise HeadraceError(f"{expected.name} does not exist.")
        settings = self._rehearsal.texts()
        clause = with_clause(expected.properties, DECLARED)
        for what, wanted, found in _facts(expected, clause, source, settings, self._type):
            if wanted != found:
                raise HeadraceError(
                    f"Expected {what} does not match actual for source {source.name}.\n"
                    f"\tExpected: {wanted}\n\tActual: {found}"
                )

    def _type(self, name: str) -> SqlType | None:
        return self._rehearsal.catalog.type(name)


def _facts(
    expected: ast.CreateSource,
    clause: WithClause,
    source: Source,
    settings: Mapping[str, str],
    types: Callable[[str], SqlType | None],
) -> list[tuple[str, object, object]]:
    table = isinstance(expected, ast.CreateTable)
    kind = SourceKind.TABLE if table else SourceKind.STREAM
    schema = declared_schema(expected, kind, types)
    default_key_format = settings["ksql.persistence.default.format.key"]
    key_format = clause.key_format or default_key_format
    asked = wrap_property(clause, "value")
    wrap = wrap_setting(settings, "value") if asked is None else asked
    timestamp = source.timestamp
    return [
        ("schema", str(schema), str(source.schema)),
        ("type", f"K{kind.value}", f"K{source.kind.value}"),
        ("kafka topic", clause.text("KAFKA_TOPIC"), source.topic),
        ("key format", key_format, _key_format(source, default_key_format)),
        ("value format", clause.value_format, source.value.format),
        (
            "value serde features",
            _features(source, wrap),
            _features(source, source.value.wrap),
        ),
        ("timestamp column", _asked_column(clause), timestamp and timestamp.name),
        ("timestamp format", clause.text("TIMESTAMP_FORMAT"), timestamp and timestamp.format),
    ]


def _key_format(source: Source, default: str) -> str:
    """A source without a key has no key format to speak of."""
    return default if source.key.format == "NONE" else source.key.format


def _asked_column(clause: WithClause) -> str | None:
    given = clause.text("TIMESTAMP")
    return None if given is None else parse_column(given)


def _features(source: Source, wrap: bool | None) -> str:
    """ksqlDB's word for a bare value; it has none for what lies in an envelope."""
    columns = len(source.schema.value)
    wrapped = FORMATS[source.value.format].wrapped(columns, wrap)
    return "[]" if wrapped else "[UNWRAP_SINGLES]"
