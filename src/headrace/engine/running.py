"""From a plan to a running DataFrame program: reads topics, resolves layouts, picks the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from headrace.engine import processing_log
from headrace.engine.layouts import layout_of
from headrace.engine.losses import Reading
from headrace.engine.world import World
from headrace.formats.base import Format, Layout, Side
from headrace.model.settings import Settings
from headrace.model.sources import SourceKind
from headrace.plan import nodes as n
from headrace.plan.repeatable import repeatable
from headrace.spark.checkpoint import batch_offsets, positions
from headrace.spark.entries import EntryWriter
from headrace.spark.failures import log_failures
from headrace.spark.hope import NO_HOPE, Hope
from headrace.spark.program import Context, lower_node
from headrace.spark.sink import SinkTarget, write_to_kafka
from headrace.spark.stateful import native_candidate, remembers
from headrace.spark.topics import Offsets, consumer_options, read_topic, stream_topic
from headrace.spark.torn import mend

# Where to start in each topic.
Starts = Mapping[str, Offsets]

# What a push query reads at a time: a slow reader has it on disk until he has seen it.
PUSHED_RECORDS = 50_000


def starting_offsets(world: World, node: n.Node, settings: Settings) -> Starts:
    """Where a new query begins, fixed now: a record written right after it must not be missed.

    Tables are read from their beginning whatever `auto.offset.reset` says only if it is earliest;
    ksqlDB treats both alike.
    """
    earliest = settings.text("auto.offset.reset") == "earliest"
    offsets = world.admin.begin_offsets if earliest else world.admin.end_offsets
    return {s.topic: offsets(s.topic) for s in n.sources(node)}


def exactly_once(settings: Settings) -> bool:
    return settings.text("processing.guarantee") != "at_least_once"


def context_for(
    world: World,
    query_id: str,
    settings: Settings,
    read: Callable[[n.ReadSource, bool], DataFrame],
    *,
    keep_skipped: bool = False,
) -> Context:
    def layout(node: n.ReadSource | n.Write, side: Side) -> tuple[Format, Layout]:
        return layout_of(world, node, side)

    return Context(
        read=read,
        layout=layout,
        entries=EntryWriter(
            query_id, settings.flag("ksql.logging.processing.rows.include"), keep_skipped
        ),
        buckets=int(settings["ksql.streams.state.buckets"] or world.buckets),
        coalesce=settings.number("cache.max.bytes.buffering") > 0,
        function_settings={
            name: settings[name] for name in settings if name.startswith("ksql.functions.")
        },
    )


def streaming(
    world: World,
    settings: Settings,
    starts: Starts,
    *,
    strict: bool = False,
    passing: bool = False,
) -> Callable[[n.ReadSource, bool], DataFrame]:
    """`passing`: for a push query, which ends with its client."""
    options = consumer_options(world.kafka.settings, exactly_once(settings), passing=passing)
    limit = settings.number("max.offsets.per.trigger")
    if passing:
        limit = min(limit, PUSHED_RECORDS)

    def read(source: n.ReadSource, headers: bool) -> DataFrame:
        start = starts.get(source.topic, "earliest")
        topic = world.in_kafka(source.topic)
        return stream_topic(world.spark, topic, options, start, limit, headers, strict)

    return read


def bounded(
    world: World, starts: Starts, ends: Starts
) -> Callable[[n.ReadSource, bool], DataFrame]:
    """Reads what topics hold between two points, for a pull query."""
    options = consumer_options(world.kafka.settings, passing=True)

    def read(source: n.ReadSource, headers: bool) -> DataFrame:
        topic = world.in_kafka(source.topic)
        start, end = starts[source.topic], ends[source.topic]
        return read_topic(world.spark, topic, options, start, end, headers)

    return read


@dataclass(frozen=True)
class Program:
    """A persistent query as Spark runs it: evaluating `rows` writes to the sink.

    `state` says what it remembers, step by step, and `hope` for what it may fail with
    HopeLostError. `after_batch`, if not None, is told the rows'
    counts once they are written, and the number of the batch; the batch is not finished before it
    returns. `reading` is what was found out of its topics.
    """

    rows: DataFrame
    state: Sequence[str] = ()
    hope: Hope = NO_HOPE
    after_batch: Callable[[Sequence[Row], int], None] | None = None
    reading: Reading | None = None


def taken_over(world: World, node: n.Node, starts: Starts, checkpoint: str) -> Starts:
    """Where a query begins that goes on from where another had got to, if it does."""
    reached = positions(world.spark, checkpoint)
    topics = {source.topic: world.in_kafka(source.topic) for source in n.sources(node)}
    return {**starts, **{t: reached[name] for t, name in topics.items() if name in reached}}


def mend_checkpoint(world: World, query_id: str, settings: Settings, checkpoint: str) -> None:
    """Before anything reads a query's checkpoint: lets go of what a power cut has torn."""

    def written(spark_id: str) -> int:
        tasks = f"{_transactions(world, query_id)}-{spark_id}-"  # each has a group of its own
        groups = [group for group in world.admin.groups() if group.startswith(tasks)]
        return max((n for group in groups for n in world.admin.group_offsets(group)), default=0)

    mend(checkpoint, written if exactly_once(settings) else None)


def _transactions(world: World, query_id: str) -> str:
    """The prefix that ksqlDB's ids have too, so that access rules fit."""
    return f"_confluent-ksql-{world.service_id}query_{query_id}"


def persistent_program(
    world: World,
    query_id: str,
    node: n.Write,
    settings: Settings,
    starts: Starts,
    checkpoint: str,
    hope: Hope = NO_HOPE,
) -> Program:
    """With `hope` it may fail with HopeLostError, and is faster if it does not."""
    fixed = repeatable(node, f"{world.service_id}{query_id}")
    assert isinstance(fixed, n.Write)
    node = fixed
    target = SinkTarget(
        query_id,
        world.in_kafka(node.topic),
        tuple(sorted(world.producer_settings().items())),
        processing_log.topic(world),
        processing_log.skipped_topic(world, settings),
        _transactions(world, query_id) if exactly_once(settings) else None,
        0 if node.window is None else node.window.width,
    )
    context = context_for(
        world,
        query_id,
        settings,
        streaming(world, settings, starts, strict=True),
        keep_skipped=target.skipped_topic is not None,
    )
    if target.transactions is not None and not remembers(node):
        context = replace(context, tells_task=True)
    # Without state, the rows before the one that ends all hope would have been written.
    hope = hope if remembers(node) else NO_HOPE
    context = replace(context, hopeful=hope.plain, small=hope.small)
    target = replace(target, small=hope.small and node.kind is SourceKind.TABLE)
    aggregate = native_candidate(node, context)
    native = replace(context, native=aggregate)
    rows = write_to_kafka(lower_node(node, native), target)
    if hope.plain or aggregate is None:
        return Program(rows, context.state, hope)

    def after_batch(counts: Sequence[Row], batch: int) -> None:
        if any(row.failed for row in counts):
            read = _batch_reader(world, node, settings, starts, checkpoint, batch)
            # The batch's own transactions are through: entries may come twice.
            log_failures(aggregate, context, read, replace(target, transactions=None))

    return Program(rows, context.state, hope, after_batch)


def _batch_reader(
    world: World, node: n.Node, settings: Settings, starts: Starts, checkpoint: str, batch: int
) -> Callable[[n.ReadSource, bool], DataFrame]:
    """Reads exactly the records of one micro-batch again."""
    options = consumer_options(world.kafka.settings, exactly_once(settings))
    ends = _by_topic(batch_offsets(world.spark, checkpoint, batch))
    begins = {world.in_kafka(topic): offsets for topic, offsets in starts.items()}
    if batch > 0:
        begins |= _by_topic(batch_offsets(world.spark, checkpoint, batch - 1))

    def read(source: n.ReadSource, headers: bool) -> DataFrame:
        topic = world.in_kafka(source.topic)
        # Spark wants to be told of every partition, also of those that came after the batch.
        partitions = range(world.admin.describe(topic).partitions)
        end = {**dict.fromkeys(partitions, 0), **ends[topic]}
        start = {p: begins.get(topic, {}).get(p, 0) if p in ends[topic] else 0 for p in end}
        return read_topic(world.spark, topic, options, start, end, headers)

    return read


def _by_topic(offsets: Sequence[Mapping[str, Mapping[str, int]]]) -> dict[str, Offsets]:
    return {
        topic: {int(p): o for p, o in partitions.items()}
        for source in offsets
        for topic, partitions in source.items()
    }


def answer_program(
    world: World,
    query_id: str,
    node: n.Answer,
    settings: Settings,
    starts: Starts,
    *,
    whole: bool = False,
) -> DataFrame:
    """`whole`: records without a value are passed over, and those without the key they should
    have."""
    read = streaming(world, settings, starts, passing=True)
    context = context_for(world, query_id, settings, _only_whole(read) if whole else read)
    return lower_node(node, context)


def _only_whole(
    read: Callable[[n.ReadSource, bool], DataFrame],
) -> Callable[[n.ReadSource, bool], DataFrame]:
    def read_whole(source: n.ReadSource, headers: bool) -> DataFrame:
        records = read(source, headers).where(F.col("value").isNotNull())
        return records.where(F.col("key").isNotNull()) if source.columns.key else records

    return read_whole
