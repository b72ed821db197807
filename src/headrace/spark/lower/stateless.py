"""Stateless steps: reading, filters, projections, writing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.formats.base import Format, Layout
from headrace.functions.declare.declaration import CallContext
from headrace.functions.registry import REGISTRY
from headrace.model.fallible import Fallible
from headrace.model.representation import spark_type
from headrace.model.schema import (
    HEADERS_TYPE,
    ROWOFFSET,
    ROWPARTITION,
    ROWTIME,
    WINDOWEND,
    WINDOWSTART,
)
from headrace.model.sources import SourceKind, WindowType
from headrace.model.types import BIGINT, STRING
from headrace.plan import nodes as n
from headrace.plan.language.describe import describe
from headrace.plan.language.expressions import columns_used
from headrace.spark.lower.expressions import lower
from headrace.spark.lower.lowering import (
    Context,
    Lowered,
    feeding_kernel,
    is_live,
    lower_node,
    lowers,
    projected,
    row_of,
    selected_columns,
)
from headrace.spark.lower.stateful import only_seen
from headrace.spark.rows.columns import (
    DEAD,
    ERRORS,
    FAILED,
    KEY,
    LOG,
    NULL,
    OFFSET,
    PARTITION,
    RAW,
    TASK,
    TIME,
    VALUE,
    WINDOW_END,
    WINDOW_START,
    Entries,
    carried,
    column,
    no_entries,
    select,
    with_entries,
)
from headrace.spark.rows.optimistic import require_native
from headrace.spark.rows.processing_log import Failure

_PSEUDO = {ROWTIME: TIME, ROWPARTITION: PARTITION, ROWOFFSET: OFFSET}


@lowers(n.ReadSource)
def _read(node: n.ReadSource, context: Context) -> Lowered:
    write = context.entries
    shown = {original for _, original in node.outputs}
    headers = [c for c in node.columns.headers if c.name in shown]
    with_headers = bool(headers) or write.keep_skipped
    raw = context.read(node, with_headers)
    key_bytes, start, end = _windowed_key(node)
    records = raw.select(
        key_bytes.alias("$key_bytes"),
        F.col("value").alias("$value_bytes"),
        F.col("value").isNull().alias(NULL),
        start.alias("$start"),
        end.alias("$end"),
        *([F.col("headers").alias("$headers")] if with_headers else []),
        F.unix_millis(F.col("timestamp")).alias(TIME),
        F.col("partition").alias(PARTITION),
        F.col("offset").alias(OFFSET),
        *([_whole_record(node.topic).alias(RAW)] if write.keep_skipped else []),
    )
    read = shown | ({node.timestamp.name} if node.timestamp is not None else set())
    decoded = records
    for side in ("key", "value"):
        format_, layout = context.layout(node, side)
        unread = frozenset(c.name for c in layout.columns if c.name not in read)
        decoded = _decoded(decoded, format_, replace(layout, unread=unread), context)
    at: dict[str, Column] = {c.name: column(KEY).getField(c.name) for c in node.columns.key}
    at |= {c.name: column(VALUE).getField(c.name) for c in node.columns.value}
    at |= {c.name: _header(c.header_key) for c in headers}
    time = _record_time(node, at)
    at |= {name: column(where) for name, where in _PSEUDO.items() if name != ROWTIME}
    at |= {ROWTIME: time.value, WINDOWSTART: column("$start"), WINDOWEND: column("$end")}

    step, topic = node.step_name, node.topic
    unreadable = F.coalesce(column("$key_error"), column("$value_error"))
    # Kafka Streams never lets a record without a time in.
    timeless = F.when(unreadable.isNull(), _timeless(time))
    reason = F.coalesce(unreadable, timeless)
    dead = reason.isNotNull()
    sides = (("key", column("$key_error")), ("value", column("$value_error")))
    entries = [
        *(
            write.deserialization(step, side, error, column(f"${side}_bytes"), topic)
            for side, error in sides
        ),
        write.processing(step, [("Failed to extract timestamp from row", timeless)], ()),
        *write.skipped(step, reason, records.columns),
    ]
    rows, errors = decoded, with_entries(entries, no_entries())
    if context.decoding.native:
        doubtful = column("$key_doubt") | column("$value_doubt") | timeless.isNotNull()
        errors, dead = no_entries(), require_native(~doubtful, F.lit(False))
    if node.kind is SourceKind.TABLE:
        rows = rows.where(dead | column("$key_bytes").isNotNull())
    read_rows = rows.select(
        *(at[original].alias(name) for name, original in node.outputs),
        time.value.alias(TIME),
        column(NULL),
        column(PARTITION),
        column(OFFSET),
        errors.alias(ERRORS),
        dead.alias(DEAD),
        *(
            [column("$start").alias(WINDOW_START), column("$end").alias(WINDOW_END)]
            if node.window is not None
            else []
        ),
        *([column(RAW)] if write.keep_skipped else []),
    )
    return Lowered(read_rows)


def _whole_record(topic: str) -> Column:
    """The record as it stands in its topic, for those who want it back."""
    return F.struct(
        F.lit(topic).alias("topic"),
        F.col("partition"),
        F.col("offset"),
        F.unix_millis(F.col("timestamp")).alias("timestamp"),
        F.col("key"),
        F.col("value"),
        F.col("headers"),
    )


def _decoded(records: DataFrame, format_: Format, layout: Layout, context: Context) -> DataFrame:
    """The records with `$key` or `$value` as a struct of columns, and what was wrong with it; or
    whether there is doubt, where decoding is native."""
    side = layout.side
    none = F.lit(None).cast("string")
    if not layout.columns:
        return records.withColumns(
            {f"${side}": none, f"${side}_error": none, f"${side}_doubt": F.lit(False)}
        )
    codec = format_.spark(layout)
    data, value, error = f"${side}_bytes", f"${side}", f"${side}_error"
    if not context.decoding.native:
        return codec.read(records, data, value, error)
    return codec.read_natively(records, data, value, f"${side}_doubt").withColumn(error, none)


def _windowed_key(node: n.ReadSource) -> tuple[Column, Column, Column]:
    """The key's bytes without the window, and the window's bounds (null where there is none)."""
    key = F.col("key")
    none = F.lit(None).cast("bigint")
    if node.window is None:
        return key, none, none
    length = F.octet_length(key)
    if node.window.type is WindowType.SESSION:  # end, then start
        inner = F.substring(key, F.lit(1), length - 16)
        return (
            inner,
            _long(F.substring(key, length - 7, F.lit(8))),
            _long(F.substring(key, length - 15, F.lit(8))),
        )
    start = _long(F.substring(key, length - 7, F.lit(8)))
    return F.substring(key, F.lit(1), length - 8), start, start + F.lit(node.window.size_ms or 0)


def _long(data: Column) -> Column:
    return F.conv(F.hex(data), 16, -10).cast("bigint")


def _header(key: str | None) -> Column:
    """The last header of that key, or all of them."""
    headers = column("$headers")  # null if there are none
    if key is not None:
        # From the end, by position: five times faster than a lambda, which Spark interprets.
        place = F.array_position(F.reverse(headers["key"]), key).cast("int")
        return F.get(F.reverse(headers["value"]), place - 1)
    type_ = spark_type(HEADERS_TYPE)
    return F.coalesce(headers.cast(type_), F.array().cast(type_))


def _record_time(node: n.ReadSource | n.Write, at: Mapping[str, Column]) -> Fallible:
    """The record's own time, or what the TIMESTAMP property says."""
    if node.timestamp is None:
        return Fallible(column(TIME))
    value = at[node.timestamp.name]
    if node.timestamp.format is None:
        return Fallible(value.cast("bigint"))
    parse = REGISTRY.find("STRINGTOTIMESTAMP", "STRINGTOTIMESTAMP(STRING, STRING)")
    result = parse.spark(
        [value, F.lit(node.timestamp.format)],
        CallContext((STRING, STRING), BIGINT, (None, node.timestamp.format)),
    )
    return result if isinstance(result, Fallible) else Fallible(result)


@lowers(n.Filter)
def _filter(node: n.Filter, context: Context) -> Lowered:
    is_table = node.kind is SourceKind.TABLE
    below = lower_node(node.input, feeding_kernel(context) if is_table else context)
    rows = below.rows
    predicate = lower(node.predicate, context.scope)
    passes = F.coalesce(predicate.value, F.lit(False)) & ~column(NULL)
    columns = [column(c.name) for c in node.schema]
    errors: list[Entries] = []
    failed = F.lit(False)
    if predicate.error is not None:
        reason = F.when(is_live(), predicate.error)
        message = f"Error evaluating predicate {describe(node.predicate)}"
        row = row_of(node.input.schema)
        errors = [
            context.entries.processing(node.step_name, [(message, reason)], row),
            *context.entries.skipped(node.step_name, reason, rows.columns),
        ]
        failed = reason.isNotNull()
    if is_table:
        filtered = select(rows, columns, null=~(passes & ~failed), errors=with_entries(errors))
        return only_seen(replace(below, rows=filtered), node, context)
    kept = rows.where(column(DEAD) | failed | passes)
    live = select(kept, columns, errors=with_entries(errors), dead=column(DEAD) | failed)
    return replace(below, rows=live)


@lowers(n.Project)
def _project(node: n.Project, context: Context) -> Lowered:
    below = lower_node(node.input, context)
    rows, columns, entries = projected(
        below.rows, node.selected, context, node.step_name, node.input.schema
    )
    return replace(below, rows=select(rows, columns, errors=with_entries(entries)))


@lowers(n.FlatMap)
def _flat_map(node: n.FlatMap, context: Context) -> Lowered:
    below = lower_node(node.input, context)
    arrays: list[Column] = []
    failures: list[Failure] = []
    for call in node.calls:
        args = [lower(a, context.scope) for a in call.args]
        literals = [getattr(a, "value", None) for a in call.args]
        types = tuple(a.type for a in call.args)
        found = REGISTRY.find(call.function, call.signature)
        told = CallContext(types, call.column.type, literals, context.function_settings)
        made = found.spark([a.value for a in args], told)
        result = made if isinstance(made, Fallible) else Fallible(made)
        message = f"Error computing table function {call.function}"
        errors = [*(a.error for a in args), result.error]
        failures += [(message, F.when(is_live(), e)) for e in errors if e is not None]
        arrays.append(result.value.alias(call.column.name))
    row = row_of(node.input.schema)
    entries = [context.entries.processing(node.step_name, failures, row)] if failures else []
    kept = [column(c.name) for c in node.input.schema]
    zipped = F.arrays_zip(*arrays) if arrays else F.array()
    # A row that is only there for its log entries must survive an empty array.
    lone = F.when(column(DEAD), F.array(F.lit(None).cast("boolean")))
    longest = F.greatest(*(F.coalesce(F.size(a), F.lit(0)) for a in arrays), F.lit(0))
    prepared = select(
        below.rows,
        [*kept, zipped.alias("$zipped"), lone.alias("$lone"), longest.alias("$longest")],
        errors=with_entries(entries),
    )
    index = F.explode(
        F.when(column(DEAD), F.array(F.lit(0))).otherwise(
            F.when(column("$longest") > 0, F.sequence(F.lit(0), column("$longest") - 1))
        )
    )
    exploded = prepared.select("*", index.alias("$index"))
    item = F.get(column("$zipped"), column("$index"))
    rows = exploded.select(
        *kept,
        *(item.getField(c.column.name).alias(c.column.name) for c in node.calls),
        *carried(below.rows),
    )
    return replace(below, rows=rows)


@lowers(n.Rekey)
def _rekey(node: n.Rekey, context: Context) -> Lowered:
    below = lower_node(node.input, context)
    columns, entries = selected_columns(
        node.keys,
        context,
        node.step_name,
        node.input.schema,
        lambda index, item: f"Error computing new key from expression {describe(item.expression)}",
    )
    # Of a record without a value, only what its old key tells is known.
    old = {c.name for c in node.input.schema.key}
    keys = [
        made if columns_used(item.expression) <= old else _unless_null(made, item.column.name)
        for item, made in zip(node.keys, columns, strict=True)
    ]
    new = {item.column.name for item in node.keys}
    kept = [column(c.name) for c in node.schema if c.name not in new]
    rows = select(below.rows, [*keys, *kept], errors=with_entries(entries))
    return replace(below, rows=rows)


def _unless_null(made: Column, name: str) -> Column:
    return F.when(~column(NULL), made).alias(name)


@lowers(n.Write)
def _write(node: n.Write, context: Context) -> Lowered:
    """Rows as bytes: what the sink takes."""
    below = lower_node(node.input, context)
    rows = below.rows
    key = _encode(*context.layout(node, "key"), made_anew=_is_rekeyed(node.input))
    value = _encode(*context.layout(node, "value"))
    time = _record_time(node, {c.name: column(c.name) for c in node.schema})
    write, row, step = context.entries, row_of(node.schema), node.step_name
    reasons, entries = [F.lit(None).cast("string")], []
    for side, result in (("key", key), ("value", value)):
        if result.error is not None:
            reason = F.when(is_live(), result.error)
            reasons.append(reason)
            entries.append(write.serialization(step, side, reason, node.topic, row))
    at = column(TIME)
    if node.timestamp is not None:
        at = F.when(column(NULL), at).otherwise(time.value)  # a tombstone has no such column
        reason = F.when(is_live(), _timeless(time))
        reasons.append(reason)
        message = "Error writing row with extracted timestamp"
        entries.append(write.processing(step, [(message, reason)], row))
    reason = F.coalesce(*reasons)
    entries += write.skipped(step, reason, rows.columns)
    encoded = rows.select(
        _with_window(node, key.value).alias(KEY),
        F.when(~column(NULL), value.value).alias(VALUE),
        at.alias(TIME),
        (column(DEAD) | reason.isNotNull()).alias(DEAD),
        with_entries(entries).alias(LOG),
        *(column(name) for name in (FAILED, RAW) if name in rows.columns),
        *([column(PARTITION).alias(TASK)] if context.with_task else []),
    )
    return replace(below, rows=encoded)


def _timeless(time: Fallible) -> Column:
    """Why a record has no time."""
    invalid = F.when(time.value.isNull() | (time.value < 0), F.lit("it has no valid time"))
    return invalid if time.error is None else F.coalesce(time.error, invalid)


def _is_rekeyed(node: n.Node) -> bool:
    below = list(n.inputs(node))
    return isinstance(node, n.Rekey) or (len(below) == 1 and _is_rekeyed(below[0]))


def _encode(format_: Format, layout: Layout, made_anew: bool = False) -> Fallible:
    if not layout.columns:
        return Fallible(F.lit(None).cast("binary"))
    fields = F.struct(*(column(c.name).alias(c.name) for c in layout.columns))
    # A key of nulls only is no key, unless it was made of several columns.
    if layout.side == "key" and not (made_anew and len(layout.columns) > 1):
        empty = F.lit(True)
        for c in layout.columns:
            empty = empty & column(c.name).isNull()
        fields = F.when(~empty, fields)
    return format_.spark(layout).encode(fields)


def _with_window(node: n.Write, key: Column) -> Column:
    if node.window is None:
        return key
    bounds = [column(WINDOW_START)]
    if node.window.type is WindowType.SESSION:
        bounds = [column(WINDOW_END), column(WINDOW_START)]
    return F.concat(key, *(F.unhex(F.lpad(F.hex(b), 16, "0")) for b in bounds))


@lowers(n.Answer)
def _answer(node: n.Answer, context: Context) -> Lowered:
    below = lower_node(node.input, context)
    columns = [column(c.name) for c in node.schema]
    return replace(below, rows=below.rows.select(*columns, *carried(below.rows)))
