"""A plan under construction: its node, and the columns that later clauses may use."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headrace.model.errors import StatementError
from headrace.model.types import quote
from headrace.plan.clauses.analysis import (
    Analysis,
    Fields,
    Item,
    Selection,
    Star,
)
from headrace.plan.language.binder import Binder, EvaluationError
from headrace.plan.language.catalog_view import CatalogView
from headrace.plan.language.expressions import Expression
from headrace.plan.language.messages import joined, text
from headrace.plan.nodes import Node
from headrace.sql import ast

_SYNTHETIC_KEY_HELP = "https://cnfl.io/2LV7ouS"


@dataclass(frozen=True)
class Planning:
    """What all steps of planning one query share."""

    analysis: Analysis
    view: CatalogView
    settings: Mapping[str, str]

    def binder(self, node: Node) -> Binder:
        return Binder.of({c.name: c.type for c in node.schema}, self.view.type, self.settings)

    def flatten(self, expression: ast.Expression) -> ast.Expression:
        return self.analysis.scope.flatten(expression)


@dataclass(frozen=True)
class Projection:
    """The selected items over the plan's own columns."""

    items: tuple[Selection, ...]

    def contains(self, expression: ast.Expression) -> bool:
        """Whether the expression is among the selected ones, by itself or behind a star."""
        for item in self.items:
            match item:
                case Star(None):
                    return True
                case Star(source):
                    if isinstance(expression, ast.ColumnRef) and expression.source == source:
                        return True
                case Item(selected, _) | Fields(selected):
                    if selected == expression:
                        return True
        return False


@dataclass(frozen=True)
class Stage:
    """A plan so far; `stars` lists the columns of `*` (None) and of each source's `alias.*`.

    `resolve` replaces what a select expression means before this stage by a column of it.
    `check_key` raises unless the projection has the key; it is given the sink's name.
    `checks` are rules that ksqlDB applies only once all of a query has been understood.
    `key_names` says how messages call a key column whose name the plan made up.
    `source_keys` are the columns that are key columns of their sources.
    """

    node: Node
    stars: Mapping[str | None, tuple[str, ...]]
    check_key: Callable[[Projection, str], None]
    resolve: Callable[[ast.Expression], ast.Expression] = lambda e: e
    checks: tuple[Callable[[], None], ...] = ()
    key_names: Mapping[str, str] = field(default_factory=dict)
    source_keys: frozenset[str] = frozenset()

    def on(self, node: Node) -> Stage:
        """The same for a node that changes neither columns nor key."""
        return dataclasses.replace(self, node=node)

    def star(self, source: str | None) -> tuple[str, ...]:
        if source not in self.stars:
            raise StatementError(f"'{source}' is not a valid stream/table name or alias.")
        return self.stars[source]


def evaluated(binder: Binder, expression: ast.Expression, role: str) -> Expression:
    """The expression bound; what cannot be computed is an invalid `role` (Select, Predicate)."""
    try:
        return binder.bind(expression)
    except EvaluationError as e:
        raise StatementError(f"Invalid {role}: {e}. expression: {text(expression)}") from None


def missing_key(
    sink: str,
    what: str,
    required: tuple[ast.Expression, ...],
    *,
    all_of_them: bool = True,
    synthetic: bool = False,
) -> StatementError:
    names = [text(e) for e in required]
    several = all_of_them and len(names) > 1
    listed = joined(names, " and " if all_of_them else " or ")
    link = f"See {_SYNTHETIC_KEY_HELP}." if synthetic else ""
    why = ""
    if synthetic:
        why = (
            f"\n{names[0]} was added as a synthetic key column because the join criteria did not "
            "match any source column. This expression must be included in the projection and may "
            "be aliased. "
        )
    return StatementError(
        f"Key{'s' if several else ''} missing from projection (ie, SELECT). {link}\n"
        f"The query used to build {quote(sink)} must include the "
        f"{what}{'' if len(names) == 1 else 's'} {listed}"
        f" in its projection (eg, SELECT {', '.join(names) if all_of_them else names[0]}...).{why}"
    )
