"""Builds the DataFrame program of a plan: reads topics, resolves layouts, chooses the sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from headrace.engine.environment import Environment
from headrace.engine.layouts import layout_of
from headrace.engine.queries import processing_log
from headrace.engine.queries.losses import Reading
from headrace.model.setting import Value
from headrace.model.settings import Settings
from headrace.model.sources import SourceKind
from headrace.plan import nodes as n
from headrace.plan.determinism import repeatable
from headrace.spark.lower.aggregate_failures import log_failures
from headrace.spark.lower.program import Context, lower_node
from headrace.spark.lower.stateful import is_stateful, native_candidate
from headrace.spark.rows.optimistic import PESSIMISTIC, OptimisticDecoding
from headrace.spark.rows.processing_log import EntryWriter
from headrace.spark.runtime.checkpoint import batch_offsets, positions
from headrace.spark.runtime.kafka_source import (
    Offsets,
    consumer_options,
    read_topic,
    stream_topic,
)
from headrace.spark.runtime.torn_checkpoints import mend
from headrace.spark.sink.kafka import SinkTarget, observed, write_to_kafka

# Where to start in each topic.
Starts = Mapping[str, Offsets]
# Reads the records of a source, with their headers if these are wanted.
Read = Callable[[n.ReadSource, bool], DataFrame]

# What a push query reads at a time: a slow reader has it on disk until he has seen it.
PUSHED_RECORDS = 50_000


def exactly_once(settings: Settings) -> bool:
    return settings.text("processing.guarantee") != "at_least_once"


def context_for(
    env: Environment,
    query_id: str,
    settings: Settings,
    read: Read,
    *,
    keep_skipped: bool = False,
) -> Context:
    return Context(
        read=read,
        layout=partial(layout_of, env),
        entries=EntryWriter(
            query_id, settings.flag("ksql.logging.processing.rows.include"), keep_skipped
        ),
        buckets=int(settings["ksql.streams.state.buckets"] or env.buckets),
        coalesce=settings.number("cache.max.bytes.buffering") > 0,
        # A command does not record secrets: those are the server's.
        function_settings={**_of_functions(env.settings), **_of_functions(settings)},
    )


def _of_functions(settings: Settings) -> dict[str, Value]:
    return {name: settings[name] for name in settings if name.startswith("ksql.functions.")}


def streaming(
    env: Environment,
    settings: Settings,
    starts: Starts,
    *,
    strict: bool = False,
    passing: bool = False,
) -> Read:
    """Reads topics as a stream. `passing`: for a push query, which ends with its client."""
    options = consumer_options(env.kafka.java_settings, exactly_once(settings), passing=passing)
    limit = settings.number("max.offsets.per.trigger")
    if passing:
        limit = min(limit, PUSHED_RECORDS)

    def read(source: n.ReadSource, headers: bool) -> DataFrame:
        start = starts.get(source.topic, "earliest")
        topic = env.in_kafka(source.topic)
        return stream_topic(env.spark, topic, options, start, limit, headers, strict)

    return read


def bounded(env: Environment, starts: Starts, ends: Starts) -> Read:
    """Reads the records of topics between two positions, for a pull query."""
    options = consumer_options(env.kafka.java_settings, passing=True)

    def read(source: n.ReadSource, headers: bool) -> DataFrame:
        topic = env.in_kafka(source.topic)
        start, end = starts[source.topic], ends[source.topic]
        return read_topic(env.spark, topic, options, start, end, headers)

    return read


@dataclass(frozen=True)
class Program:
    """A persistent query as Spark runs it: evaluating `rows` writes to the sink.

    `state` says what it remembers, step by step, and `decoding` what it assumes of records.
    `after_batch`, if not None, is told the rows' counts once they are written, and the number of
    the batch; the batch is not finished before it returns. `reading` is what was found out of its
    topics; `unread` counts, by topic, records that cannot be read and that Spark does not report.
    """

    rows: DataFrame
    state: Sequence[str] = ()
    decoding: OptimisticDecoding = PESSIMISTIC
    after_batch: Callable[[Sequence[Row], int], None] | None = None
    reading: Reading | None = None
    unread: Counter[str] = field(default_factory=Counter)


def taken_over(env: Environment, node: n.Node, starts: Starts, checkpoint: str) -> Starts:
    """The starting offsets of a query that continues from another's position, if it does."""
    reached = positions(env.spark, checkpoint)
    topics = {source.topic: env.in_kafka(source.topic) for source in n.sources(node)}
    return {**starts, **{t: reached[name] for t, name in topics.items() if name in reached}}


def mend_checkpoint(env: Environment, query_id: str, settings: Settings, checkpoint: str) -> None:
    """Removes torn files from a query's checkpoint before it is read."""

    def written(spark_id: str) -> int:
        tasks = f"{env.query_group(query_id)}-{spark_id}-"  # each has a group of its own
        groups = [group for group in env.admin.groups() if group.startswith(tasks)]
        committed = (env.admin.group_positions(group) for group in groups)
        return max(
            (n for at in committed for topic in at.values() for n in topic.values()), default=0
        )

    mend(checkpoint, written if exactly_once(settings) else None)


def persistent_program(
    env: Environment,
    query_id: str,
    node: n.Write,
    settings: Settings,
    starts: Starts,
    checkpoint: str,
    decoding: OptimisticDecoding = PESSIMISTIC,
) -> Program:
    """`decoding` is what may be assumed of records, if the plan is one for it."""
    fixed = repeatable(node, f"{env.service_id}{query_id}")
    assert isinstance(fixed, n.Write)
    node = fixed
    target = SinkTarget(
        query_id,
        env.in_kafka(node.topic),
        tuple(sorted(env.producer_settings(settings).items())),
        processing_log.topic(env),
        processing_log.skipped_topic(env, settings),
        env.query_group(query_id) if exactly_once(settings) else None,
        0 if node.window is None else node.window.width,
        sources=tuple(dict.fromkeys(source.topic for source in n.sources(node))),
    )
    context = context_for(
        env,
        query_id,
        settings,
        streaming(env, settings, starts, strict=True),
        keep_skipped=target.skipped_topic is not None,
    )
    if target.transactions is not None and not is_stateful(node):
        context = replace(context, with_task=True)
    # Without state, the rows before the one that fails the batch would have been written.
    decoding = decoding if is_stateful(node) else PESSIMISTIC
    context = replace(context, decoding=decoding)
    target = replace(target, small_rows=decoding.small_rows and node.kind is SourceKind.TABLE)
    aggregate = native_candidate(node, context)
    lowered = lower_node(node, replace(context, native=aggregate))
    counts = observed(write_to_kafka(lowered.rows, target), target)
    program = Program(counts, lowered.state, decoding)
    if decoding.native or aggregate is None:
        return program

    def after_batch(counts: Sequence[Row], batch: int) -> None:
        if any(row.failed for row in counts):
            read = _batch_reader(env, node, settings, starts, checkpoint, batch)
            # The batch's own transactions are through: entries may come twice.
            logged = log_failures(aggregate, context, read, replace(target, transactions=None))
            for row in logged:
                program.unread.update(dict(zip(target.sources, row.unread, strict=True)))

    return replace(program, after_batch=after_batch)


def _batch_reader(
    env: Environment, node: n.Node, settings: Settings, starts: Starts, checkpoint: str, batch: int
) -> Read:
    """Reads exactly the records of one micro-batch again."""
    options = consumer_options(env.kafka.java_settings, exactly_once(settings))
    ends = _by_topic(batch_offsets(env.spark, checkpoint, batch))
    begins = {env.in_kafka(topic): offsets for topic, offsets in starts.items()}
    if batch > 0:
        begins |= _by_topic(batch_offsets(env.spark, checkpoint, batch - 1))

    def read(source: n.ReadSource, headers: bool) -> DataFrame:
        topic = env.in_kafka(source.topic)
        # Spark wants to be told of every partition, also of those that came after the batch.
        partitions = range(env.admin.describe(topic).partitions)
        end = {**dict.fromkeys(partitions, 0), **ends[topic]}
        start = {p: begins.get(topic, {}).get(p, 0) if p in ends[topic] else 0 for p in end}
        return read_topic(env.spark, topic, options, start, end, headers)

    return read


def _by_topic(offsets: Sequence[Mapping[str, Mapping[str, int]]]) -> dict[str, Offsets]:
    return {
        topic: {int(p): o for p, o in partitions.items()}
        for source in offsets
        for topic, partitions in source.items()
    }


def answer_program(
    env: Environment,
    query_id: str,
    node: n.Answer,
    settings: Settings,
    starts: Starts,
    *,
    whole: bool = False,
) -> DataFrame:
    """The program of a push or pull query. `whole`: skips records without a value, or without a key
    that the source should have."""
    read = streaming(env, settings, starts, passing=True)
    context = context_for(env, query_id, settings, _only_whole(read) if whole else read)
    return lower_node(node, context).rows


def _only_whole(read: Read) -> Read:
    def read_whole(source: n.ReadSource, headers: bool) -> DataFrame:
        records = read(source, headers).where(F.col("value").isNotNull())
        return records.where(F.col("key").isNotNull()) if source.columns.key else records

    return read_whole
