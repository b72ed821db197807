"""CREATE OR REPLACE: which changes are allowed, and which a query's state does not permit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.formats import format_named
from headrace.model.errors import StatementError
from headrace.model.schema import Column, Namespace, Schema
from headrace.model.sources import Source
from headrace.model.types import quote
from headrace.plan import nodes
from headrace.plan.language.expressions import Expression
from headrace.plan.sources.serdes import SIDES
from headrace.plan.sources.wrapping import WRAP_PROPERTIES, is_wrapped

# ------------------------------------------------------------------------------------- sources


def check_source_upgrade(existing: Source, new: Source) -> None:
    """Checks that a source only gains columns at its end."""
    problems = [
        _changed(existing, name, str(old), str(now))
        for name, old, now in (
            ("type", f"K{existing.kind.value}", f"K{new.kind.value}"),
            ("topic", _topic(existing), _topic(new)),
            ("timestampColumn", existing.timestamp, new.timestamp),
        )
        if old != now
    ]
    schema = _schema_problem(existing.schema, new.schema)
    if schema is not None:
        whole = _changed(existing, "schema", str(existing.schema), str(new.schema))
        problems.append(f"{whole}. ({schema})")
    if problems:
        raise StatementError(f"Cannot upgrade data source: {_NEXT.join(problems)}")


def mixed_forms(existing: Source, new: Source) -> str | None:
    """Why a topic with records would hold single fields in two forms (KLIP-3), and what to do;
    None if it would not."""
    for side in SIDES:
        (old, before), (now, after) = existing.side(side), new.side(side)
        if not before or not format_named(old.format).wraps_or_not:
            continue
        name = WRAP_PROPERTIES[side]
        if old.wrap is not now.wrap:
            flag = str(bool(now.wrap)).lower()
            return (
                f"DataSource '{quote(existing.name)}' has single {side}s {_FORMS[bool(old.wrap)]}, "
                f"which is not upgradeable to {name}={flag} while its topic '{existing.topic}' has "
                f"records. Leave {name} out to keep what is there, or write the records anew: "
                f"CREATE {existing.kind.value} <another name> WITH ({name}={flag}) AS SELECT * "
                f"FROM {quote(existing.name)};"
            )
        if is_wrapped(old, len(before)) != is_wrapped(now, len(after)):
            return (
                f"The {side} of DataSource '{quote(existing.name)}' is a bare value, which is not "
                f"upgradeable to several columns while its topic '{existing.topic}' has records: "
                "several columns are written as a record. Create another "
                f"{existing.kind.value.lower()} with a topic of its own, by CREATE "
                f"{existing.kind.value} <another name> AS SELECT, with the columns it needs."
            )
    return None


_FORMS = {True: "in records", False: "as bare values"}
_NEXT = "\n\tAND "


def _changed(source: Source, what: str, old: str, new: str) -> str:
    return f"DataSource '{quote(source.name)}' has {what} = {old} which is not upgradeable to {new}"


def _topic(source: Source) -> tuple[object, ...]:
    return source.topic, source.key.format, source.value.format, source.window


def _schema_problem(old: Schema, new: Schema) -> str | None:
    lost = _lost(old.key, new.key)
    if lost:
        return (
            "Key columns must be identical. The following key columns are changed, missing or "
            f"reordered: [{lost}]"
        )
    lost = _lost(old.columns, new.columns)
    return f"The following columns are changed, missing or reordered: [{lost}]" if lost else None


def _lost(old: Sequence[Column], new: Sequence[Column]) -> str:
    kept = set(_placed(new))
    return ", ".join(str(column) for place, column in _placed(old) if (place, column) not in kept)


def _placed(columns: Sequence[Column]) -> Iterator[tuple[int, Column]]:
    """Each column with its place among those read from the same part of a record."""
    counts = dict.fromkeys(Namespace, 0)
    for column in columns:
        yield counts[column.namespace], column
        counts[column.namespace] += 1


# ------------------------------------------------------------------------------------- queries


def check_query_upgrade(old: nodes.Node, new: nodes.Node) -> None:
    """Checks that only projections and filters change, not stateful steps or the sink."""
    before, after = _fixed(old), _fixed(new)
    for a, b in zip(before, after, strict=False):
        if a.step != b.step:
            raise _mismatch(a, "class", a.step, b.step)
        for what, value in a.properties.items():
            if value != b.properties[what]:
                raise _mismatch(a, what, value, b.properties[what])
    if len(before) != len(after):
        step = max(before, after, key=len)[min(len(before), len(after))]
        raise _mismatch(step, "class", len(before), len(after))


def _fixed(root: nodes.Node) -> list[nodes.Fixed]:
    return [fixed for step in nodes.steps(root) for fixed in step.fixed()]


def starts_anew(old: nodes.Node, new: nodes.Node) -> bool:
    """Whether a query that replaces another leaves its state behind, and only goes on from where
    the other had got to: what has passed a table's filter says nothing about another filter."""
    before, after = _table_filters(old), _table_filters(new)
    return before is not None and after is not None and before != after


def _table_filters(root: nodes.Node) -> list[Expression] | None:
    """What the rows of tables have to fulfil; None if other steps keep state too."""
    stateful = [step for step in nodes.steps(root) if step.keeps_state]
    filters = [step.predicate for step in stateful if isinstance(step, nodes.Filter)]
    return filters if len(filters) == len(stateful) else None


def _mismatch(fixed: nodes.Fixed, what: str, old: object, new: object) -> StatementError:
    return StatementError(
        f"Query is not upgradeable. Plan step of type {fixed.step} must have matching {what}. "
        f"Values differ: {old} vs. {new}"
    )
