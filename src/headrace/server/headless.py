"""Headless mode: the statements of a file run, and the REST API only reads.

The file is what counts, at every start anew: statements that run already go on from where they
stopped, new ones are started, and queries that are no longer in the file are ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.catalog.catalog import Catalog
from headrace.model.entities import ErrorEntity
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.requests import Request
from headrace.plan.language.binder import resolve_type
from headrace.server.auth import NOT_ALLOWED, READ, ROLES_KEY
from headrace.server.engine_interface import StatementEngine
from headrace.server.error_responses import FORBIDDEN, error_response
from headrace.sql import ast
from headrace.sql.parser import ParsedStatement, parse, parse_statement

QUERIES_FILE = "ksql.queries.file"
SUPPORTED: dict[type[ast.Statement], str] = {
    ast.SetProperty: "SET",
    ast.UnsetProperty: "UNSET",
    ast.CreateStream: "CREATE STREAM",
    ast.CreateTable: "CREATE TABLE",
    ast.CreateType: "CREATE TYPE",
    ast.CreateStreamAsSelect: "CREATE STREAM AS SELECT",
    ast.CreateTableAsSelect: "CREATE TABLE AS SELECT",
    ast.InsertInto: "INSERT INTO",
}
_QUERIES = (ast.CreateAsSelect, ast.InsertInto)


def read_statements(path: Path) -> list[ParsedStatement]:
    """The statements of a file; each must be one that needs no client."""
    try:
        found = parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise _unreadable(path, "it is not UTF-8") from None
    for one in found:
        if type(one.statement) not in SUPPORTED:
            raise StatementError(
                "Unsupported statement. Only the following statements are supporting in "
                f"standalone mode:\n{', '.join(SUPPORTED.values())}\nStatement: {one.text}",
                one.text,
            )
    if not any(isinstance(one.statement, _QUERIES) for one in found):
        raise HeadraceError(
            "The SQL file does not contain any persistent queries. i.e. it contains no "
            "'INSERT INTO', 'CREATE TABLE x AS SELECT' or 'CREATE STREAM x AS SELECT' style "
            "statements."
        )
    return found


def _unreadable(path: Path, reason: str) -> HeadraceError:
    return HeadraceError(f"Could not read the query file: {path}. Details: {reason}")


def apply(
    engine: StatementEngine, file: Sequence[ParsedStatement], announce: Callable[[str], None]
) -> None:
    """Makes the server run what the file says. A statement that is refused changes nothing."""
    missing = [
        one.text
        for one in file
        if one.statement.effect is ast.Effect.SESSION
        or not _is_known(one.statement, engine.catalog)
    ]
    for entity in engine.execute(Request("\n".join(missing))):
        status = entity.to_json().get("commandStatus")
        if status is not None:
            announce(f"  {status['message']}")
        for warning in entity.warnings:
            announce(f"  Warning: {warning}")
    wanted = [one.statement for one in file]
    for query in list(engine.catalog.queries.values()):
        if parse_statement(query.statement) not in wanted:
            announce(f"  {query.id} is not in the file any more: terminated")
            engine.execute(Request(f"TERMINATE {query.id};"))


def _is_known(statement: ast.Statement, catalog: Catalog) -> bool:
    match statement:
        case ast.CreateType(name, type_):
            return catalog.type(name) == resolve_type(type_, catalog.type)
        case ast.CreateSource(name):
            source = catalog.source(name)
            return source is not None and _says(parse_statement(source.statement), statement)
    return any(parse_statement(q.statement) == statement for q in catalog.queries.values())


def _says(known: ast.Statement, statement: ast.CreateSource) -> bool:
    """Whether a statement equals the known one, apart from what the registry filled in."""
    return (
        type(known) is type(statement)
        and isinstance(known, ast.CreateSource)
        and set(statement.properties) <= set(known.properties)
        and all(
            _columns(statement, kinds) in (_columns(known, kinds), ())
            for kinds in (ast.KEY_KINDS, frozenset({None}))
        )
        and _columns(statement, ast.HEADER_KINDS) == _columns(known, ast.HEADER_KINDS)
    )


def _columns(
    statement: ast.CreateSource, kinds: Collection[ast.ConstraintKind | None]
) -> tuple[ast.TableElement, ...]:
    return tuple(
        e for e in statement.elements if (e.constraint.kind if e.constraint else None) in kinds
    )


class Headless:
    """Middleware that refuses every request that changes something."""

    def __init__(self, app: ASGIApp, writing: Collection[str]) -> None:
        self.app = app
        self.writing = writing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in self.writing:
            await error_response(ErrorEntity(FORBIDDEN, NOT_ALLOWED))(scope, receive, send)
        else:
            await self.app({**scope, ROLES_KEY: frozenset({READ})}, receive, send)
