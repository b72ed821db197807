"""The sources of a query, and the resolution of column names among them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from headrace.model.errors import StatementError
from headrace.model.schema import PSEUDOCOLUMNS, WINDOW_BOUNDS
from headrace.model.sources import Source
from headrace.model.types import SqlType
from headrace.plan.language.catalog_view import CatalogView, alternatives
from headrace.plan.language.messages import at, joined, text
from headrace.plan.language.names import join_column
from headrace.sql import ast


@dataclass(frozen=True)
class Aliased:
    """A source under the name that the query calls it by."""

    alias: str
    source: Source

    @cached_property
    def columns(self) -> Mapping[str, SqlType]:
        """Every column that can be read, by its own name: declared ones first."""
        bounds = WINDOW_BOUNDS if self.source.window is not None else {}
        declared = {c.name: c.type for c in self.source.schema}
        return {**declared, **PSEUDOCOLUMNS, **bounds}


@dataclass(frozen=True)
class Scope:
    sources: tuple[Aliased, ...]
    is_join: bool

    @staticmethod
    def of(relation: ast.Relation, view: CatalogView) -> Scope:
        found: list[Aliased] = []
        for each in _relations(relation):
            source = view.source(each.name)
            if source is None:
                hint = alternatives(view, each.name)
                raise _unprepared(f"{each.name} does not exist.{hint}")
            if any(o.alias == each.alias and o.source != source for o in found):
                raise _unprepared(
                    f"Each source needs a name of its own: '{each.alias}' is used twice."
                )
            found.append(Aliased(each.alias, source))
        return Scope(tuple(found), isinstance(relation, ast.Join))

    def find(self, alias: str) -> Aliased | None:
        return next((s for s in self.sources if s.alias == alias), None)

    def with_column(self, name: str) -> list[Aliased]:
        return [s for s in self.sources if name in s.columns]

    @cached_property
    def _clashing(self) -> frozenset[str]:
        names = Counter(c.name for s in self.sources for c in s.source.schema)
        return frozenset(PSEUDOCOLUMNS) | {name for name, times in names.items() if times > 1}

    def clashes(self, name: str) -> bool:
        """Whether more than one of the joined sources has such a column."""
        return self.is_join and name in self._clashing

    # -------------------------------------------------------------------------- expressions

    def qualify(self, expression: ast.Expression) -> ast.Expression:
        """The expression with every column that belongs to one source qualified by its alias."""
        self._check_lambdas(expression, frozenset())
        return ast.rewrite(expression, self._qualified)

    def _qualified(self, e: ast.Expression) -> ast.Expression:
        if not isinstance(e, ast.ColumnRef):
            return e
        if e.source is not None:
            self.check_alias(e.source)
            return e
        owners = self.with_column(e.name)
        if len(owners) > 1:
            options = sorted(f"{s.alias}.{e.name}" for s in owners)
            raise _unprepared(
                f"{at(e.position)}Column '{e.name}' is ambiguous. "
                f"Could be {joined(options, ' or ')}."
            )
        return dataclasses.replace(e, source=owners[0].alias) if owners else e

    def check_alias(self, name: str) -> None:
        if self.find(name) is None:
            raise StatementError(
                f"Failed to prepare statement: '{name}' is not a valid stream/table name or alias."
            )

    def _check_lambdas(self, node: ast.Node, enclosing: frozenset[str]) -> None:
        if isinstance(node, ast.Lambda):
            for name in node.params:
                if any(s.source.schema.find(name) for s in self.sources):
                    raise _unprepared(f"Lambda function argument can't be a column name: {name}")
            if len(enclosing | set(node.params)) < len(enclosing) + len(node.params):
                raise _unprepared("Reusing lambda arguments in nested lambda is not allowed")
            enclosing = enclosing | set(node.params)
        for child in ast.children(node):
            self._check_lambdas(child, enclosing)

    def flatten(self, expression: ast.Expression) -> ast.Expression:
        """A qualified expression over the columns of the plan: `A.ID` is `A_ID` in a join."""
        return ast.rewrite(expression, self._flattened)

    def _flattened(self, e: ast.Expression) -> ast.Expression:
        if not isinstance(e, ast.ColumnRef) or e.source is None:
            return e
        name = join_column(e.source, e.name) if self.is_join else e.name
        return dataclasses.replace(e, source=None, name=name)


def _relations(relation: ast.Relation) -> Iterator[ast.AliasedRelation]:
    if isinstance(relation, ast.Join):
        yield relation.left
        for joined_source in relation.sources:
            yield joined_source.relation
    else:
        yield relation


def _unprepared(message: str) -> StatementError:
    return StatementError(f"Exception while preparing statement: {message}")


def column_refs(node: ast.Node) -> Iterator[ast.ColumnRef]:
    """Every column the expression names, in written order."""
    return (n for n in ast.walk(node) if isinstance(n, ast.ColumnRef))


def unknown_column(clause: str, column: ast.ColumnRef) -> StatementError:
    return StatementError(
        f"{at(column.position)}{clause} column '{text(column)}' cannot be resolved."
    )
