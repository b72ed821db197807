"""Queries: SELECT, its relations and windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from headrace.model.errors import Position
from headrace.model.requests import QueryKind
from headrace.sql.tree.base import Effect, Names, Node, Statement, listed
from headrace.sql.tree.expressions import Expression, TimeUnit, base_text


@dataclass(frozen=True)
class Duration(Node):
    """A length of time as it was written."""

    value: int
    unit: TimeUnit

    @property
    def millis(self) -> int:
        return self.value * self.unit.value

    def sql(self, names: Names) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"{self.value} {self.unit.name}"


def clause(words: str, duration: Duration | None) -> str:
    return f"{words} {duration}" if duration is not None else ""


@dataclass(frozen=True)
class Window(Node):
    """How a grouped query divides time."""


def _window(kind: str, *parts: str) -> str:
    return f"{kind} ( {' , '.join(part for part in parts if part)} )"


def _tail(window: TumblingWindow | HoppingWindow | SessionWindow) -> tuple[str, str]:
    return clause("RETENTION", window.retention), clause("GRACE PERIOD", window.grace)


@dataclass(frozen=True)
class TumblingWindow(Window):
    size: Duration
    retention: Duration | None = None
    grace: Duration | None = None

    def sql(self, names: Names) -> str:
        return _window("TUMBLING", f"SIZE {self.size}", *_tail(self))


@dataclass(frozen=True)
class HoppingWindow(Window):
    size: Duration
    advance: Duration
    retention: Duration | None = None
    grace: Duration | None = None

    def sql(self, names: Names) -> str:
        return _window("HOPPING", f"SIZE {self.size}", f"ADVANCE BY {self.advance}", *_tail(self))


@dataclass(frozen=True)
class SessionWindow(Window):
    gap: Duration
    retention: Duration | None = None
    grace: Duration | None = None

    def sql(self, names: Names) -> str:
        return _window("SESSION", str(self.gap), *_tail(self))


@dataclass(frozen=True)
class SelectItem(Node):
    """One item between SELECT and FROM."""


@dataclass(frozen=True)
class SingleColumn(SelectItem):
    expression: Expression
    alias: str | None = None

    def sql(self, names: Names) -> str:
        alias = f" {names(self.alias)}" if self.alias is not None else ""
        return self.expression.sql(names) + alias


@dataclass(frozen=True)
class AllColumns(SelectItem):
    """`*` or `source.*` in a SELECT."""

    source: str | None = None

    def sql(self, names: Names) -> str:
        return f"{names(self.source)}.*" if self.source is not None else "*"


@dataclass(frozen=True)
class StructAll(SelectItem):
    """`struct->*`: every field of a struct as a column."""

    base: Expression

    def sql(self, names: Names) -> str:
        return f"{base_text(self.base, names)}->*"


@dataclass(frozen=True)
class AliasedRelation(Node):
    """A source and the name it has in the query; without an alias both are the same."""

    name: str
    alias: str

    def sql(self, names: Names) -> str:
        return f"{names(self.name)} {names(self.alias)}"


class JoinType(Enum):
    INNER = "INNER"
    LEFT = "LEFT OUTER"
    RIGHT = "RIGHT OUTER"
    OUTER = "FULL OUTER"


@dataclass(frozen=True)
class Within(Node):
    """How far apart in time two joined records may be."""

    before: Duration
    after: Duration
    grace: Duration | None = None

    def sql(self, names: Names) -> str:
        before, after = str(self.before), str(self.after)
        grace = f" {clause('GRACE PERIOD', self.grace)}" if self.grace is not None else ""
        return f" WITHIN {before if before == after else f'({before}, {after})'}{grace}"


@dataclass(frozen=True)
class JoinedSource(Node):
    type: JoinType
    relation: AliasedRelation
    on: Expression
    within: Within | None = None

    def sql(self, names: Names) -> str:
        within = self.within.sql(names) if self.within is not None else ""
        relation = self.relation.sql(names)
        return f"\n{self.type.value} JOIN {relation}{within} ON ({self.on.sql(names)})"


@dataclass(frozen=True)
class Join(Node):
    left: AliasedRelation
    sources: tuple[JoinedSource, ...]

    def sql(self, names: Names) -> str:
        return self.left.sql(names) + "".join(source.sql(names) for source in self.sources)


Relation = AliasedRelation | Join


class Emit(Enum):
    CHANGES = "CHANGES"
    FINAL = "FINAL"


@dataclass(frozen=True)
class Query(Statement):
    """A SELECT. Without `emit` it is a pull query; inside a statement that makes it persistent,
    EMIT CHANGES is implied. `group_by` is empty for `GROUP BY ()` and None without the clause."""

    effect: ClassVar[Effect] = Effect.READS

    select: tuple[SelectItem, ...]
    source: Relation
    window: Window | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] | None = None
    partition_by: tuple[Expression, ...] | None = None
    having: Expression | None = None
    emit: Emit | None = None
    limit: int | None = None

    @classmethod
    def read(cls, p: Any, position: Position, words: Sequence[str]) -> Query:
        query: Query = p.query_body(position)
        return query

    @property
    def kind(self) -> QueryKind:
        return QueryKind.PULL if self.emit is None else QueryKind.PUSH

    @classmethod
    def query_kind(cls, words: Sequence[str]) -> QueryKind:
        """A push query ends with EMIT CHANGES or EMIT FINAL; only LIMIT may follow it."""
        last = words[-4:]
        if len(last) == 4 and last[-2] == "LIMIT":
            last = last[:-2]
        emits = list(last[-2:-1]) == ["EMIT"] and last[-1] in ("CHANGES", "FINAL")
        return QueryKind.PUSH if emits else QueryKind.PULL

    def sql(self, names: Names) -> str:
        items = [item.sql(names) for item in self.select]
        lines = [f"SELECT {items[0]}" if len(items) == 1 else "SELECT\n  " + ",\n  ".join(items)]
        lines.append(f"FROM {self.source.sql(names)}")
        if self.window is not None:
            lines.append(f"WINDOW {self.window.sql(names)} ")
        if self.where is not None:
            lines.append(f"WHERE {self.where.sql(names)}")
        for words, group in (("GROUP BY", self.group_by), ("PARTITION BY", self.partition_by)):
            if group is not None:
                lines.append(f"{words} {listed(group, names)}")
        if self.having is not None:
            lines.append(f"HAVING {self.having.sql(names)}")
        if self.emit is not None:
            lines.append(f"EMIT {self.emit.value}")
        if self.limit is not None:
            lines.append(f"LIMIT {self.limit}")
        return "\n".join(lines)
