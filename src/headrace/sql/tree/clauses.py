"""Clauses that several statements have: columns with their types, and WITH."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headrace.model.types import SqlType
from headrace.sql.tree.base import Names, Node, needs_quotes, string, type_text
from headrace.sql.tree.expressions import Literal


class ConstraintKind(Enum):
    KEY = "KEY"
    PRIMARY_KEY = "PRIMARY KEY"
    HEADERS = "HEADERS"
    HEADER = "HEADER"


KEY_KINDS = frozenset({ConstraintKind.KEY, ConstraintKind.PRIMARY_KEY})
HEADER_KINDS = frozenset({ConstraintKind.HEADERS, ConstraintKind.HEADER})


@dataclass(frozen=True)
class Constraint(Node):
    """Where a column is read from, other than the value; `header_key` only for `HEADER('key')`."""

    kind: ConstraintKind
    header_key: str | None = None

    def sql(self, names: Names) -> str:
        key = f"({string(self.header_key)})" if self.header_key is not None else ""
        return self.kind.value + key


@dataclass(frozen=True)
class TableElement(Node):
    name: str
    type: SqlType
    constraint: Constraint | None = None

    def sql(self, names: Names) -> str:
        constraint = f" {self.constraint.sql(names)}" if self.constraint is not None else ""
        return f"{names(self.name)} {type_text(self.type, names)}{constraint}"


# The WITH clause: in written order, no name twice.
Properties = tuple[tuple[str, Literal], ...]


def with_clause(properties: Properties, names: Names) -> str:
    if not properties:
        return ""
    entries = (f"{_property_name(name)}={value.sql(names)}" for name, value in properties)
    return f" WITH ({', '.join(entries)})"


def _property_name(name: str) -> str:
    return string(name) if needs_quotes(name) else name
