"""Stateful steps: aggregates and joins, lowered to kernels (see docs/design/0002-state.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegerType, StructField, StructType

from headrace.functions.declare.declaration import CallContext
from headrace.functions.registry import REGISTRY
from headrace.model.representation import spark_type
from headrace.model.schema import WINDOWEND, WINDOWSTART, Schema
from headrace.model.schema import Column as Named
from headrace.model.sources import SourceKind, WindowedKey, WindowType
from headrace.model.types import BIGINT, BOOLEAN, INTEGER, STRING, SqlType
from headrace.plan import nodes as n
from headrace.spark.lower.expressions import lower
from headrace.spark.lower.lowering import (
    Context,
    Lowered,
    feeding_kernel,
    is_live,
    lower_node,
    lowers,
    row_of,
    selected_columns,
)
from headrace.spark.rows.columns import (
    DEAD,
    ERRORS,
    FAILED,
    NULL,
    OFFSET,
    PARTITION,
    TIME,
    WINDOW_END,
    WINDOW_START,
    Entries,
    column,
    no_entries,
    select,
    with_entries,
)
from headrace.spark.rows.optimistic import require_native
from headrace.spark.rows.processing_log import Failure, KernelEntry
from headrace.spark.state.bucket import apply_kernel, in_order_by
from headrace.spark.state.kernel_step import KernelInput, KernelStep
from headrace.spark.state.kernels.aggregate import StreamAggregate, TimeWindow
from headrace.spark.state.kernels.foreign_key_join import ForeignKeyJoin, References
from headrace.spark.state.kernels.kernel import KernelSpec
from headrace.spark.state.kernels.presence import Presence
from headrace.spark.state.kernels.session_aggregate import SessionAggregate, SessionWindow
from headrace.spark.state.kernels.steps import Call
from headrace.spark.state.kernels.stream_join import StreamStreamJoin
from headrace.spark.state.kernels.stream_table_join import StreamTableJoin
from headrace.spark.state.kernels.table_aggregate import GroupChanges, TableAggregate
from headrace.spark.state.kernels.table_join import TableTableJoin


def _run(
    context: Context,
    name: str,
    step: KernelStep,
    inputs: Sequence[KernelInput],
    below: tuple[str, ...],
) -> Lowered:
    """The step's rows: columns `k0…`, `v0…`, the window if it has one, and what rows carry.

    `below` is what steps below this one remember. Rows are placed anyway if there is another kernel
    behind this one.
    """
    kernel = step.kernel
    state = f"{kernel.layout}, {context.buckets} buckets"
    if kernel.keeps_rows:
        kept = inputs[1:] if kernel.carries else inputs
        columns = (each.rows.select(*each.values).schema.simpleString() for each in kept)
        state += f" of {' and '.join(columns)}"
    step = replace(
        step,
        placed=step.placed or context.feeds_kernel,
        buckets=context.buckets,
        decoding=context.decoding,
        entry=KernelEntry(context.entries.query, name),
        depth=len(below),
    )
    return Lowered(apply_kernel(step, inputs, context.run_kernel), (*below, state))


def _fields(prefix: str, types: Iterable[DataType]) -> StructType:
    return StructType([StructField(f"{prefix}{i}", t) for i, t in enumerate(types)])


def _types(columns: Iterable[Named]) -> list[DataType]:
    return [spark_type(c.type) for c in columns]


def _columns(schema: Schema) -> list[Column]:
    return [column(c.name) for c in schema]


# ------------------------------------------------------------------------------- aggregates


@lowers(n.Aggregate)
def _aggregate(node: n.Aggregate, context: Context) -> Lowered:
    if node is context.native:
        return native_aggregate(node, context)
    return _aggregated(node, context, final=False)


@lowers(n.Suppress)
def _suppress(node: n.Suppress, context: Context) -> Lowered:
    assert isinstance(node.input, n.Aggregate), "EMIT FINAL is about a windowed aggregate"
    return _aggregated(node.input, context, final=True)


def _aggregated(node: n.Aggregate, context: Context, final: bool) -> Lowered:
    below = lower_node(node.input, feeding_kernel(context))
    prepared = replace(below, rows=arguments(node, below.rows, context))
    results = [*(r.column for r in node.required), *(c.column for c in node.calls)]
    key_fields = _fields("k", _types(k.column for k in node.keys))
    value_fields = _fields("v", _types(results))
    width = len(node.required)
    calls, at = [], width
    for call in node.calls:
        found = REGISTRY.find(call.function, call.signature)
        steps = found.step(call_context(call, context))
        calls.append(Call(call.signature, steps, tuple(range(at, at + len(call.args)))))
        at += len(call.args)
    values = [column(f"$a{i}") for i in range(at)]
    keys = [column(f"$g{i}") for i in range(len(node.keys))]
    if node.input.kind is SourceKind.TABLE:
        kernel: KernelSpec = TableAggregate(tuple(calls), len(values), width, context.coalesce)
        changes, below = _group_changes(node, prepared, keys, values, context)
    else:
        kernel = _stream_kernel(node, tuple(calls), width, final, context)
        changes = KernelInput(prepared.rows, keys, values)
    step = KernelStep(kernel, key_fields, value_fields, coalesce=context.coalesce)
    out = _run(context, "Aggregate", step, [changes], below.state)
    return replace(out, rows=_named(node, out.rows))


def arguments(node: n.Aggregate, rows: DataFrame, context: Context) -> DataFrame:
    """The rows with `$g…` (the group) and `$a…` (what the functions take).

    A row without a group is in none: that is logged.
    """
    wanted = [*(r.expression for r in node.required), *(a for c in node.calls for a in c.args)]
    arguments = tuple(n.Selected(Named(f"$a{i}", x.type), x) for i, x in enumerate(wanted))
    columns, entries = selected_columns(arguments, context, "Aggregate", node.input.schema)
    groups, failures = _groups(node, context)
    reason = F.coalesce(*(error for _, error in failures))
    # Of a row without a group nothing else counts, and of its reasons the first.
    first = [
        (message, F.when(F.coalesce(*(e for _, e in failures[:i]), F.lit(None)).isNull(), error))
        for i, (message, error) in enumerate(failures)
    ]
    left_out = context.entries.processing("GroupBy", first, row_of(node.input.schema))
    skipped = context.entries.skipped("GroupBy", reason, rows.columns)
    tables = [column(c.name) for c in node.input.schema.key]
    keep = [c.alias(f"$t{i}") for i, c in enumerate(tables)]
    in_group = [Entries(reason.isNull() & e.failed, e.lines) for e in entries]
    return select(
        rows, [*groups, *columns, *keep], errors=with_entries([left_out, *skipped, *in_group])
    )


def _groups(node: n.Aggregate, context: Context) -> tuple[list[Column], list[Failure]]:
    """The group's columns `$g…`, and why a row may have none."""
    columns: list[Column] = []
    failures: list[Failure] = []
    for i, key in enumerate(node.keys):
        lowered = lower(key.expression, context.scope)
        value = lowered.value
        if lowered.error is not None:
            value = F.when(lowered.error.isNull(), value)
            error = F.when(is_live(), lowered.error)
            failures.append(
                (f"Error calculating group-by column with index {i}. {_EXCLUDED}", error)
            )
        null = f"Group-by column with index {i} resolved to null."
        failures.append((f"{null} {_EXCLUDED}", F.when(is_live() & value.isNull(), F.lit(null))))
        columns.append(value.alias(f"$g{i}"))
    return columns, failures


_EXCLUDED = "The source row will be excluded from the table."


def call_context(call: n.AggregateCall, context: Context) -> CallContext:
    types = (*(a.type for a in call.args), *map(_literal_type, call.literals))
    literals = (*(None for _ in call.args), *call.literals)
    return CallContext(types, call.column.type, literals, context.function_settings)


def _literal_type(value: object) -> SqlType:
    match value:
        case bool():
            return BOOLEAN
        case int():
            return INTEGER if -(2**31) <= value < 2**31 else BIGINT
    return STRING


def _stream_kernel(
    node: n.Aggregate, calls: tuple[Call, ...], width: int, final: bool, context: Context
) -> KernelSpec:
    window = node.window
    if window is None:
        return StreamAggregate(calls, width, coalesce=context.coalesce)
    if window.type is WindowType.SESSION:
        return SessionAggregate(
            calls,
            SessionWindow.of(window.size_ms, window.grace_ms),
            width,
            final,
            context.coalesce,
        )
    times = TimeWindow.of(window.size_ms, window.advance_ms, window.grace_ms)
    coalesce = context.coalesce and not final
    # Kafka Streams loses final results that a jump of time carries past its store's retention; that
    # is only the same here where one bucket sees all rows.
    exact = window.retention_ms or times.size + times.grace
    retention = exact if context.buckets == 1 else None
    return StreamAggregate(calls, width, times, final, coalesce, retention)


def _group_changes(
    node: n.Aggregate,
    below: Lowered,
    group: Sequence[Column],
    values: Sequence[Column],
    context: Context,
) -> tuple[KernelInput, Lowered]:
    """What a table's rows change in their groups, as input of the aggregate."""
    wanted = [*(r.expression for r in node.required), *(a for c in node.calls for a in c.args)]
    arg_types = [spark_type(x.type) for x in wanted]
    primary = [column(f"$t{i}") for i in range(len(node.input.schema.key))]
    primary += _window_of(below.rows)
    step = KernelStep(
        GroupChanges(len(group), len(values)),
        _fields("k", _types(k.column for k in node.keys)),
        _fields("v", [IntegerType(), *arg_types, *arg_types]),
        placed=True,
    )
    table = KernelInput(below.rows, primary, [*group, *values], latest=context.coalesce)
    changes = _run(context, "GroupBy", step, [table], below.state)
    return _output_of(step, changes), changes


def _output_of(step: KernelStep, out: Lowered) -> KernelInput:
    """A kernel's output as the input of another."""
    names = step.key.names, step.values.names
    key, values = ([column(name) for name in each] for each in names)
    return KernelInput(out.rows, key, values)


def _named(node: n.Aggregate, out: DataFrame) -> DataFrame:
    """The kernel's output under the names of the node's schema."""
    names = {k.column.name: f"k{i}" for i, k in enumerate(node.keys)}
    results = [*(r.column for r in node.required), *(c.column for c in node.calls)]
    names |= {c.name: f"v{i}" for i, c in enumerate(results)}
    names |= {WINDOWSTART: WINDOW_START, WINDOWEND: WINDOW_END}
    columns = [column(names[c.name]).alias(c.name) for c in node.schema]
    return select(out, columns)


# ------------------------------------------------------------------- Spark's own aggregation


def is_stateful(root: n.Node) -> bool:
    """Whether a plan has state: then rows meet by their key in tasks that do not change."""
    return any(step.keeps_state for step in n.steps(root))


def native_candidate(root: n.Node, context: Context) -> n.Aggregate | None:
    """The plan's aggregate, if Spark's own aggregation gives the same tables.

    That is: one unwindowed GROUP BY over a stream, nothing stateful before or after it, updates may
    coalesce, and every function has a Spark form.
    """
    if not context.coalesce:
        return None
    found = [x for x in n.steps(root) if not isinstance(x, n.Write | n.Project | n.ReadSource)]
    aggregates = [x for x in found if isinstance(x, n.Aggregate)]
    if len(aggregates) != 1:
        return None
    (node,) = aggregates
    below = set(map(id, n.steps(node.input)))
    for step in found:
        stateless = isinstance(step, n.FlatMap | n.Rekey | n.Filter) and id(step) in below
        if step is not node and not stateless:
            return None
    if node.window is not None or node.input.kind is SourceKind.TABLE or node.required:
        return None
    return node if all(_has_native(c, context) for c in node.calls) else None


def _has_native(call: n.AggregateCall, context: Context) -> bool:
    found = REGISTRY.find(call.function, call.signature)
    types = [spark_type(a.type) for a in call.args]
    nothing = [F.lit(None).cast(t) for t in types]
    return found.native(nothing, call_context(call, context)) is not None


def native_aggregate(node: n.Aggregate, context: Context) -> Lowered:
    """`groupBy().agg()`. Rows that are only there for their log entries make a group of their own;
    `$failed` marks the groups to which this micro-batch brought log entries."""
    # Nobody reads the entries of rows that end here: if there are any, the batch is read again.
    context = replace(context, entries=context.entries.marking())
    below = lower_node(node.input, context)
    calls = ", ".join(call.signature for call in node.calls)
    state = f"Spark's aggregate 2: {len(node.keys)} keys, {calls}"
    prepared = arguments(node, below.rows, context)
    keys = [column(f"$g{i}") for i in range(len(node.keys))]
    known = F.lit(True)
    for key in keys:
        known = known & key.isNotNull()
    optimistic, failed = context.decoding.native, column(ERRORS).isNotNull()
    if optimistic:
        counted = prepared.where(require_native(~column(DEAD) & ~failed, known & ~column(NULL)))
        groups = keys
    else:
        counted = prepared.where(column(DEAD) | (known & ~column(NULL)) | failed)
        groups = [F.when(~column(DEAD) & known & ~column(NULL), key) for key in keys]
    aggregates, at = [], 0
    for i, call in enumerate(node.calls):
        found = REGISTRY.find(call.function, call.signature)
        args = [column(f"$a{at + j}") for j in range(len(call.args))]
        at += len(call.args)
        made = found.native(args, call_context(call, context))
        assert made is not None
        aggregates.append(made.cast(spark_type(call.column.type)).alias(f"v{i}"))
    # The batch's own time, the same when it is replayed, tells new entries from old ones. It has
    # Spark compile each batch anew. Optimistic plans have no entries, but the same state: for all
    # that Spark knows there may be a negative time, so it does not leave the column out.
    now = column(TIME) if optimistic else F.unix_millis(F.current_timestamp())
    mark = F.when(column(TIME) < 0 if optimistic else failed, column("$now"))
    grouped = (
        counted.withColumn("$now", now)
        .groupBy(*(group.alias(f"k{i}") for i, group in enumerate(groups)))
        .agg(
            *aggregates,
            F.max(column(TIME)).alias(TIME),
            F.max(mark).alias("$last_failure"),
        )
    )
    marked = column("$last_failure") < 0 if optimistic else column("$last_failure") == now
    complete = grouped.select(
        "*",
        column("k0").isNull().alias(DEAD),
        F.lit(False).alias(NULL),
        F.lit(0).alias(PARTITION),
        F.lit(0).cast("bigint").alias(OFFSET),
        no_entries().alias(ERRORS),
        F.coalesce(marked, F.lit(False)).alias(FAILED),
    )
    return Lowered(_named(node, complete), (*below.state, state))


# ------------------------------------------------------------------------------------ joins


Sides = tuple[KernelInput, KernelInput]


def _sides(node: n.Join, context: Context) -> tuple[Sides, tuple[str, ...]]:
    """Both inputs, keyed by what they meet by, and what steps below remember; keys that could not
    be worked out are dead rows."""
    inputs: list[KernelInput] = []
    state: tuple[str, ...] = ()
    for side, expression in ((node.left, node.left_key), (node.right, node.right_key)):
        below = lower_node(side, feeding_kernel(context))
        rows, state = below.rows, (*state, *below.state)
        keyed = n.Selected(Named("$join", expression.type), expression)
        columns, entries = selected_columns((keyed,), context, "Join", side.schema)
        ready = select(rows, [*_columns(side.schema), *columns], errors=with_entries(entries))
        window = _window_of(rows, next(n.sources(node.left)).window)
        values = [column(c.name) for c in _joined_columns(node, side)]
        inputs.append(KernelInput(ready, [column("$join"), *window], values))
    return (inputs[0], inputs[1]), state


def _joined_columns(node: n.Join, side: n.Node) -> list[Named]:
    """What of a side's row is in the result, beside the key by which the result goes."""
    there = {c.name for c in node.schema}
    if isinstance(node, n.ForeignKeyJoin):
        there -= {c.name for c in node.left.schema.key}
    return [c for c in side.schema if c.name in there and c.name != node.key.name]


def _window_of(rows: DataFrame, as_in: WindowedKey | None = None) -> list[Column]:
    """Keys of windowed sources are different keys in different windows.

    `as_in`: the left side's windows, for rows of a join. A key in its topic carries the end of a
    session, but of a window of fixed size only the start: those meet that begin at the same time.
    """
    if WINDOW_START not in rows.columns:
        return []
    if as_in is None or as_in.size_ms is None:
        return [column(WINDOW_START), column(WINDOW_END)]
    return [column(WINDOW_START), column(WINDOW_START) + F.lit(as_in.size_ms)]


def _joined(
    node: n.Join, inputs: Sides, kernel: KernelSpec, context: Context, below: tuple[str, ...]
) -> Lowered:
    left, right = inputs
    windowed = len(left.key) > 1 and len(right.key) > 1
    if not windowed:
        # Without its window, a windowed table's key is not its primary key.
        left, right = (
            replace(i, key=i.key[:1], latest=i.latest and len(i.key) == 1) for i in inputs
        )
    key_types = [spark_type(node.left_key.type)] + ([spark_type(BIGINT)] * 2 if windowed else [])
    both = (*_joined_columns(node, node.left), *_joined_columns(node, node.right))
    step = KernelStep(
        kernel,
        _fields("k", key_types),
        _fields("v", _types(both)),
        coalesce=left.latest and right.latest,
    )
    out = _run(context, type(node).__name__, step, [left, right], below)
    rows = out.rows
    if windowed:
        rows = rows.withColumns({WINDOW_START: column("k1"), WINDOW_END: column("k2")})
    return replace(out, rows=_named_join(node, rows, {node.key.name: column("k0")}))


def _named_join(node: n.Join, out: DataFrame, keys: dict[str, Column]) -> DataFrame:
    both = (*_joined_columns(node, node.left), *_joined_columns(node, node.right))
    at = {c.name: column(f"v{i}") for i, c in enumerate(both)} | keys
    return select(out, [at[c.name].alias(c.name) for c in node.schema])


@lowers(n.StreamStreamJoin)
def _stream_stream(node: n.StreamStreamJoin, context: Context) -> Lowered:
    (left, right), below = _sides(node, context)
    widths = len(left.values), len(right.values)
    kernel = StreamStreamJoin.of(
        node.type.value, widths, node.before_ms, node.after_ms, node.grace_ms
    )
    return _joined(node, (left, right), kernel, context, below)


@lowers(n.StreamTableJoin)
def _stream_table(node: n.StreamTableJoin, context: Context) -> Lowered:
    (left, right), below = _sides(node, context)
    kernel = StreamTableJoin(node.type is n.JoinType.LEFT, len(right.values))
    return _joined(node, (left, right), kernel, context, below)


@lowers(n.TableTableJoin)
def _table_table(node: n.TableTableJoin, context: Context) -> Lowered:
    sides, below = _sides(node, context)
    left, right = (replace(side, latest=context.coalesce) for side in sides)
    kernel = TableTableJoin(
        len(left.values),
        len(right.values),
        left_outer=node.type in (n.JoinType.LEFT, n.JoinType.OUTER),
        right_outer=node.type in (n.JoinType.RIGHT, n.JoinType.OUTER),
    )
    return _joined(node, (left, right), kernel, context, below)


@lowers(n.ForeignKeyJoin)
def _foreign_key(node: n.ForeignKeyJoin, context: Context) -> Lowered:
    (left, right), below = _sides(node, context)
    # Without its window, a windowed table's key is not its primary key.
    left, right = (replace(i, latest=context.coalesce and len(i.key) == 1) for i in (left, right))
    outer = node.type is n.JoinType.LEFT
    primary = node.left.schema.key
    key_types = _types(primary)
    left_types, right_types = (
        _types(_joined_columns(node, side)) for side in (node.left, node.right)
    )
    primary_key = [column(c.name) for c in primary]
    refer = KernelStep(
        References(len(primary), 1, len(left_types), outer),
        _fields("k", [spark_type(node.left_key.type)]),
        _fields("v", [IntegerType(), *key_types, *left_types]),
        placed=True,
    )
    referring = replace(left, key=primary_key, values=[left.key[0], *left.values])
    references = _run(context, "ForeignKey", refer, [referring], below)
    join = KernelStep(
        ForeignKeyJoin(len(primary), len(right_types), outer),
        _fields("k", key_types),
        _fields("v", [*left_types, *right_types]),
        coalesce=context.coalesce,
        placed=True,
    )
    sides = [_output_of(refer, references), replace(right, key=right.key[:1])]
    joined = _run(context, "ForeignKeyJoin", join, sides, references.state)
    keys = {c.name: column(f"k{i}") for i, c in enumerate(primary)}
    ordered = in_order_by(joined.rows, list(keys.values()), placed=context.feeds_kernel)
    return replace(joined, rows=_named_join(node, ordered, keys))


# ---------------------------------------------------------------------------------- tables


def only_seen(below: Lowered, node: n.Node, context: Context) -> Lowered:
    """A table's rows, whose tombstones leave only where a row was seen before."""
    window = _window_of(below.rows)
    bounds = [spark_type(BIGINT)] * len(window)
    key = [*(column(c.name) for c in node.schema.key), *window]
    names = [*(c.name for c in node.schema), *((WINDOW_START, WINDOW_END) if window else ())]
    step = KernelStep(
        Presence(),
        _fields("k", [*_types(node.schema.key), *bounds]),
        _fields("v", [*_types(node.schema), *bounds]),
    )
    rows = KernelInput(below.rows, key, [column(x) for x in names])
    out = _run(context, "Filter", step, [rows], below.state)
    seen = out.rows
    # A tombstone's values are gone; its key (and window) are not.
    keys = [c.name for c in node.schema.key] + ([WINDOW_START, WINDOW_END] if window else [])
    at = {name: column(f"v{i}") for i, name in enumerate(names)}
    at |= {name: column(f"k{i}") for i, name in enumerate(keys)}
    if window:
        seen = seen.withColumns({WINDOW_START: at[WINDOW_START], WINDOW_END: at[WINDOW_END]})
    return replace(out, rows=select(seen, [at[c.name].alias(c.name) for c in node.schema]))
