"""Parses SELECT and its clauses."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from headrace.model.errors import Position
from headrace.sql.expression_parser import TIME_UNITS, ExpressionParser
from headrace.sql.printer import display_expression
from headrace.sql.tokens import Source
from headrace.sql.tree import (
    AliasedRelation,
    AllColumns,
    Duration,
    Emit,
    Expression,
    HoppingWindow,
    Join,
    JoinedSource,
    JoinType,
    Query,
    Relation,
    SelectItem,
    SessionWindow,
    SingleColumn,
    StructAll,
    TumblingWindow,
    Window,
    Within,
)

_JOINS: dict[str, JoinType] = {
    "LEFT": JoinType.LEFT,
    "RIGHT": JoinType.RIGHT,
    "FULL": JoinType.OUTER,
}
_JOIN_STARTS = frozenset(_JOINS) | {"JOIN", "INNER"}
# Words that may name a source, unless these follow them: then a clause begins.
_CLAUSES: dict[str, tuple[str, ...]] = {"EMIT": ("CHANGES", "FINAL"), "PARTITION": ("BY",)}


class QueryParser(ExpressionParser):
    def __init__(self, source: Source, *, tests: bool = False, start: int = 0) -> None:
        super().__init__(source, tests=tests, start=start)
        self.sources: set[str] = set()  # names and aliases in FROM

    def query(self, *, persistent: bool = False) -> Query:
        return self.query_body(self.position_of(self.expect("SELECT")), persistent=persistent)

    def query_body(self, position: Position, *, persistent: bool = False) -> Query:
        """What follows SELECT."""
        select = self.listed(self._select_item)
        self.expect("FROM")
        source = self._relation()
        window = self._window() if self.accept("WINDOW") else None
        where = self.expression() if self.accept("WHERE") else None
        group_by = self._grouping("GROUP BY") if self._accept_by("GROUP") else None
        partition_by = self._grouping("PARTITION BY") if self._accept_by("PARTITION") else None
        having = self.expression() if self.accept("HAVING") else None
        emit = self._emit()
        limit = self.limit()
        if group_by is not None and partition_by is not None:
            self.reject("Queries only support one of PARTITION BY and GROUP BY")
        return Query(
            select=select,
            source=source,
            window=window,
            where=where,
            group_by=group_by,
            partition_by=partition_by,
            having=having,
            emit=emit or (Emit.CHANGES if persistent else None),
            limit=limit,
            position=position,
        )

    def limit(self) -> int | None:
        return self.integer("LIMIT") if self.accept("LIMIT") else None

    def duration(self) -> Duration:
        position = self.position
        value = self.long()
        unit = TIME_UNITS[self.expect_any(TIME_UNITS).kind]
        return Duration(value, unit, position=position)

    def _emit(self) -> Emit | None:
        if not self.accept("EMIT"):
            return None
        if self.accept("CHANGES"):
            return Emit.CHANGES
        self.expect("FINAL")
        return Emit.FINAL

    def _accept_by(self, word: str) -> bool:
        if not self.accept(word):
            return False
        self.expect("BY")
        return True

    # ----------------------------------------------------------------------------------- select

    def _select_item(self) -> SelectItem:
        position = self.position
        if self.accept("*"):
            return AllColumns(position=position)
        if self.sees_name() and self.peek(1) == "." and self.peek(2) == "*":
            source = self.identifier()
            self.qualifiers.append((source, position))
            self.expect(".", "*")
            return AllColumns(source, position=position)
        self._item_start = self.index
        expression = self.expression()
        if self.accept("->", "*"):
            return StructAll(expression, position=position)
        alias = self.identifier() if self.accept("AS") or self.sees_name() else None
        return SingleColumn(expression, alias, position=position)

    # ------------------------------------------------------------------------------------- from

    def _relation(self) -> Relation:
        position = self.position
        left = self._aliased()
        joined = []
        while self.kind in _JOIN_STARTS:
            joined.append(self._joined())
        return Join(left, tuple(joined), position=position) if joined else left

    def _aliased(self) -> AliasedRelation:
        position = self.position
        name = self.source_name()
        alias = name
        if self.accept("AS") or (self.sees_name() and not self._sees_clause()):
            alias = self.source_name()
        self.sources.update((name, alias))
        return AliasedRelation(name, alias, position=position)

    def _sees_clause(self) -> bool:
        return self.peek(1) in _CLAUSES.get(self.kind, ())

    def _joined(self) -> JoinedSource:
        position = self.position
        join_type = JoinType.INNER
        if self.kind in _JOINS:
            join_type = _JOINS[self.advance().kind]
            self.accept("OUTER")
        else:
            self.accept("INNER")
        self.expect("JOIN")
        relation = self._aliased()
        within = self._within() if self.kind == "WITHIN" else None
        self.expect("ON")
        condition = self.expression()
        if within is None and self.kind == "WITHIN":  # as KLIP-3 writes it
            within = self._within()
        return JoinedSource(join_type, relation, condition, within, position=position)

    def _within(self) -> Within:
        position = self.position_of(self.expect("WITHIN"))
        if self.accept("("):
            before = self.duration()
            self.expect(",")
            after = self.duration()
            self.expect(")")
        else:
            before = after = self.duration()
        return Within(before, after, self._grace(), position=position)

    def _grace(self) -> Duration | None:
        if not self.accept("GRACE"):
            return None
        self.expect("PERIOD")
        return self.duration()

    # ------------------------------------------------------------------------ windows and groups

    def _window(self) -> Window:
        if self.kind == "identifier":  # a window may be given a name, which nothing uses
            self.advance()
        window = self._WINDOWS.get(self.kind)
        if window is None:
            self.fail()
        position = self.position_of(self.advance())
        self.expect("(")
        result = window(self, position)
        self.expect(")")
        return result

    def _tumbling(self, position: Position) -> Window:
        self.expect("SIZE")
        return TumblingWindow(self.duration(), *self._tail(), position=position)

    def _hopping(self, position: Position) -> Window:
        self.expect("SIZE")
        size = self.duration()
        self.expect(",", "ADVANCE", "BY")
        return HoppingWindow(size, self.duration(), *self._tail(), position=position)

    def _session(self, position: Position) -> Window:
        return SessionWindow(self.duration(), *self._tail(), position=position)

    _WINDOWS: ClassVar[dict[str, Callable[[QueryParser, Position], Window]]] = {
        "TUMBLING": _tumbling,
        "HOPPING": _hopping,
        "SESSION": _session,
    }

    def _tail(self) -> tuple[Duration | None, Duration | None]:
        """Retention and grace period, in this order."""
        retention = self.duration() if self.accept(",", "RETENTION") else None
        if not self.accept(","):
            return retention, None
        self.expect("GRACE", "PERIOD")
        return retention, self.duration()

    def _grouping(self, clause: str) -> tuple[Expression, ...]:
        items: tuple[Expression, ...]
        if self._sees_bracketed_list():
            self.expect("(")
            items = () if self.kind == ")" else self.listed(self.value)
            self.expect(")")
        else:
            items = self.listed(self.value)
        if not items:
            self.reject(f"{clause} requires at least one expression")
        seen = set()
        for item in items:
            if item in seen:
                self.reject(f"Duplicate {clause} expression: {display_expression(item)}")
            seen.add(item)
        return items

    def _sees_bracketed_list(self) -> bool:
        """Whether a bracket here is around the whole list, not around its first expression."""
        if self.kind != "(":
            return False
        depth, ahead = 0, 0
        while True:
            kind = self.peek(ahead)
            if kind in ("(", "["):
                depth += 1
            elif kind in (")", "]"):
                depth -= 1
            elif kind == "," and depth == 1:
                return True
            elif kind in ("eof", ";"):
                return False
            if depth == 0:
                return ahead == 1
            ahead += 1
