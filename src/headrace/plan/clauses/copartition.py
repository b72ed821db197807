"""Checks that joined sources are co-partitioned, with compatible windowed keys."""

from __future__ import annotations

from headrace.formats import REGISTRY_FORMATS
from headrace.model.errors import StatementError
from headrace.model.sources import Source
from headrace.model.types import quote
from headrace.plan.language.catalog_view import CatalogView
from headrace.plan.language.scope import Aliased
from headrace.plan.sources.wrapping import is_wrapped
from headrace.sql import ast

_ISSUE = "See https://github.com/confluentinc/ksql/issues/4385."


def check_partitions(view: CatalogView, left: tuple[Aliased, ...], right: Aliased) -> None:
    """The result of earlier joins has as many partitions as the source that came last."""
    counts = [view.partitions(s.source.topic) for s in (left[-1], right)]
    if None in counts or counts[0] == counts[1]:
        return
    a, b = quote(left[0].alias), quote(right.alias)
    raise StatementError(
        f"Can't join {a} with {b} since the number of partitions don't match. "
        f"{a} partitions = {counts[0]}; {b} partitions = {counts[1]}. "
        "Please repartition either one so that the number of partitions match."
    )


def check_repartitions(
    left: tuple[Aliased, ...],
    left_on: ast.Expression,
    right: Aliased,
    right_on: ast.Expression,
) -> None:
    """A windowed source can be joined only on the key it has, in the form it has."""
    sides = [(left[0].source, left_on), (right.source, right_on)]
    kept = [source for source, on in sides if not _moves(source, on)]
    named = [source for source, _ in sides if source.key.format != "NONE"]
    wanted = next(iter((*kept, *named)), None)
    if wanted is None:
        return
    # Keys that carry the id of their schema are written anew before every join.
    with_schema_id = [f.name for f in REGISTRY_FORMATS]
    anew = wanted.key.format in with_schema_id
    for source, on in sides:
        if source.window is None:
            continue
        if _moves(source, on) or (not anew and _form(source) != _form(wanted)):
            raise StatementError(
                f"Implicit repartitioning of windowed sources is not supported. {_ISSUE}"
            )
        if anew and source.is_table:
            raise StatementError(
                f"Implicit repartitioning of windowed sources is not supported. {_ISSUE} "
                "As a result, ksqlDB does not support joins on windowed sources with "
                f"Schema-Registry-enabled key formats ({', '.join(with_schema_id)}) at this time. "
                "Please repartition your sources to use a different key format before performing "
                "the join."
            )


def _moves(source: Source, on: ast.Expression) -> bool:
    """Whether a source has to be repartitioned to be joined on the expression."""
    key = [c.name for c in source.schema.key]
    return not isinstance(on, ast.ColumnRef) or key != [on.name]


def _form(source: Source) -> tuple[object, ...]:
    """The form of keys in the topic; a setting that the format ignores is not part of it."""
    key = source.key
    return key.format, key.properties, is_wrapped(key, len(source.schema.key)), source.window
