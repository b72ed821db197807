"""CREATE OR REPLACE: what may change, and what a running query's state would not survive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.formats import format_named
from headrace.model.errors import StatementError
from headrace.model.schema import Column, Namespace, Schema
from headrace.model.sources import Source, SourceKind
from headrace.model.types import quote
from headrace.plan import nodes
from headrace.plan.explain import describe
from headrace.plan.expressions import Expression, columns_used
from headrace.plan.serdes import SIDES
from headrace.plan.wrapping import WRAP_PROPERTIES, is_wrapped

# ------------------------------------------------------------------------------------- sources


def check_source_upgrade(existing: Source, new: Source) -> None:
    """A source may gain columns at its end; all else has to stay as it is."""
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


@dataclass(frozen=True)
class _Step:
    """A step that must not change; `facts` are its properties in the words of messages."""

    name: str
    facts: Mapping[str, object]


def check_query_upgrade(old: nodes.Node, new: nodes.Node) -> None:
    """Projections and filters may change freely; what keeps state or place may not."""
    before, after = list(_steps(old)), list(_steps(new))
    for a, b in zip(before, after, strict=False):
        if a.name != b.name:
            raise _mismatch(a, "class", a.name, b.name)
        for what, value in a.facts.items():
            if value != b.facts[what]:
                raise _mismatch(a, what, value, b.facts[what])
    if len(before) != len(after):
        step = max(before, after, key=len)[min(len(before), len(after))]
        raise _mismatch(step, "class", len(before), len(after))


def starts_anew(old: nodes.Node, new: nodes.Node) -> bool:
    """Whether a query that replaces another leaves its state behind, and only goes on from where
    the other had got to: what has passed a table's filter says nothing about another filter."""
    steps = [*nodes.steps(old), *nodes.steps(new)]
    if any(isinstance(step, nodes.Aggregate | nodes.Suppress | nodes.Join) for step in steps):
        return False
    return _table_filters(old) != _table_filters(new)


def _table_filters(root: nodes.Node) -> list[Expression]:
    """What the rows of tables have to fulfil."""
    return [
        step.predicate
        for step in nodes.steps(root)
        if isinstance(step, nodes.Filter) and step.kind is SourceKind.TABLE
    ]


def _mismatch(step: _Step, what: str, old: object, new: object) -> StatementError:
    return StatementError(
        f"Query is not upgradeable. Plan step of type {step.name} must have matching {what}. "
        f"Values differ: {old} vs. {new}"
    )


def _steps(node: nodes.Node) -> Iterator[_Step]:
    match node:
        case nodes.Write():
            facts = {
                "formats": (node.key.format, node.value.format),
                "topicName": node.topic,
                "timestampColumn": node.timestamp,
            }
            yield _Step(_named(node, "Sink"), facts)
        case nodes.ReadSource():
            if node.window is not None:
                raise _unsupported(f"Windowed{_named(node, 'Source')}")
            facts = {
                "topicName": node.topic,
                "formats": (node.key.format, node.value.format),
                "timestampColumn": node.timestamp,
            }
            yield _Step(_named(node, "Source"), facts)
        case nodes.Rekey():
            keys = [describe(k.expression) for k in node.keys]
            yield _Step("StreamSelectKey", {"keyExpressions": keys})
        case nodes.Aggregate():
            yield from _aggregate(node)
        case nodes.ForeignKeyJoin():
            raise _unsupported("ForeignKeyTableTableJoin")
        case nodes.Join() | nodes.FlatMap():
            raise _unsupported(
                "StreamFlatMap" if isinstance(node, nodes.FlatMap) else type(node).__name__
            )
    for below in nodes.inputs(node):
        yield from _steps(below)


def _aggregate(node: nodes.Aggregate) -> Iterator[_Step]:
    if node.window is not None:
        raise _unsupported("StreamWindowedAggregate")
    if node.input.kind is SourceKind.TABLE:
        raise _unsupported("TableAggregate")
    calls = [f"{c.function}({', '.join(map(describe, c.args))})" for c in node.calls]
    yield _Step(
        "StreamAggregate",
        {
            "columns not part of aggregate": f"[{', '.join(map(quote, _read_by(node)))}]",
            "aggregate functions": calls,
        },
    )
    keys = [describe(k.expression) for k in node.keys]
    yield _Step("StreamGroupBy", {"group by clause": keys})


def _read_by(node: nodes.Aggregate) -> list[str]:
    """The columns that a grouped query reads, in the order it names them."""
    expressions = [k.expression for k in node.keys]
    expressions += [arg for call in node.calls for arg in call.args]
    below = node.input
    while isinstance(below, nodes.Filter):
        expressions.append(below.predicate)
        below = below.input
    return list(dict.fromkeys(name for e in expressions for name in sorted(columns_used(e))))


def _named(node: nodes.Node, what: str) -> str:
    return f"{node.kind.value.capitalize()}{what}"


def _unsupported(step: str) -> StatementError:
    return StatementError(f"Upgrades not yet supported for {step}")
