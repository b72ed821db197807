"""A session with a server: runs statements, remembers settings, shows results."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from headrace.cli.output import Output
from headrace.cli.render import render
from headrace.cli.statement_splitter import first_word, statements
from headrace.cli.text_tables import StreamTable
from headrace.client import Client, ClientError, Row
from headrace.client.sync import RowStream
from headrace.client.wire import row_text
from headrace.model.errors import HeadraceError
from headrace.sql import ast
from headrace.sql.parser import parse_statement
from headrace.sql.variables import substitute, substitute_text


class Format(StrEnum):
    TABULAR = "TABULAR"
    JSON = "JSON"


class Session:
    """A session's client, settings, variables and output.

    SET and DEFINE are kept here and go along with every request, because a server keeps nothing
    between requests. Statements are sent one at a time.
    """

    def __init__(self, client: Client, output: Output) -> None:
        self.client = client
        self.output = output
        self.format = Format.TABULAR
        self.wrap = True
        self.column_width: int | None = None
        self.pipelining = False
        self.row_limit: int | None = None
        self.query_seconds: float | None = None
        self.history: list[str] = []
        # Takes what is a command of the shell and no statement, and says whether it did.
        self.takes: Callable[[str], bool] = lambda text: False
        self._last_command: int | None = None
        self._handlers: dict[str, Callable[[str], None]] = {
            "SELECT": self._query,
            "PRINT": self._print,
            "SET": self._set,
            "UNSET": self._unset,
            "DEFINE": self._define,
            "UNDEFINE": self._undefine,
        }

    def run(self, text: str) -> None:
        """Runs every statement of a text; the first that fails or is interrupted ends it."""
        try:
            for statement in statements(text):
                if not self.takes(statement):
                    self._handlers.get(first_word(statement), self._execute)(statement)
        except KeyboardInterrupt:
            self._reconnect()
            raise

    def _reconnect(self) -> None:
        """A new connection for one left in the middle of something; the server ends its query."""
        interrupted = self.client
        self.client = interrupted.connect(interrupted.url)
        interrupted.close()

    def run_file(self, path: str) -> None:
        try:
            text = Path(path).expanduser().read_text(encoding="utf-8")
        except OSError as error:
            raise HeadraceError(f"Failed to read file: {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise HeadraceError(f"Failed to read file: {path}: it is not UTF-8") from None
        self.run(text)

    # ----------------------------------------------------------------------- the server

    def _execute(self, text: str) -> None:
        after = None if self.pipelining else self._last_command
        for entity in self.client.execute(text, after=after):
            self._last_command = entity.get("commandSequenceNumber", self._last_command)
            self._show(entity)

    def _show(self, entity: dict[str, object]) -> None:
        if self.format is Format.JSON:
            self.output.line(json.dumps(entity, indent=2, ensure_ascii=False))
            return
        self.output.line()
        for line in render(entity, self.output.width):
            self.output.line(line)

    def _query(self, text: str) -> None:
        try:
            with self.client.stream(text) as rows, _Deadline(self, rows):
                self._show_rows(rows)
                if rows.final_message:
                    self._final(rows.final_message)
        except KeyboardInterrupt:
            self.output.line()  # the terminal has shown ^C already
            self.output.line("Query terminated")
            raise

    def _show_rows(self, rows: RowStream) -> None:
        show = self._json_rows if self.format is Format.JSON else self._table_rows
        show(rows, self._limited(rows))

    def _limited(self, rows: RowStream) -> Iterable[Row]:
        for count, row in enumerate(rows, 1):
            yield row
            if count == self.row_limit:
                return

    def _table_rows(self, stream: RowStream, rows: Iterable[Row]) -> None:
        names = [column.name for column in stream.columns]
        table = StreamTable(names, self.output.width, self.column_width, self.wrap)
        for line in table.head():
            self.output.line(line)
        for row in rows:
            for line in table.row(cells(row)):
                self.output.line(line)

    def _json_rows(self, stream: RowStream, rows: Iterable[Row]) -> None:
        schema = ", ".join(f"`{c.name}` {c.type}" for c in stream.columns)
        header = {"queryId": stream.query_id, "schema": schema}
        self.output.line(json.dumps({"header": header}, ensure_ascii=False))
        for row in rows:
            mark = ',"tombstone":true' if row.tombstone else ""
            self.output.line(f'{{"row":{{"columns":{row_text(row.values)}{mark}}}}}')

    def _final(self, message: str) -> None:
        if self.format is Format.JSON:
            self.output.line(json.dumps({"finalMessage": message}))
        else:
            self.output.line(message)

    def _print(self, text: str) -> None:
        try:
            with self.client.print_topic(text) as lines:
                for line in lines:
                    self.output.line(line)
        except KeyboardInterrupt:
            self.output.line()
            self.output.line("Topic printing ceased")
            raise
        self.output.line("Topic printing ceased")

    # ---------------------------------------------------------------------- the session

    def _parsed(self, text: str) -> ast.Statement:
        return parse_statement(substitute(text, self.client.variables))

    def _set(self, text: str) -> None:
        statement = self._parsed(text)
        assert isinstance(statement, ast.SetProperty)
        self.client.check_property(statement.name)
        before = self.client.properties.get(statement.name)
        self.client.properties[statement.name] = statement.value
        came = "" if before is None else f" from '{before}'"
        hint = " Use the UNSET command to revert your change." if before is None else ""
        self.output.line(
            f"Successfully changed local property '{statement.name}'{came}"
            f" to '{statement.value}'.{hint}"
        )

    def _unset(self, text: str) -> None:
        statement = self._parsed(text)
        assert isinstance(statement, ast.UnsetProperty)
        if statement.name not in self.client.properties:
            raise HeadraceError(
                f"Cannot unset local property '{statement.name}' which was never set in the"
                " first place"
            )
        value = self.client.properties.pop(statement.name)
        self.output.line(
            f"Successfully unset local property '{statement.name}' (value was '{value}')."
        )

    def _define(self, text: str) -> None:
        statement = parse_statement(text)
        assert isinstance(statement, ast.DefineVariable)
        value = substitute_text(statement.value, self.client.variables)
        self.client.variables[statement.name] = value

    def _undefine(self, text: str) -> None:
        statement = parse_statement(text)
        assert isinstance(statement, ast.UndefineVariable)
        if self.client.variables.pop(statement.name, None) is None:
            self.output.line(
                f"Cannot undefine variable '{statement.name}' which was never defined."
            )


class _Deadline:
    """Ends a query on the server when the session's time for it is over."""

    def __init__(self, session: Session, rows: RowStream) -> None:
        self._client = session.client
        self._query_id = rows.query_id
        seconds = session.query_seconds
        self._timer = threading.Timer(seconds, self._end) if seconds is not None else None

    def _end(self) -> None:
        with suppress(ClientError):  # it ended by itself meanwhile
            self._client.close_query(self._query_id)

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()


def cells(row: Row) -> Sequence[str]:
    """A row's values as a person reads them; a tombstone's missing ones are marked."""
    missing = "<TOMBSTONE>" if row.tombstone else "null"
    return [missing if value is None else _cell(value) for value in row.values]


def _cell(value: object) -> str:
    return value if isinstance(value, str) else row_text(value)
