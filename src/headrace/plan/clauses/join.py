"""Joins: from the FROM clause to a left-deep tree of join nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from headrace.model.errors import StatementError
from headrace.model.schema import Column, Namespace, Schema
from headrace.model.sources import SourceKind
from headrace.model.types import SqlType, quote
from headrace.plan import nodes
from headrace.plan.clauses.analysis import JoinStep
from headrace.plan.clauses.copartition import check_partitions, check_repartitions
from headrace.plan.clauses.read import as_value, read, star
from headrace.plan.clauses.stage import (
    Planning,
    Projection,
    Stage,
    evaluated,
    missing_key,
)
from headrace.plan.language.expressions import ColumnValue, Expression
from headrace.plan.language.messages import text
from headrace.plan.language.names import Aliases, join_column
from headrace.plan.language.scope import Aliased
from headrace.plan.sources.serdes import check_key_columns
from headrace.sql import ast

_TYPES = {
    ast.JoinType.INNER: nodes.JoinType.INNER,
    ast.JoinType.LEFT: nodes.JoinType.LEFT,
    ast.JoinType.RIGHT: nodes.JoinType.RIGHT,
    ast.JoinType.OUTER: nodes.JoinType.OUTER,
}
# How messages call the types.
_WORDS = {
    ast.JoinType.INNER: "[INNER] JOIN",
    ast.JoinType.LEFT: "LEFT [OUTER] JOIN",
    ast.JoinType.RIGHT: "RIGHT [OUTER] JOIN",
    ast.JoinType.OUTER: "[FULL] OUTER JOIN",
}


@dataclass(frozen=True)
class Side:
    """One input of a join: a source, or what was joined before.

    `equal` holds the expressions that have the same value as the key; `viable` those of them
    that are columns, which a projection may select to have the key.
    """

    node: nodes.Node
    sources: tuple[Aliased, ...]
    equal: frozenset[ast.Expression] = frozenset()
    viable: tuple[ast.ColumnRef, ...] = ()
    key: str | None = None  # the key column of what was joined before

    @property
    def is_table(self) -> bool:
        return self.node.kind is SourceKind.TABLE

    @property
    def is_source(self) -> bool:
        return self.key is None


def join_stage(planning: Planning) -> Stage:
    analysis = planning.analysis
    projection = Projection(analysis.select)
    side: Side | None = None
    checks: list[Callable[[], None]] = []
    last: _Joined | None = None
    for step in analysis.joins:
        if side is None:
            side = Side(read(step.left, True), (step.left,))
        step = _oriented(step, side)
        right = Side(read(step.right, True), (step.right,))
        last = _join(planning, step, side, right, projection)
        checks += _late_checks(planning, step, side, right, last)
        side = last.side
    assert last is not None and side is not None
    stars: dict[str | None, tuple[str, ...]] = {
        s.alias: tuple(join_column(s.alias, name) for name in star(s.source)) for s in side.sources
    }
    everything = tuple(name for s in side.sources for name in stars[s.alias])
    stars[None] = (last.key, *everything) if last.synthetic else everything
    names = {last.key: join_column(c.source or "", c.name)} if (c := last.selected) else {}
    certain = analysis.persistent or _always_there(last.selected, analysis.joins)
    return Stage(
        side.node,
        stars,
        last.check_key(planning),
        last.resolve(planning) if certain else lambda e: e,
        tuple(checks),
        names,
        frozenset(join_column(s.alias, c.name) for s in side.sources for c in s.source.schema.key),
    )


def _always_there(column: ast.ColumnRef | None, joins: tuple[JoinStep, ...]) -> bool:
    """Whether a source's column always has the key's value, because its rows are never missing."""
    kinds = {step.type for step in joins}
    if kinds == {ast.JoinType.INNER}:
        return True
    left = column is not None and column.source == joins[0].left.alias
    return left and kinds <= {ast.JoinType.INNER, ast.JoinType.LEFT}


def _oriented(step: JoinStep, side: Side) -> JoinStep:
    """The step with what was joined before on its left."""
    left, right = step.left in side.sources, step.right in side.sources
    if left and right:
        raise StatementError(
            f"Cannot perform circular join - both {quote(step.right.alias)} and "
            f"{text(step.left_on)} are already included in the current join tree"
        )
    if not left and not right:
        raise StatementError(
            "Cannot build JOIN tree; neither source in the join is the FROM source or included in "
            f"a previous JOIN: {step.written}"
        )
    return step if left else step.flip()


@dataclass(frozen=True)
class _Joined:
    """A join's result: `key` names its key column, `selected` the source column that stands for
    it in the projection (None for a synthetic or a foreign key)."""

    side: Side
    key: str
    selected: ast.ColumnRef | None
    foreign: Aliased | None = None

    @property
    def synthetic(self) -> bool:
        return self.selected is None and self.foreign is None

    def resolve(self, planning: Planning) -> Callable[[ast.Expression], ast.Expression]:
        """The selected source column is the key; the same column elsewhere is its source's."""
        chosen = self.selected and planning.flatten(self.selected)
        key = ast.ColumnRef(None, self.key)
        return lambda e: key if chosen is not None and e == chosen else e

    def check_key(self, planning: Planning) -> Callable[[Projection, str], None]:
        def check(projection: Projection, sink: str) -> None:
            if self.foreign is not None:
                _check_foreign_key(self.foreign, projection)
                return
            viable: tuple[ast.Expression, ...] = self.side.viable
            if self.synthetic:
                viable = (ast.ColumnRef(None, self.key),)
            flat = (planning.flatten(e) for e in viable)
            if not any(projection.contains(e) for e in (*flat, *viable)):
                raise missing_key(
                    sink,
                    "join expression",
                    viable,
                    all_of_them=False,
                    synthetic=self.synthetic,
                )

        return check


def _check_foreign_key(left: Aliased, projection: Projection) -> None:
    missing = [
        quote(c.name)
        for c in left.source.schema.key
        if not projection.contains(ast.ColumnRef(left.alias, c.name))
        and not projection.contains(ast.ColumnRef(None, join_column(left.alias, c.name)))
    ]
    if missing:
        columns = "column" if len(missing) == 1 else "columns"
        raise StatementError(
            f"Primary key {columns} missing in projection. For foreign-key table-table joins, the "
            "projection must include all primary key columns from the left input table "
            f"({quote(left.alias)}). Missing {columns}: {', '.join(missing)}."
        )


def _join(
    planning: Planning, step: JoinStep, left: Side, right: Side, projection: Projection
) -> _Joined:
    foreign = _verify(planning, step, left, right)
    sources = left.sources + right.sources
    left_key = _side_key(planning, step.left_on, left)
    right_key = _side_key(planning, step.right_on, right)
    kind = SourceKind.TABLE if left.is_table and right.is_table else SourceKind.STREAM
    if foreign:
        if step.type is ast.JoinType.RIGHT:
            raise StatementError("RIGHT OUTER JOIN on a foreign key is not supported")
        by_key = _foreign_key_join(step, left, right, left_key, right_key)
        name = by_key.key.name
        return _Joined(Side(by_key, sources, key=name), name, None, step.left)
    type_ = _key_type(left_key.type, right_key.type)
    equal, viable = _equivalents(step, left)
    key = Aliases(c.name for s in sources for c in s.source.schema).join_key()
    column = Column(key, type_, Namespace.KEY)
    joined = [c for c in left.node.schema if c.name != left.key]
    schema = Schema.of((column, *map(as_value, (*joined, *right.node.schema))))
    node_type, extra = _node_type(step, left, right)
    node = node_type(
        schema=schema,
        kind=kind,
        left=left.node,
        right=right.node,
        type=_TYPES[step.type],
        left_key=left_key,
        right_key=right_key,
        key=column,
        **extra,
    )
    available = [c for c in viable if projection.contains(c)]
    chosen = next(iter((*available, *viable)), None)
    return _Joined(Side(node, sources, equal, viable, key), key, chosen)


def _key_type(left: SqlType, right: SqlType) -> SqlType:
    if left != right:
        raise StatementError(f"Invalid join. Key types differ: {left} vs {right}")
    return left


def _side_key(planning: Planning, on: ast.Expression, side: Side) -> Expression:
    """What a side is joined on; its key column where that has the same value."""
    if side.key is not None and on in side.equal:
        key = side.node.schema.find(side.key)
        assert key is not None
        return ColumnValue(key.type, key.name)
    return evaluated(planning.binder(side.node), planning.flatten(on), "SelectKey")


def _equivalents(
    step: JoinStep, left: Side
) -> tuple[frozenset[ast.Expression], tuple[ast.ColumnRef, ...]]:
    if step.type is ast.JoinType.OUTER:
        return frozenset(), ()  # either side may be missing, so neither has the key's value
    keys = frozenset((step.left_on, step.right_on))
    equal = keys | left.equal if left.equal & keys else keys
    candidates = dict.fromkeys((*left.viable, step.left_on, step.right_on))
    viable = (c for c in candidates if isinstance(c, ast.ColumnRef) and c.source and c in equal)
    return equal, tuple(viable)


def _node_type(
    step: JoinStep, left: Side, right: Side
) -> tuple[type[nodes.Join], dict[str, int | None]]:
    if left.is_table:
        return nodes.TableTableJoin, {}
    if right.is_table:
        return nodes.StreamTableJoin, {}
    within = step.within
    return nodes.StreamStreamJoin, {
        "before_ms": within.before.millis if within else 0,
        "after_ms": within.after.millis if within else 0,
        "grace_ms": within.grace.millis if within and within.grace else None,
    }


def _foreign_key_join(
    step: JoinStep, left: Side, right: Side, left_key: Expression, right_key: Expression
) -> nodes.ForeignKeyJoin:
    keys = left.node.schema.key
    values = (c for c in left.node.schema if c.namespace is not Namespace.KEY)
    return nodes.ForeignKeyJoin(
        schema=Schema.of((*keys, *values, *map(as_value, right.node.schema))),
        kind=SourceKind.TABLE,
        left=left.node,
        right=right.node,
        type=_TYPES[step.type],
        left_key=left_key,
        right_key=right_key,
        key=keys[0],
    )


# -------------------------------------------------------------------------------------- rules


def _verify(planning: Planning, step: JoinStep, left: Side, right: Side) -> bool:
    """Which joins there are. True if this one is on a foreign key."""
    names = f"{step.left.source.name} {_WORDS[step.type]} {step.right.source.name}"
    if not left.is_table:
        if right.is_table and step.type is ast.JoinType.OUTER:
            raise StatementError(
                "Invalid join type: full-outer join not supported for stream-table join. "
                f"Got {names}."
            )
        if right.is_table and not _on_key(step.right_on, right):
            raise StatementError(
                "Invalid join condition: stream-table joins require to join on the table's "
                f"primary key. Got {step.written}."
            )
        return False
    if not right.is_table:
        raise StatementError(
            "Invalid join order: table-stream joins are not supported; only stream-table joins. "
            f"Got {names}."
        )
    if not _on_key(step.right_on, right):
        raise StatementError(
            "Invalid join condition: table-table joins require to join on the primary key of the "
            f"right input table. Got {step.written}."
        )
    on_key = _on_key(step.left_on, left)
    if not on_key:
        if step.type is ast.JoinType.OUTER:
            raise StatementError(
                "Invalid join type: full-outer join not supported for foreign-key table-table "
                f"join. Got {names}."
            )
        if not left.is_source or not right.is_source:
            raise StatementError(
                "Invalid join condition: foreign-key table-table joins are not supported as part "
                f"of n-way joins. Got {step.written}."
            )
    _check_types(planning, step, left, right)
    if not on_key and right.sources[0].source.window is not None:
        raise StatementError("Foreign-key table-table joins are not supported on windowed tables.")
    return not on_key


def _on_key(on: ast.Expression, side: Side) -> bool:
    """Whether a table is joined on its primary key, which then is one column."""
    if not isinstance(on, ast.ColumnRef):
        return False
    owner = next((s for s in side.sources if s.alias == on.source), None)
    if owner is None:
        raise StatementError(
            f"Join qualifier '{on.source}' could not be resolved (either not found or not unique)."
        )
    return [c.name for c in owner.source.schema.key] == [on.name]


def _check_types(planning: Planning, step: JoinStep, left: Side, right: Side) -> None:
    a = _side_key(planning, step.left_on, left).type
    b = _side_key(planning, step.right_on, right).type
    if a != b:
        sides = [f"{text(step.left_on)}{{{a}}}", f"{text(step.right_on)}{{{b}}}"]
        first, second = reversed(sides) if step.flipped else sides
        raise StatementError(f"Invalid join condition: types don't match. Got {first} = {second}.")


def _late_checks(
    planning: Planning, step: JoinStep, left: Side, right: Side, joined: _Joined
) -> list[Callable[[], None]]:
    """Rules about how the inputs lie in their topics; foreign-key joins do not care."""

    def within() -> None:
        _check_within(step, left, right)

    if joined.foreign is not None:
        return [within]

    def partitions() -> None:
        check_partitions(planning.view, left.sources, right.sources[-1])

    def key() -> None:
        shown = joined.selected and join_column(joined.selected.source or "", joined.selected.name)
        column = joined.side.node.schema.key[0]
        check_key_columns([dataclasses.replace(column, name=shown or column.name)])

    def repartitions() -> None:
        check_repartitions(left.sources, step.left_on, right.sources[0], step.right_on)

    repartitioned = [repartitions] if left.is_source else []
    return [partitions, within, key, *repartitioned]


def _check_within(step: JoinStep, left: Side, right: Side) -> None:
    if not left.is_table and not right.is_table:
        if step.within is None:
            raise StatementError(
                "Stream-Stream joins must have a WITHIN clause specified. None was provided. To "
                "learn about how to specify a WITHIN clause with a stream-stream join, please "
                "visit: https://docs.confluent.io/current/ksql/docs/syntax-reference.html"
                "#create-stream-as-select"
            )
        return
    if step.within is not None and left.is_table:
        raise StatementError(
            "A window definition was provided for a Table-Table join. These joins are not "
            "windowed. Please drop the window definition (i.e. the WITHIN clause) and try to "
            "execute your Table-Table join again."
        )
    if step.within is not None:
        raise StatementError(
            "A window definition was provided for a Stream-Table join. These joins are not "
            "windowed. Please drop the window definition (ie. the WITHIN clause) and try to "
            "execute your join again."
        )
    if not left.is_table and step.type is ast.JoinType.RIGHT:
        raise StatementError(f"Invalid join type encountered: {_WORDS[step.type]}")
