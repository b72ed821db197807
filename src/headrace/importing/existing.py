"""What the server has already that statements are imported to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.client import Client
from headrace.importing.translation import comparable
from headrace.importing.type_statements import type_statement
from headrace.model.errors import ParseError
from headrace.sql import ast
from headrace.sql.parser import parse_statement

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Existing:
    """The statements of its sources and inserts, its types and settings. A statement that cannot
    be read is None."""

    sources: Mapping[str, ast.Statement | None] = field(default_factory=dict)
    inserts: Sequence[ast.Statement | None] = ()
    types: Mapping[str, Json] = field(default_factory=dict)
    settings: Mapping[str, str | None] = field(default_factory=dict)

    def statements(self) -> Iterator[ast.Statement]:
        """Those that make its types and sources, as far as they can be read."""
        yield from (parse_statement(type_statement(*told)) for told in self.types.items())
        yield from (s for s in self.sources.values() if s is not None)


def existing_at(client: Client) -> Existing:
    def ask(statement: str, answer: str) -> Any:
        return client.execute(statement)[0][answer]

    sources = [
        *ask("SHOW STREAMS EXTENDED;", "sourceDescriptions"),
        *ask("SHOW TABLES EXTENDED;", "sourceDescriptions"),
    ]
    queries = [
        _statement(q["statementText"]) for q in ask("SHOW QUERIES EXTENDED;", "queryDescriptions")
    ]
    return Existing(
        {source["name"]: _statement(source["statement"]) for source in sources},
        [query for query in queries if isinstance(query, ast.InsertInto)],
        ask("SHOW TYPES;", "types"),
        {p["name"]: p["value"] for p in ask("SHOW PROPERTIES;", "properties")},
    )


def _statement(text: str) -> ast.Statement | None:
    try:
        return comparable(parse_statement(text))
    except ParseError:
        return None
